"""Mahalanobis hierarchical clustering (Fiser et al. 2012; Smelko 2020): what it computes, and where.

The algorithm, with the rule "thesis" and distances of centroids. `MahalanobisHCA` gives the same, in time O(n^2):

>>> import numpy as np
>>> from daskclust import MahalanobisHCA
>>> def length(step, members, threshold):  # definitions 7 to 11: Euclidean below the threshold
...     if len(members) < threshold:
...         return np.linalg.norm(step)
...     return np.sqrt(step @ np.linalg.solve(np.cov(members.T, bias=True), step))
>>> def linkage(X, threshold):
...     clusters, merges = {i: X[[i]] for i in range(len(X))}, []
...     while len(clusters) > 1:
...         pairs = {}
...         for i, a in clusters.items():
...             for j, b in clusters.items():
...                 if i < j:
...                     step = a.mean(axis=0) - b.mean(axis=0)
...                     pairs[i, j] = (length(step, a, threshold) + length(step, b, threshold)) / 2
...         i, j = min(pairs, key=pairs.get)
...         clusters[len(X) + len(merges)] = np.concatenate([clusters.pop(i), clusters.pop(j)])
...         merges.append([i, j, pairs[i, j], len(clusters[len(X) + len(merges)])])
...     return np.array(merges)
>>> X = np.random.default_rng(0).normal([[0, 0], [9, 0]], [2, 1], (20, 2, 2)).reshape(-1, 2)
>>> bool(np.allclose(linkage(X, 8), MahalanobisHCA(8).fit(X).linkage_))
True

`estimator` checks parameters and input, `plan` says what a worker does with apriori clusters and how these are merged,
`levels` links the clusters of one level, `kernels/loop` merges the nearest pair until one is left.
"""
