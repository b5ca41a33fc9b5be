"""CLUE's work stays near linear: long chains, wide searches, many equal points. Steps are counted, time is not."""

import math

import numpy as np
import pytest
from cases.clue import Case, assert_right, assert_same_results
from cases.lanes import every_dtype, quick_first

from daskclust.clue.kernels import equal_points
from daskclust.core.device.arrays import Host
from daskclust.core.space.partition import Partition


class Counted:
    """An array that counts what is read of it."""

    def __init__(self, array, reads):
        self.array, self.reads = array, reads

    def __getitem__(self, i):
        self.reads[0] += 1
        return self.array[i]

    def __setitem__(self, i, value):
        self.array[i] = value


@pytest.fixture
def steps(monkeypatch):
    """Count links that are followed, and refuse kernels that would meet far more candidates than there are points."""
    followed, run = [0], Host.run

    def counting(self, kernel, n, *args, grain=8192):
        if kernel.__name__ == "find_root":
            parent, *others = args
            for i in range(n):
                kernel.function(i, Counted(parent, followed), *others)
            return
        if kernel.__name__ in ("density", "nearest_higher"):
            cells, reach = args[1], args[2]
            spanned = math.prod(2 * far * axis.inverse + 2 for far, axis in zip(reach, cells.grid.axes, strict=True))
            assert spanned <= 20_000, f"{kernel.__name__} looks at {spanned:.3g} cells for each point"
            x = np.floor(cells.positions[0, :n].astype(np.float64) * cells.grid.axes[0].inverse)
            _, within = np.unique(np.stack([cells.row[:n], x]), axis=1, return_counts=True)
            pairs = int((within.astype(np.int64) ** 2).sum())
            assert pairs <= 200 * n + 100_000, f"{kernel.__name__} compares {pairs:.3g} pairs of points within cells"
        run(self, kernel, n, *args, grain=grain)

    monkeypatch.setattr(Host, "run", counting)
    return followed


@pytest.mark.slow
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("blocks", [1, 8])
def test_a_chain_is_followed_in_steps_in_proportion_to_its_length(steps, direction, blocks):
    n = 4000
    X = np.c_[np.arange(n)[::direction] * 1.0, np.zeros(n)]
    case = Case(X, 1.0, 5.0, {}, {"delta_c": 2.0})
    if blocks == 1:
        clue = case.fit()
    else:
        cuts = (np.arange(1, blocks) * n / blocks, [np.empty(0)] * blocks)
        clue = case.chunked((n // 2, n // 2), Partition(cuts=cuts, period=case.period, halo=case.halo))
        clue.labels_.compute()
    assert 0 < steps[0] <= 100 * n
    assert_right(case, clue)


def test_a_chain_over_many_chunks_is_one_cluster():
    n = 600
    case = Case(np.c_[np.arange(n) * 1.0, np.zeros(n)], 1.0, 2.0, {}, {"delta_c": 2.0, "delta_o": 2.0})
    cuts = (np.arange(1, 150) * 4.0, [np.empty(0)] * 150)
    assert_same_results(case.chunked((100,) * 6, Partition(cuts=cuts, period=case.period, halo=case.halo)), case.fit())


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("wider", [10, 1e2, 1e4])
def test_a_wide_search_looks_at_few_cells(steps, d, wider):
    X = np.random.default_rng(d).uniform(0, 1, (500, d))
    case = Case(X, 0.3 / wider, 1.0, {}, {"delta_c": 0.3})
    assert_right(case, case.fit())


@every_dtype
def test_a_far_point_does_not_hide_how_the_others_lie(dtype, monkeypatch):
    """It is so far away that all others are at one place of the curve that the tree is made along."""
    names, run = [], Host.run
    monkeypatch.setattr(
        Host, "run", lambda self, kernel, *a, **k: (names.append(kernel.__name__), run(self, kernel, *a, **k))
    )
    X = np.random.default_rng(0).uniform(0, 10, (400, 3)).astype(dtype)
    X[7] = 3e8
    case = Case(X, 0.2, 1.0, {}, {"delta_c": 4.0})
    assert_right(case, case.fit())
    assert "_rank_axis" in names


@pytest.mark.parametrize("others", quick_first([{}, {"kernel": "gaussian"}, {"neighbor_weight": 0.5}]), ids=str)
def test_equal_points_are_compared_once(steps, others):
    """All in one place, two hundred in each place, half of all in one."""
    rng, n = np.random.default_rng(0), 2000
    places = rng.uniform(0, 0.03, (n // 200, 2))[rng.integers(0, n // 200, n)]
    for X in (np.zeros((n, 2)), places, np.where(rng.random((n, 1)) < 0.5, 0, rng.normal(size=(n, 2)))):
        columns = {"layer": np.arange(n) % 2, "sample_weight": np.arange(n) % 7 / 4.0}
        case = Case(X, 0.02, 5.0, columns, others)
        clue = case.fit()
        assert_right(case, clue)
        assert_same_results(case.chunked((800, 1200), "space"), clue)


@every_dtype
@pytest.mark.parametrize("others", [{}, {"wrap": {0: 6.2}}, {"wrap": {0: 6.3}}], ids=["open", "6.2", "6.3"])
def test_different_points_at_no_distance(dtype, others, monkeypatch):
    """Squares of tiny differences are 0, and those of points at a period's two ends may be."""
    monkeypatch.setattr(equal_points, "MANY", 2)
    rng = np.random.default_rng(0)
    tiny = float(np.finfo(dtype).smallest_subnormal) ** 0.5 / 4
    end = np.nextafter(dtype(6.2), dtype(0))
    for some in ([0, tiny, -tiny, 1.0], [0, dtype(6.2), dtype(6.3), end, 1e-9], [tiny, 1.0], [0.0, -0.0, 1.0]):
        X = rng.choice(np.array(some, dtype), (300, 2))
        case = Case(X, 0.5, 3.0, {"sample_weight": rng.integers(0, 4, 300).astype(dtype)}, others)
        assert_right(case, case.fit())
