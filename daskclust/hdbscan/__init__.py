"""HDBSCAN* (Campello, Moulavi and Sander 2013) and the Euclidean minimum spanning tree: what they compute, and where."""
