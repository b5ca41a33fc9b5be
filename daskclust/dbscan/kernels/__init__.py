"""Kernels of DBSCAN and friends-of-friends."""
