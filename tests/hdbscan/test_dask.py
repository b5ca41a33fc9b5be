"""The spanning tree of dask arrays is that of arrays in memory, to the bit, however points are divided."""

import itertools

import dask
import dask.array as da
import numpy as np
import pytest
from cases.clue import raise_if_dask_computes
from cases.lanes import every_shape, quick_first, row_chunks
from cases.steps import some_planes
from cases.trees import Case, cases
from hypothesis import given
from hypothesis import strategies as st

from daskclust import EMST, HDBSCAN
from daskclust.core.space.partition import Chunk, Division
from daskclust.datasets import cosmology_box
from daskclust.hdbscan import block_trees, edge_ranges, far_neighbours, plan
from daskclust.hdbscan.kernels.first_edges import Edges
from daskclust.hdbscan.plan import reach_of


def assert_same(lazy, wanted):
    """Demand the same bits."""
    for name, values in zip(("edges", "weight", "core"), dask.compute(*lazy[:3]), strict=True):
        np.testing.assert_array_equal(values, getattr(wanted, name), err_msg=name, strict=True)


def assert_divided(case, *divisions, halos=(0.0, 0.7, 2.5)):
    """Demand the tree in memory of divisions by planes, whatever the halo, and of blocks that are chosen here."""
    wanted, n = case.in_memory(), len(case.X)
    for cuts, halo in itertools.product(divisions, halos):
        assert_same(case.lazy((n // 2, n - n // 2), case.partition(*cuts, halo=halo)), wanted)
    assert_same(case.lazy((n // 3, 0, n - n // 3)), wanted)


@every_shape
@given(st.data(), cases())
def test_any_division(data, case):
    rows = data.draw(row_chunks(len(case.X)))
    planes = data.draw(some_planes(case.X, case.period))
    halo = data.draw(st.sampled_from([0.0, 0.1, 1.0, 1.0, 3.0]))
    assert_same(case.lazy(rows, case.partition(*planes, halo=halo)), case.in_memory())


@every_shape
@given(st.data(), cases())
def test_any_chunks(data, case):
    """Blocks and halos are chosen here."""
    assert_same(case.lazy(data.draw(row_chunks(len(case.X)))), case.in_memory())


# ------------------------------------------------------------------------------------------------ adversarial divisions
RNG = np.random.default_rng(5)
CUTS = ([[-2.0, 0.0, 2.0]], [[0.0], [0.0]], [[-3.0, -1.0, 1.0, 3.0], [-2.0, 2.0]])


@pytest.mark.parametrize("min_samples", [1, 5])
def test_component_that_winds_through_blocks(min_samples):
    """A snake whose arms are nearer to each other in one block than any of its points elsewhere."""
    s = np.linspace(0, 12, 120)
    X = np.stack([4 * np.sin(s), s / 2 - 3 + 0.2 * np.cos(5 * s)], axis=1)[RNG.permutation(120)]
    assert_divided(Case(X, min_samples), *CUTS)


@pytest.mark.parametrize("min_samples", [1, 4])
def test_all_points_equal(min_samples):
    assert_divided(Case(np.full((40, 2), 0.5), min_samples), *CUTS, [[0.5]])


@pytest.mark.parametrize(("min_samples", "period"), [(1, ()), (6, ()), (6, (5.0, 5.0))])
def test_lattice(min_samples, period):
    """All edges of one length: ids decide, in blocks and between them."""
    X = np.stack(np.meshgrid(*[np.arange(-2.5, 2.5, 0.5)] * 2), axis=-1).reshape(-1, 2)[RNG.permutation(100)]
    case = Case(X, min_samples, period)
    cuts = [[[1.0, 2.5, 4.0]], [[2.5], [0.25, 3.0]]] if period else [*CUTS, [[0.25], [0.5]]]
    assert_divided(case, *cuts, halos=(0.0, 0.5, 1.0))


@pytest.mark.parametrize("min_samples", [1, 5])
def test_far_outlier(min_samples):
    X = RNG.normal(0, 1, (80, 2))
    X[17] = 1e9, -1e9
    X[40] = -300.0, 0.0
    assert_divided(Case(X, min_samples), *CUTS)


@pytest.mark.parametrize("min_samples", [1, 5])
def test_gap_that_is_wider_than_blocks(min_samples):
    """Two clusters that no halo joins: each of several blocks, each in one block, and with empty blocks between."""
    X = np.concatenate([RNG.normal((-20, 0), 1, (60, 2)), RNG.normal((20, 0), 1, (50, 2)), [[0.0, 30.0]]])
    case = Case(X[RNG.permutation(111)], min_samples)
    assert_divided(case, [[-21.0, -20.0, -19.0, 19.5, 20.5]], [[0.0]], [[-5.0, 0.0, 5.0], [-9.0, 9.0, 20.0]])


@pytest.mark.parametrize("min_samples", [1, 3])
def test_many_small_clusters(min_samples):
    """None percolates: most points are outside of the largest component."""
    centres = RNG.uniform(-50, 50, (40, 3))
    X = np.repeat(centres, 3, axis=0) + RNG.normal(0, 0.01, (120, 3))
    assert_divided(Case(X, min_samples), *CUTS, [[-30.0, 0.0, 30.0], [0.0], [10.0]])


def test_one_point_a_chunk():
    X = RNG.normal(0, 3, (24, 2))
    for min_samples in (1, 5, 24):
        case = Case(X, min_samples)
        every = np.sort(X[:, 0])[1:]
        for halo in (0.0, 1.0):
            assert_same(case.lazy((1,) * 24, case.partition(every, halo=halo)), case.in_memory())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("min_samples", [1, 5])
def test_periodic_shift(dtype, min_samples):
    """Whole periods away points are the same, and blocks meet around the box."""
    X = np.round(RNG.uniform(0, 8, (90, 2)) * 16) / 16
    shifted = (X + 8 * RNG.integers(-2, 3, X.shape)).astype(dtype)
    case = Case(shifted, min_samples, (8.0, 8.0))
    wanted = Case(X.astype(dtype), min_samples, (8.0, 8.0)).in_memory()
    for cuts, halo in itertools.product(([[2.0, 4.0, 6.0]], [[4.0], [1.0, 7.0]]), (0.0, 1.0, 9.0)):
        assert_same(case.lazy((50, 40), case.partition(*cuts, halo=halo)), wanted)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_points(n):
    for rows in ((n,), (0, n, 0)):
        assert_same(Case(np.ones((n, 2))).lazy(rows), Case(np.ones((n, 2))).in_memory())


@given(st.data(), cases())
def test_edges_in_several_chunks(data, case):
    """A tree of many chunks, which one worker never has as a whole, is that of one."""
    planes, n = data.draw(some_planes(case.X, case.period)), len(case.X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "EDGES", data.draw(st.integers(1, 40)))
        patch.setattr(edge_ranges, "_STEP", data.draw(st.integers(1, 5)))
        lazy = case.lazy((n // 2, n - n // 2), case.partition(*planes))
        assert len(lazy.weight.chunks[0]) == max(1, -(-(n - 1) // plan.EDGES))
        assert_same(lazy, case.in_memory())
        one = lazy.one.compute()[0, 0]
    np.testing.assert_array_equal(one.edges, case.in_memory().edges)


# ---------------------------------------------------------------------------------------------------------- lazy arrays
def test_nothing_is_computed_but_a_sample():
    case = Case(RNG.normal(0, 2, (200, 2)), 5)
    with raise_if_dask_computes():
        lazy = case.lazy((60, 140), case.partition([0.0], [0.0]))
    assert lazy.core.chunks == ((60, 140),)
    assert lazy.edges.shape == (199, 2)
    assert lazy.weight.shape == (199,)
    assert_same(lazy, case.in_memory())


@pytest.mark.parametrize("scheduler", quick_first(["threads", "processes"]))
def test_schedulers(scheduler):
    case = Case(RNG.normal(0, 2, (300, 3)), 4)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        assert_same(case.lazy((70, 130, 100)), case.in_memory())


@pytest.mark.parametrize("processes", [pytest.param(True, marks=pytest.mark.slow), False])
def test_distributed(processes):
    from daskclust import workers

    case = Case(RNG.normal(0, 2, (300, 3)), 4)
    with workers.start(2, processes=processes) as client, dask.config.set(scheduler=client):
        assert_same(case.lazy((70, 130, 100)), case.in_memory())


def test_point_that_is_not_finite():
    X = RNG.normal(0, 2, (50, 2))
    X[31, 1] = np.nan
    with pytest.raises(ValueError, match="31"):
        Case(X).lazy((20, 30)).edges.compute()


def test_other_partitions_are_refused():
    with pytest.raises(ValueError, match="partition must be"):
        Case(RNG.normal(0, 2, (50, 2))).lazy((20, 30), "layers")


# ---------------------------------------------------------------------------------------------------------- estimators
RESULTS = ("labels_", "probabilities_", "outlier_scores_", "core_distances_", "n_clusters_")
TREES = ("single_linkage_tree_", "minimum_spanning_tree_", "condensed_tree_")


@pytest.mark.parametrize("parameters", [{}, {"min_samples": 1}, {"min_samples": 400}, {"alpha": 1.5}])
def test_hdbscan(parameters):
    X = RNG.normal(RNG.uniform(0, 20, (6, 1, 2)), 1, (6, 60, 2)).reshape(-1, 2)[RNG.permutation(360)]
    wanted, rows = HDBSCAN(8, **parameters).fit(X), (100, 0, 260)
    lazy = HDBSCAN(8, **parameters).fit(da.from_array(X, chunks=(rows, 2)))
    for name, values in dask.compute({name: getattr(lazy, name) for name in RESULTS + TREES})[0].items():
        np.testing.assert_array_equal(values, getattr(wanted, name), err_msg=name)
        assert getattr(lazy, name).dtype == np.asarray(getattr(wanted, name)).dtype
    for name in RESULTS[:-1]:
        assert getattr(lazy, name).chunks == (rows,)
    np.testing.assert_array_equal(lazy.dbscan_clustering(1.0).compute(), wanted.dbscan_clustering(1.0))
    few = {"min_cluster_size": 20, "cluster_selection_method": "leaf"}
    np.testing.assert_array_equal(lazy.rethreshold(**few).labels_.compute(), wanted.rethreshold(**few).labels_)


def test_emst():
    X = RNG.uniform(0, 4, (200, 3))
    wanted, lazy = EMST(4.0).fit(X), EMST(4.0).fit(da.from_array(X, chunks=((90, 110), 3)))
    for name in ("edges_", "lengths_", "linkage_"):
        np.testing.assert_array_equal(getattr(lazy, name).compute(), getattr(wanted, name))
    assert (lazy.graph_ != wanted.graph_).nnz == 0


# ------------------------------------------------------------------------------------------------------ what is sent
def test_halo_by_a_sample():
    """Nearly all points are of one component, and few are copied, whether data is clustered or uniform."""
    ds = cosmology_box(20_000, rng=0)
    box = np.stack([ds[axis].values for axis in "xyz"], axis=1)
    side = ds.attrs["boxsize"]
    for X, most in ((box, 3.0), (RNG.uniform(0, side, (20_000, 3)), 2.5)):
        case = Case(X, 1, (side,) * 3)
        halo = case.plan().halo_by(X[::7])
        assert 0.7 < halo / (side / 20_000 ** (1 / 3)) < most
    assert Case(np.ones((10, 2))).plan().halo_by(np.ones((10, 2))) > 0
    assert Case(np.ones((0, 2))).plan().halo_by(np.ones((0, 2))) > 0


def test_outsiders_are_near_what_they_may_meet():
    """Points of the smaller cluster ask that are not farther from the other one than an edge that is known."""
    left, right = RNG.uniform((-8, 0), (-1, 7), (300, 2)), RNG.uniform((1, 0), (8, 7), (280, 2))
    case = Case(np.concatenate([left, right]), 1, (0.0, 0.0))
    partition = case.partition([-4.0, 0.0, 4.0], [3.5], halo=0.7)
    setting = far_neighbours.BlockSetting(1, reach_of(Division(partition)), case.plan().period, 1.0)
    chunks = partition.split({"X": case.X}, 0)
    local = [block_trees.tree_of(setting, chunk) for chunk in chunks]
    meeting = block_trees.meeting_of(setting, [each.sent for each in local])
    forest = block_trees.forest_of([block_trees.named(each.sent, each.parts, meeting) for each in local])
    given = zip(chunks, [each.parts for each in local], forest.slices, strict=True)
    points = [block_trees.open_points(setting, *each, forest.between, k) for k, each in enumerate(given)]
    boxes = [mine.boxes for mine in points]
    asking = [block_trees.outsiders_of(setting, mine, boxes, forest.between, k) for k, mine in enumerate(points)]
    outsiders = block_trees.joined_outsiders(asking)
    assert 0 < len(outsiders.component) < sum((mine.points.component > 0).sum() for mine in points) < 280
    edge = case.in_memory().weight[-1]
    assert edge > setting.reach**2  # the halo does not tell the edge over the gap
    assert forest.between[0, 1] >= edge


@given(st.data(), cases())
def test_first_edges(data, case):
    """What a block answers is what all pairs say."""
    points = far_neighbours.IdPoints.of(Chunk({"X": case.X}), case.plan().period)
    is_asking = np.arange(len(case.X)) % 3 == 0
    k = data.draw(st.integers(1, 4))
    groups = np.sort(np.random.default_rng(k).integers(0, 4, is_asking.sum()))
    core = np.random.default_rng(0).choice([0.0, 1.0, 4.0], len(case.X))
    points = points._replace(core=core)
    asking, among = points.at(is_asking), points.at(~is_asking)
    first = Edges(*(np.full((4, k), fill) for fill in (np.inf, np.inf, -1, -1)))
    far_neighbours.search(asking, np.searchsorted(groups, np.arange(5)), among, first, case.plan().period, case.alpha)
    for group in range(4):
        ends = [(a, b) for a in np.flatnonzero(is_asking)[groups == group] for b in np.flatnonzero(~is_asking)]
        ends = np.sort(np.array(ends, np.int64).reshape(-1, 2), axis=1)
        length = block_trees.edges_of(points, ends, np.zeros(len(ends)), case.plan().period).length
        weight = np.maximum(np.maximum(core[ends[:, 0]], core[ends[:, 1]]), length / (case.alpha * case.alpha))
        every = edge_ranges.in_order([Edges(weight, length, *ends.T)])
        for found, wanted in zip(first, every, strict=True):
            count = min(k, len(ends))
            np.testing.assert_array_equal(found[group, :count], wanted[:count])
