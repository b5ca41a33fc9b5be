"""DBSCAN and friends-of-friends on the points that programs for them are compared on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.bench.case import Case, Options, System
from daskclust.bench.roofline import count_neighbours, dbscan_work, mean_of

_KINDS = ("cosmo", "ss2d", "ss3d", "uniform2d")


def _cases(kind: str, size: int, options: Options) -> Iterator[Case]:
    for min_samples in options.min_samples:
        yield _case(kind, size, min_samples)


def _case(kind: str, size: int, min_samples: int | None) -> Case:
    """Return a case of DBSCAN, or of friends-of-friends where there is no `min_samples`."""
    from daskclust import DBSCAN, FriendsOfFriends

    X, eps = _points(kind, size)

    def fit(X: Any) -> Any:
        return (FriendsOfFriends(eps) if min_samples is None else DBSCAN(eps, min_samples=min_samples)).fit(X)

    def work() -> Any:
        needed = np.minimum(count_neighbours(X, eps), (min_samples or 2) - 1)
        return dbscan_work(len(X), X.shape[1], len(X) * mean_of(needed))

    return Case(
        facts={"kind": kind, "points": len(X), "eps": eps, "min_samples": min_samples},
        arrays=(X,),
        fit=fit,
        result="labels_",
        found=lambda fitted: {"clusters": int(fitted.n_clusters_), "noise": int((fitted.labels_ < 0).sum())},
        work=work,
    )


def _points(kind: str, n: int) -> tuple[NDArray[Any], float]:
    """Return coordinates, float32, and the distance of neighbours.

    ``"cosmo"`` has an open box and 0.168 mean separations; ``"ss2d"`` and ``"ss3d"`` varying density; ``"uniform2d"``
    12.6 neighbours in the mean at any `n`.
    """
    from daskclust.datasets import cosmology_box, seed_spreader

    if kind == "cosmo":
        ds, eps = cosmology_box(n, rng=0), 0.168
    elif kind == "uniform2d":
        ds, eps = seed_spreader(n, 2, noise=1.0, rng=0), 200.0 * math.sqrt(1e6 / max(n, 1))
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
    headline={"sizes": (1_000_000, 37_000_000), "kinds": ("cosmo",), "repeats": 3},  # ArborX's 37 million
)
DBSCAN = System("DBSCAN", _KINDS, _cases, _PARAMETERS, takes=("kinds", "min_samples"), headline={"repeats": 3})
