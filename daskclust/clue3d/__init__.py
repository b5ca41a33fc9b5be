"""CLUE3D, showers of the layer clusters of a calorimeter (CMSSW's RecoHGCal/TICL): what it computes, and where.

The algorithm by the default parameters, of n layer clusters of one endcap and all of their pairs. `CLUE3D` gives the
same, in time near linear in n:

>>> import numpy as np
>>> from daskclust import CLUE3D
>>> def clue3d(X, layer, energy):
...     (x, y, z), n = X.T, len(X)
...     slope, phi, layers = np.hypot(x, y) / z, np.arctan2(y, x), abs(layer[:, None] - layer)
...     turn = (phi[:, None] - phi + np.pi) % (2 * np.pi) - np.pi
...     there = z[:, None] * slope  # where the line of each meets the layer of another
...     distance = np.hypot((z * slope)[:, None] - there, there * turn)
...     window = (layers > 0) & (layers <= 3)
...     rho = energy + 0.2 * np.where(window & (distance**2 < 3.24), energy, 0).sum(axis=1)
...     rank = np.argsort(np.lexsort((np.arange(n), rho)))  # of equal densities the later one is the higher
...     to_higher = np.where(window & (rank > rank[:, None]), distance, np.inf)
...     nearest, delta = to_higher.argmin(axis=1), to_higher.min(axis=1)
...     is_seed = (rho >= 0.6) & (delta > 1.8) & (energy > 0.15 * rho)
...     end = np.arange(n)
...     for i in np.argsort(rank)[::-1]:  # from the highest down: the nearest higher has its end already
...         if not is_seed[i] and delta[i] <= 3.6:
...             end[i] = end[nearest[i]]
...     is_seed &= np.bincount(end, minlength=n) >= 2
...     return np.where(is_seed[end], (np.cumsum(is_seed) - 1)[end], -1)
>>> rng = np.random.default_rng(0)
>>> layer, energy = rng.integers(0, 12, 300), rng.exponential(0.3, 300)
>>> z = 320.0 + 2 * layer
>>> X = np.stack([*(z * rng.choice([0.1, 0.2, 0.3], (2, 300)) + rng.normal(0, 1, (2, 300))), z], axis=1)
>>> bool((clue3d(X, layer, energy) == CLUE3D().fit(X, layer=layer, sample_weight=energy).labels_).all())
True

`estimator` checks parameters and input, `plan` says what a worker does with a chunk, which has whole events, `kernels`
has the lines above for one point.
"""
