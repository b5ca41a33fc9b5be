"""CLUE on the calorimeter of its paper: figure 5, and the steps of table 2."""

import numpy as np

import daskclust
from bench.cases import Case, System
from bench.roofline import clue_work, count_neighbours
from daskclust.datasets import calorimeter

DC, DELTA, RHOC = 3.0, 5.0, 8.0
_LAYERS = 100
_STEPS = {
    "build grid": (),
    "density": ("density",),
    "nearest higher": ("nearest_higher", "find_higher"),  # on CUDA it says what a point is, too
    "seeds, outliers": ("classify",),
    "clusters": ("put_back", "find_root", "_running_sum", "end_of_chain"),
}


def _cases(_kind, size, _options):
    points = calorimeter(_LAYERS, max(1, size // _LAYERS), rng=0)
    X = np.stack([points["x"].values, points["y"].values], axis=1)
    layer = points["layer"].values.astype(np.int32)

    def fit(X, layer, weight):
        return daskclust.CLUE(DC, RHOC, delta_c=DELTA, delta_o=DELTA).fit(X, layer=layer, sample_weight=weight)

    def work():
        apart = np.column_stack([X, 2.0 * DC * layer])  # along a third axis: no neighbours in other layers
        return clue_work(len(X), 2, len(X) * count_neighbours(apart, DC).mean() / 2)

    yield Case(
        facts={"points": len(X)},
        arrays=(X, layer, points["energy"].values),
        fit=fit,
        result="labels_",
        found=lambda clue: {"clusters": int(clue.n_clusters_)},
        work=work,
    )


CLUE = System(
    "CLUE",
    ("calorimeter",),
    _cases,
    {"layers": _LAYERS, "dc": DC, "delta_c": DELTA, "delta_o": DELTA, "rhoc": RHOC},
    usual={"sizes": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)},
    headline={"sizes": tuple(range(100_000, 1_000_001, 100_000))},  # figure 5; the last is table 2
    steps=_STEPS,
)
