"""HDBSCAN* (Campello et al. 2013) and the Euclidean minimum spanning tree: what they compute, and where.

The algorithm, of n points and all of their pairs. `HDBSCAN` gives the same from a minimum spanning tree:

>>> import numpy as np
>>> from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
>>> from daskclust import HDBSCAN
>>> def hdbscan(X, min_cluster_size, min_samples):
...     squares = ((X[:, None] - X) ** 2).sum(axis=2)
...     core = np.sort(squares)[:, min_samples - 1]
...     heights = np.sqrt(np.maximum(squares, np.maximum(core, core[:, None])))  # mutual reachability
...     def select(points, birth):
...         large, stability = [points], 0.0
...         while len(large) == 1:  # the cluster goes on, and loses points where it falls into parts
...             there = heights[np.ix_(large[0], large[0])]
...             end = minimum_spanning_tree(there).max()
...             part = connected_components(there < end)[1]
...             pieces = [large[0][part == k] for k in range(part.max() + 1)]
...             large = [piece for piece in pieces if len(piece) >= min_cluster_size]
...             leaving = len(there) - (len(large[0]) if len(large) == 1 else 0)
...             stability += leaving * (1 / end - 1 / birth)
...         below = [select(piece, end) for piece in large]
...         total = sum(sorted(each for each, _ in below))
...         if stability >= total and birth < np.inf:  # all points together are no cluster
...             return stability, [points]
...         return total, [cluster for _, chosen in below for cluster in chosen]
...     labels = np.full(len(X), -1)
...     for label, cluster in enumerate(sorted(select(np.arange(len(X)), np.inf)[1], key=min)):
...         labels[cluster] = label
...     return labels
>>> X = np.random.default_rng(0).normal([[0, 0], [9, 0], [0, 9]], 2, (40, 3, 2)).reshape(-1, 2)
>>> labels = HDBSCAN(8, min_samples=4).fit(X).labels_
>>> bool(labels.max() == 2 and (hdbscan(X, 8, 4) == labels).all())
True

`estimator` and `emst` check parameters, `forest` reads points and finds trees, of each event its own (`spanning_tree`).
`condensed` makes clusters of a linkage, `selection` chooses among them.
"""
