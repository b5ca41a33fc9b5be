"""Kernels of HDBSCAN* and the Euclidean minimum spanning tree."""
