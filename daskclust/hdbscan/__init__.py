"""HDBSCAN* and the Euclidean minimum spanning tree."""
