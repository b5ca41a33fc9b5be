"""CLUE on the calorimeter of its paper: figure 5, and the steps of table 2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from daskclust.bench.case import Case, Options, System
from daskclust.bench.roofline import Work, clue_work, count_neighbours, mean_of

DC, DELTA, RHOC = 3.0, 5.0, 8.0
_LAYERS = 100
_STEPS = {
    "build grid": (),
    "density": ("density",),
    "nearest higher": ("nearest_higher",),
    "seeds, outliers": ("classify",),
    "clusters": ("find_root", "_running_sum", "end_of_chain", "emit"),
}


def _cases(_kind: str, size: int, _options: Options) -> Iterator[Case]:
    from daskclust.datasets import calorimeter

    points = calorimeter(_LAYERS, max(1, size // _LAYERS), rng=0)
    X = np.stack([points["x"].values, points["y"].values], axis=1)
    layer = points["layer"].values.astype(np.int32)
    yield Case(
        facts={"points": len(X)},
        arrays=(X, layer, points["energy"].values),
        fit=_fit,
        result="labels_",
        found=lambda clue: {"clusters": int(clue.n_clusters_)},
        work=partial(_work, X, layer),
    )


def _fit(X: Any, layer: Any, weight: Any) -> Any:
    from daskclust import CLUE

    return CLUE(DC, RHOC, delta_c=DELTA, delta_o=DELTA).fit(X, layer=layer, sample_weight=weight)


def _work(X: Any, layer: Any) -> Work:
    """Count pairs within dc: along a third axis layers are so far apart that points have no neighbours in others."""
    neighbours = count_neighbours(np.column_stack([X, 2.0 * DC * layer]), DC)
    return clue_work(len(X), 2, len(X) * mean_of(neighbours) / 2)


CLUE = System(
    "CLUE",
    ("calorimeter",),
    _cases,
    {"layers": _LAYERS, "dc": DC, "delta_c": DELTA, "delta_o": DELTA, "rhoc": RHOC},
    usual={"sizes": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)},
    headline={"sizes": tuple(range(100_000, 1_000_001, 100_000))},  # figure 5; the last is table 2
    steps=_STEPS,
)
