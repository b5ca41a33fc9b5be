"""DBSCAN (Ester et al. 1996) and friends-of-friends: what they compute, and where.

The algorithm, of n points and all of their pairs. `DBSCAN` gives the same, in O(n log n) in up to three dimensions:

>>> import numpy as np
>>> from daskclust import DBSCAN
>>> def dbscan(X, eps, min_samples):
...     near = ((X[:, None] - X) ** 2).sum(axis=2) <= eps**2
...     is_core = near.sum(axis=1) >= min_samples
...     labels, count = np.full(len(X), -1), 0
...     for first in np.flatnonzero(is_core):  # a cluster has the number of its first core point's turn
...         if labels[first] < 0:
...             members, before = np.arange(len(X)) == first, 0
...             while members.sum() > before:  # core points that some member has within eps
...                 before = members.sum()
...                 members |= near[members].any(axis=0) & is_core
...             labels[members] = count
...             count += 1
...     for border in np.flatnonzero(~is_core & (near & is_core).any(axis=1)):
...         labels[border] = labels[near[border] & is_core].min()
...     return labels
>>> X = np.random.default_rng(0).normal([[0, 0], [9, 0], [0, 9]], 2, (100, 3, 2)).reshape(-1, 2)
>>> bool((dbscan(X, 1.0, 8) == DBSCAN(1.0, min_samples=8).fit(X).labels_).all())
True

Friends-of-friends are the same with `min_samples` 2. `estimator` checks parameters and input, `plan` says what a worker
does with a chunk and what chunks merge; points go through blocks of cells (`block_search`, up to three dimensions) or
through a tree of boxes (`tree_search`).
"""
