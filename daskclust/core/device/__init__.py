"""Kernels on any device: arrays, the operations they are written in, threads, scans, sorts, union-find."""
