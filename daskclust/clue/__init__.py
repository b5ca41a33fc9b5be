"""CLUE, density clustering of calorimeter hits (Rovere et al. 2020): what it computes, and where.

The algorithm, of n points and all of their pairs. `CLUE` gives the same, in time near linear in n:

>>> import numpy as np
>>> from daskclust import CLUE
>>> def clue(X, dc, rhoc, delta_c):
...     n = len(X)
...     distance = np.linalg.norm(X[:, None] - X, axis=2)
...     rho = (distance <= dc).sum(axis=1)  # equation 2.3, of weights 1 and the flat kernel
...     rank = np.argsort(np.lexsort((np.arange(n), rho)))  # of equal densities the later point is the higher
...     to_higher = np.where(rank > rank[:, None], distance, np.inf)
...     nearest, delta = to_higher.argmin(axis=1), to_higher.min(axis=1)  # equation 2.4
...     is_seed = (rho >= rhoc) & (delta > delta_c)
...     labels = np.where(is_seed, np.cumsum(is_seed) - 1, -1)
...     for i in np.argsort(rank)[::-1]:  # from the highest down: the nearest higher has its label already
...         if not is_seed[i] and delta[i] <= delta_c:
...             labels[i] = labels[nearest[i]]
...     return labels
>>> X = np.random.default_rng(0).normal([[0, 0], [9, 0], [0, 9]], 2, (100, 3, 2)).reshape(-1, 2)
>>> bool((clue(X, 1.0, 8, 2.5) == CLUE(1.0, 8, delta_c=2.5).fit(X).labels_).all())
True

`estimator` checks parameters and input, `plan` says what a worker does with a chunk and what chunks merge, `densities`
is the pass over neighbours, `kernels/formulas` has the lines above for one point, `at_once` is a GPU's own way.
"""
