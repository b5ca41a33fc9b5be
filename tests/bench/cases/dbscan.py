"""DBSCAN and friends-of-friends on the points that programs for them are compared on."""

import math

import numpy as np

import daskclust
from bench.cases import Case, System
from bench.roofline import count_neighbours, dbscan_work
from daskclust.datasets import cosmology_box, seed_spreader

_KINDS = ("cosmo", "ss2d", "ss3d", "uniform2d")


def _cases(kind, size, options):
    for min_samples in options.min_samples:
        yield _case(kind, size, min_samples)


def _case(kind, size, min_samples):
    """Return a case of DBSCAN, or of friends-of-friends where there is no `min_samples`."""
    X, eps = _points(kind, size)
    if min_samples is None:
        estimator = daskclust.FriendsOfFriends(eps)
    else:
        estimator = daskclust.DBSCAN(eps, min_samples=min_samples)

    def work():
        needed = np.minimum(count_neighbours(X, eps), (min_samples or 2) - 1)
        return dbscan_work(len(X), X.shape[1], len(X) * needed.mean())

    return Case(
        facts={"kind": kind, "points": len(X), "eps": eps, "min_samples": min_samples},
        arrays=(X,),
        fit=estimator.fit,
        result="labels_",
        found=lambda fitted: {"clusters": int(fitted.n_clusters_), "noise": int((fitted.labels_ < 0).sum())},
        work=work,
    )


def _points(kind, n):
    """Return coordinates, float32, and the distance of neighbours; uniform ones have 12.6 in the mean at any `n`."""
    if kind == "cosmo":
        ds, eps = cosmology_box(n, rng=0), 0.168
    elif kind == "uniform2d":
        ds, eps = seed_spreader(n, 2, noise=1.0, rng=0), 200.0 * math.sqrt(1e6 / n)
    else:
        d = {"ss2d": 2, "ss3d": 3}[kind]
        ds, eps = seed_spreader(n, d, density="varying", rng=0), {2: 100.0, 3: 400.0}[d]
    return np.stack([ds[axis].values for axis in "xyz" if axis in ds], axis=1), eps


_PARAMETERS = {"dtype": "float32", "boxsize": None}
FOF = System(
    "Friends-of-friends",
    _KINDS,
    lambda kind, size, _: iter([_case(kind, size, None)]),
    _PARAMETERS,
    takes=("kinds",),
    usual={"repeats": 3},
    headline={"sizes": (1_000_000, 37_000_000), "kinds": ("cosmo",)},  # ArborX's 37 million
)
DBSCAN = System("DBSCAN", _KINDS, _cases, _PARAMETERS, takes=("kinds", "min_samples"), usual={"repeats": 3})
