"""HDBSCAN* and the Euclidean minimum spanning tree: a cosmological box, and blobs in a plane."""

from functools import partial

import numpy as np

import daskclust
from bench.cases import Case, System
from bench.roofline import hdbscan_work, tree_work
from daskclust.datasets import cosmology_box

MIN_CLUSTER_SIZE = 10
_KINDS = ("cosmo", "blobs")
_BLOBS = 50
_PARAMETERS = {"dtype": "float64", "boxsize": None}
_STEPS = {"neighbours": ("find_nearest", "find_core"), "search": ("search", "search_point"), "other kernels": ()}


def _points(kind, n):
    """Return coordinates, float64, as other programs take no other."""
    if kind == "cosmo":
        box = cosmology_box(n, rng=0)
        return np.stack([box[axis].values for axis in "xyz"], axis=1).astype(np.float64)
    rng = np.random.default_rng(0)
    centers = rng.uniform(0, 40, (_BLOBS, 2))
    return centers[rng.integers(0, _BLOBS, n)] + 0.5 * rng.normal(size=(n, 2))


def _trees(kind, size, _options):
    X = _points(kind, size)
    yield Case(
        facts={"kind": kind, "points": size},
        arrays=(X,),
        fit=daskclust.EMST(boxsize=None).fit,
        result="lengths_",
        found=lambda fitted: {"length": float(fitted.lengths_.sum())},
        work=partial(tree_work, *X.shape),
    )


def _clusters(kind, size, options):
    X = _points(kind, size)
    for min_samples in options.min_samples:
        yield Case(
            facts={"kind": kind, "points": size, "min_samples": min_samples},
            arrays=(X,),
            fit=daskclust.HDBSCAN(MIN_CLUSTER_SIZE, min_samples=min_samples, boxsize=None).fit,
            result="labels_",
            found=lambda fitted: {"clusters": int(fitted.n_clusters_), "noise": int((fitted.labels_ < 0).sum())},
            work=partial(hdbscan_work, *X.shape, min_samples),
        )


EMST = System(
    "Euclidean minimum spanning tree",
    _KINDS,
    _trees,
    _PARAMETERS,
    takes=("kinds",),
    usual={"repeats": 3},
    steps=_STEPS,
)
HDBSCAN = System(
    "HDBSCAN*",
    _KINDS,
    _clusters,
    {**_PARAMETERS, "min_cluster_size": MIN_CLUSTER_SIZE},
    takes=("kinds", "min_samples"),
    usual={"repeats": 3},
    steps=_STEPS,
)
