"""On dask nothing is computed before it is asked for, and other thresholds need no densities again."""

import functools

import dask
import dask.array as da
import numpy as np
import pytest
from cases.clue import assert_same_results, raise_if_dask_computes, results
from cases.steps import Steps
from hypothesis import given
from hypothesis import strategies as st

from daskclust import CLUE
from daskclust.core.device.kernels import Kernel

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 12, (300, 2))
LAYER = RNG.integers(0, 5, 300)
WEIGHT = RNG.uniform(0.5, 1.5, 300)


@functools.cache
def wanted():
    """Return the answer in memory."""
    return CLUE(1.0, 3.0, delta_o=2.0).fit(X, layer=LAYER, sample_weight=WEIGHT)


def lazy(partition, rows=70, **parameters):
    return CLUE(1.0, 3.0, **{"delta_o": 2.0, **parameters}).fit(
        da.from_array(X, chunks=(rows, 2)),
        layer=da.from_array(LAYER, chunks=rows),
        sample_weight=da.from_array(WEIGHT, chunks=rows),
        partition=partition,
    )


@pytest.fixture
def kernels_run(monkeypatch):
    """Return the list of the names of kernels that run."""
    names = []
    original = Kernel.run

    def run(self, *args, **options):
        names.append(self.__name__)
        original(self, *args, **options)

    monkeypatch.setattr(Kernel, "run", run)
    return names


def test_rethreshold_computes_nothing():
    with raise_if_dask_computes():
        again = lazy("auto").rethreshold(rhoc=4.0)
    assert isinstance(again.n_clusters_, da.Array)
    assert_same_results(again, wanted().rethreshold(rhoc=4.0))


@given(rhoc=st.floats(0, 8), delta_c=st.floats(0.1, 2.0), delta_o=st.floats(0.1, 2.0), chunked=st.booleans())
def test_rethreshold_equals_a_new_fit(rhoc, delta_c, delta_o, chunked):
    thresholds = {"rhoc": rhoc, "delta_c": delta_c, "delta_o": delta_o}
    first = lazy("space") if chunked else wanted()
    fresh = CLUE(1.0, **thresholds).fit(X, layer=LAYER, sample_weight=WEIGHT)
    assert_same_results(first.rethreshold(**thresholds), fresh)


def test_rethreshold_twice_and_with_a_rhoc_for_each_point():
    rhoc = RNG.uniform(1, 5, 300)
    once = wanted().rethreshold(rhoc=rhoc)
    fresh = CLUE(1.0, rhoc, delta_o=2.0).fit(X, layer=LAYER, sample_weight=WEIGHT)
    assert_same_results(once, fresh)
    assert_same_results(
        once.rethreshold(delta_o=1.5), CLUE(1.0, rhoc, delta_o=1.5).fit(X, layer=LAYER, sample_weight=WEIGHT)
    )
    chunked = CLUE(1.0, rhoc, delta_o=2.0).fit(da.from_array(X, chunks=(70, 2)), layer=LAYER, sample_weight=WEIGHT)
    assert_same_results(chunked, fresh)
    assert_same_results(chunked.rethreshold(rhoc=3.0), wanted())


@pytest.mark.parametrize("make", [wanted, functools.partial(lazy, "layers")], ids=["memory", "dask"])
def test_reach_may_not_grow(make):
    clue = make()
    with pytest.raises(ValueError, match=r"= 2\.5 is larger than the 2 of the fit; fit again"):
        clue.rethreshold(delta_c=2.5)


@pytest.mark.parametrize("partition", ["layers", "space"])
def test_persisted_densities_are_not_computed_again(partition, kernels_run):
    clue = lazy(partition)
    clue.persist()
    assert "density" in kernels_run
    kernels_run.clear()
    with Steps() as steps:
        for rhoc in (2.0, 4.0):
            assert_same_results(clue.rethreshold(rhoc=rhoc), wanted().rethreshold(rhoc=rhoc))
        assert_same_results(clue, wanted())
    assert "classify" in kernels_run
    assert "density" not in kernels_run
    assert {name for name in steps.names if name.startswith("daskclust-clue")} >= {
        "daskclust-clue-local",
        "daskclust-clue-merge",
        "daskclust-clue-finish",
    }


@pytest.mark.parametrize("partition", ["layers", "space"])
def test_only_what_is_asked_for_is_made(partition, kernels_run):
    """Densities do not wait for the merge, nor do labels take them along while they wait."""
    clue = lazy(partition)
    kernels_run.clear()
    clue.labels_.compute(scheduler="synchronous")
    assert "end_of_chain" in kernels_run
    assert "emit" not in kernels_run
    kernels_run.clear()
    with Steps() as steps:
        clue.density_.compute(scheduler="synchronous")
    assert "emit" in kernels_run
    assert {"classify", "find_root", "end_of_chain"}.isdisjoint(kernels_run)
    assert not any("merge" in name for name in steps.names)


@pytest.mark.slow
def test_functions_as_kernels_on_processes():
    with dask.config.set(scheduler="processes", num_workers=2):
        lazy = CLUE(1.0, 2.0, kernel=lambda d: 1 / (1 + d)).fit(da.from_array(X, chunks=(100, 2)))
        got = results(lazy)
    assert_same_results(CLUE(1.0, 2.0, kernel=lambda d: 1 / (1 + d)).fit(X), got)
