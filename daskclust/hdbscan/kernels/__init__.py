"""Kernels of HDBSCAN* and of the minimum spanning tree."""
