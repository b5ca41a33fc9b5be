"""Mahalanobis hierarchical clustering."""
