"""HDBSCAN* and the Euclidean minimum spanning tree: what they compute, and where."""
