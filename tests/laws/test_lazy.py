"""On dask nothing is computed before it is asked for, but for one pass that looks for blocks; and schedulers agree."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import pytest
from cases import clue, dbscan, events, hca
from cases.clue import counted_computes, raise_if_dask_computes
from cases.lanes import quick_first
from cases.steps import Steps

from daskclust.core.space.partition import Partition

RNG = np.random.default_rng(3)
X, CELLS = RNG.uniform(0, 12, (300, 2)), hca.gaussians(RNG, 300, 3)
LAYER, WEIGHT, APRIORI = RNG.integers(0, 5, 300), RNG.integers(1, 8, 300) / 4, RNG.integers(-1, 12, 300)
LEVELS = np.stack([APRIORI, np.where(APRIORI < 0, -1, APRIORI // 4)], axis=1)
HITS = events.dense(300, 3, ticks=1500)
ROWS = (70, 0, 70, 70, 70, 20)
CLUE = ("labels", "density", "delta", "nearest_higher", "is_seed"), ("n_clusters",)
CORES = ("labels", "is_core"), ("n_clusters",)
HITS_HAVE = ("labels",), ("n_clusters",)
CELLS_HAVE = ("labels", "point_heights"), ("linkage", "is_monotone", "n_apriori_merges")


class Lazy(NamedTuple):
    """A case, results for points and about all of them, and partitions that take no pass, and that take one."""

    case: Any
    results: tuple[tuple[str, ...], tuple[str, ...]]
    without_pass: tuple[Any, ...]
    with_pass: tuple[str, ...]


def blocks(case):
    return case.partition([4.0, 8.0], [6.0])


def of_points(case):
    return Lazy(case, CORES, (blocks(case),), ("auto", "space"))


layered = {"layer": LAYER, "sample_weight": WEIGHT}
windows = Partition(cuts=(np.array([500.3]),), period=(0.0,))
CASES = {
    "clue": Lazy(clue.Case(X, 1.0, 3.0, layered, {"delta_o": 2.0}), CLUE, ("auto", "layers"), ("space",)),
    "dbscan": of_points(dbscan.Case(X, 0.8, 4)),
    "weights": of_points(dbscan.Case(X, 0.8, 5, WEIGHT)),
    "periodic": of_points(dbscan.Case(X, 0.8, 4, None, (12.0, 0.0))),
    "friends": of_points(dbscan.Case(X, 0.6, min_members=3)),
    "three axes": of_points(dbscan.Case(RNG.uniform(0, 5, (300, 3)), 0.8, 4)),
    **{
        variant: Lazy(events.Case(HITS, 40.0, {"variant": variant, "min_hits": 2}), HITS_HAVE, others, ("windows",))
        for variant, others in (("local", ("auto", "chunks", windows)), ("global", ("auto",)), ("static", ("auto",)))
    },
    "no apriori clusters": Lazy(hca.Case(CELLS, 0.1), CELLS_HAVE, ("auto",), ()),
    "apriori": Lazy(hca.Case(CELLS, 0.1, APRIORI), CELLS_HAVE, (), ("auto",)),
    "one apriori cluster": Lazy(hca.Case(CELLS, 0.1, np.zeros(300, int)), CELLS_HAVE, (), ("auto",)),
    "levels": Lazy(hca.Case(CELLS, 20, LEVELS, {"rule": "mahal"}), CELLS_HAVE, (), ("auto",)),
    "full": Lazy(hca.Case(CELLS, 0.1, APRIORI, {"distance": "full", "order": "groups"}), CELLS_HAVE, (), ("auto",)),
}
SYSTEM_OF = {
    "clue": "clue", **dict.fromkeys(("local", "global", "static"), "events"), "friends": "fof",
    **dict.fromkeys(("dbscan", "weights", "periodic", "three axes"), "dbscan"),
}  # fmt: skip
every_case = pytest.mark.parametrize("name", CASES)


def results(name, fitted):
    return {each: getattr(fitted, f"{each}_") for each in sum(CASES[name].results, ())}


def assert_right(name, fitted):
    found, wanted = dask.compute(results(name, fitted))[0], results(name, CASES[name].case.fit())
    for each, values in wanted.items():
        np.testing.assert_array_equal(found[each], values, err_msg=each)
        assert np.asarray(found[each]).dtype == np.asarray(values).dtype


@every_case
def test_fit_computes_nothing(name):
    """Neither do results, which have the chunks and types of the input."""
    (of_points, of_all), case = CASES[name].results, CASES[name].case
    given = [(ROWS, partition) for partition in CASES[name].without_pass] + [((300,), "auto"), ((300,), "chunks")]
    for rows, partition in given:
        with raise_if_dask_computes():
            lazy = case.chunked(rows, partition)
            arrays = results(name, lazy)
        assert all(isinstance(array, da.Array) for array in arrays.values())
        assert all(arrays[each].chunks == (rows,) for each in of_points)
        assert all(arrays[each].shape == () for each in of_all if each != "linkage")
        assert arrays["labels"].blocks[0].compute().dtype == arrays["labels"]._meta.dtype == np.int64
        assert_right(name, lazy)


@every_case
def test_one_pass(name):
    for partition in CASES[name].with_pass:
        with counted_computes(1) as computes:
            lazy = CASES[name].case.chunked(ROWS, partition)
            results(name, lazy)
        assert len(computes) == 1
        assert_right(name, lazy)


@every_case
def test_empty_chunks(name):
    for rows in ((0, 120, 0, 180, 0), (0, 0, 300)):
        assert_right(name, CASES[name].case.chunked(rows, "auto"))


@every_case
def test_steps_are_named_and_one_merge_serves_all_results(name):
    (case, *_), system = CASES[name], {**dict.fromkeys(CASES, "hca"), **SYSTEM_OF}[name]
    with Steps() as steps:
        dask.compute(*results(name, case.chunked(ROWS, "auto")).values(), optimize_graph=False)
    ours = [each.removeprefix(f"daskclust-{system}-") for each in steps.names if each.startswith("daskclust-")]
    assert ours.count("merge") == 1
    assert "local" in ours


@pytest.mark.parametrize("scheduler", quick_first(["threads", "processes"]))
def test_schedulers(scheduler):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        for name in ("clue", "dbscan") if scheduler == "processes" else CASES:
            assert_right(name, CASES[name].case.chunked(ROWS, "auto"))


@pytest.mark.parametrize("processes", [pytest.param(True, marks=pytest.mark.slow), False])
def test_distributed(processes):
    from daskclust import workers

    with workers.start(2, processes=processes) as client, dask.config.set(scheduler=client):
        for name in CASES if processes else ("clue", "periodic", "local", "apriori"):
            case, _, *partitions = CASES[name]
            for partition in sum(partitions, ()):
                assert_right(name, case.chunked(ROWS, partition))


def test_one_fit_does_not_know_another():
    """Keys of lazy results depend on points and parameters: fits computed together do not mix."""
    cases = [dbscan.Case(X, eps, m) for eps in (0.5, 0.8) for m in (3, 4)] + [dbscan.Case(X + 1, 0.5, 3)]
    cases += [dbscan.Case(X, 0.5, 3, WEIGHT), hca.Case(CELLS, 0.1, APRIORI), hca.Case(CELLS, 0.3, APRIORI)]
    cases += [hca.Case(CELLS + 1, 0.1, APRIORI), hca.Case(CELLS, 0.1, APRIORI // 2)]
    lazy = [case.chunked(ROWS).labels_ for case in cases]
    for case, labels in zip(cases, dask.compute(*lazy), strict=True):
        np.testing.assert_array_equal(labels, case.fit().labels_)
