"""Kernels of event building."""
