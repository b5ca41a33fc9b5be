"""Kernels of properties: sums, chains of hits, spherical halos."""
