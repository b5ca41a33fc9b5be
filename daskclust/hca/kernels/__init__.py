"""Kernels of Mahalanobis hierarchical clustering: shapes, distances, one merge, and two ways to find the next."""
