"""Mahalanobis hierarchical clustering on data sets of the kinds of its thesis: figures 3.3 and 3.4."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.cases import Case, System
from bench.roofline import hca_work
from daskclust import MahalanobisHCA
from daskclust.datasets import apriori_gaussians, cytometry

_MIXED = 8  # Gaussians of a mixture
_STEPS = {"first neighbours": ("find_all",), "merges": ("merge_down_to", "link_sets"), "other kernels": ()}


class Cells(NamedTuple):
    """Points, and how they are clustered."""

    X: Any  # (n, d) float32
    apriori: Any  # (n,) or None
    threshold: int | float


def cells_of(kind, size):
    """Return points of a kind; for ``"apriori"`` the size is a number of clusters and their size, the threshold."""
    if kind == "apriori":
        ds = apriori_gaussians(*size, channels=20, rng=0)
        return Cells(ds["X"].values, ds["apriori"].values, size[1])
    d = 14
    if kind == "cytometry":
        return Cells(cytometry(size, d, rng=0)["X"].values, None, 0.5)
    rng = np.random.default_rng(0)
    mixing, center = rng.normal(size=(_MIXED, d, d)) / 4, rng.normal(scale=4, size=(_MIXED, d))
    which = rng.integers(0, _MIXED, size)
    X = center[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(size, d)))
    return Cells(X.astype(np.float32), None, 0.5)


def _cases(kind, size, _options):
    cells = cells_of(kind, size)
    n, d = cells.X.shape
    facts = {"kind": kind, "points": n, "channels": d, "threshold": cells.threshold}
    yield Case(
        facts=facts | ({"groups": size[0]} if kind == "apriori" else {}),
        arrays=(cells.X,),
        fit=partial(MahalanobisHCA(cells.threshold).fit, apriori=cells.apriori),
        result="linkage_",
        found=lambda fitted: {"last_height": float(fitted.linkage_[-1, 2])},
        work=partial(hca_work, n, d),
    )


HCA = System(
    "Mahalanobis clustering",
    ("gaussian", "cytometry", "apriori"),
    _cases,
    {"dtype": "float32", "rule": "thesis", "distance": "centroid"},
    takes=("kinds", "groups"),
    usual={"sizes": (5000, 10_000, 20_000, 44_000), "threads": (1, 0), "repeats": 3},  # 44 000: the thesis's smallest
    steps=_STEPS,
)
