"""Event building: pixel hits to clusters by three definitions (Celko et al. 2025); what it computes, and where.

The algorithm, of hits and all of their clusters. `EventBuilder` gives the same by one pass over the hits:

>>> import numpy as np
>>> from daskclust import EventBuilder
>>> def events(hits, dt_max, variant):
...     x, y, toa = hits.T
...     clusters = []  # lists of hits, in the order of time
...     for i in np.argsort(toa, kind="stable"):
...         joined = [i]
...         for cluster in list(clusters):
...             touching = [j for j in cluster if max(abs(x[j] - x[i]), abs(y[j] - y[i])) <= 1]
...             judge = {"local": touching, "global": cluster[-1:], "static": cluster[:1]}[variant]
...             if touching and any(toa[i] - toa[j] <= dt_max for j in judge):
...                 clusters.remove(cluster)
...                 joined += cluster
...         clusters.append(sorted(joined, key=lambda j: (toa[j], j)))
...     labels = np.empty(len(hits), np.int64)
...     for number, cluster in enumerate(sorted(clusters, key=lambda cluster: (toa[cluster[0]], cluster[0]))):
...         labels[cluster] = number
...     return labels
>>> rng = np.random.default_rng(0)
>>> hits = np.column_stack([rng.integers(0, 12, (300, 2)), rng.integers(0, 9000, 300)]).astype(float)
>>> [bool((events(hits, 90, v) == EventBuilder(90, variant=v).fit(hits).labels_).all())
...  for v in ("local", "global", "static")]
[True, True, True]

`estimator` checks parameters and input, `plan` says what a worker does with a window of time and what windows merge,
`matrix` keeps the last hits of each pixel, `kernels/rules` has the three definitions.
"""
