"""Points and parameters of spanning trees."""

from dataclasses import dataclass

import dask.array as da
import numpy as np
from cases.lanes import a_shape, drawn_points, put_on_seams
from hypothesis import strategies as st

from daskclust.core.space.partition import Partition
from daskclust.hdbscan.plan import TreePlan, spanning_tree_of
from daskclust.hdbscan.spanning_tree import spanning_tree

SHAPES = [(2, np.float64), (3, np.float64), (1, np.float64), (2, np.float32), (3, np.float32), (5, np.float64)]
KINDS = ["lattice", "tenths", "uniform", "clumps", "places", "equal"]


@dataclass
class Case:
    """Points and parameters."""

    X: np.ndarray
    min_samples: int = 1
    period: tuple[float, ...] = ()
    alpha: float = 1.0

    def in_memory(self):
        return spanning_tree(self.X, self.min_samples, self.period, self.alpha)

    def lazy(self, rows, partition="auto"):
        X = da.from_array(self.X, chunks=(rows, self.X.shape[1]))
        return spanning_tree_of(X, self.min_samples, self.period, self.alpha, partition)

    def partition(self, *cuts, halo=1.0):
        planes = tuple(np.array(each, float) for each in cuts)
        return Partition(cuts=planes, period=self.period or (0.0,) * self.X.shape[1], halo=halo)

    def plan(self):
        return TreePlan(len(self.X), self.min_samples, self.alpha, self.period or (0.0,) * self.X.shape[1])


@st.composite
def cases(draw, most=70):
    d, dtype = draw(a_shape(SHAPES))
    n, size = draw(st.integers(1, most)), 4.0
    X = drawn_points(np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from(KINDS)), n, d, size)
    X = X.astype(dtype)
    period = ()
    if draw(st.booleans()):
        period = tuple(draw(st.sampled_from([0.0, 8.0, 9.5])) for _ in range(d))
        put_on_seams(draw, X, period)
    if draw(st.booleans()):
        X[-1, 0] += 1e4
    return Case(X, min(draw(st.sampled_from([1, 2, 5])), n), period, draw(st.sampled_from([1.0, 1.0, 0.7, 1.5])))
