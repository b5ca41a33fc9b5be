"""Windows of host memory in lanes of a GPU: what is refused before any work, and where windows end.

Their clusters are tested in tests/gpu/test_gpu_windows.py.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskclust import EventBuilder
from daskclust.datasets import timepix
from daskclust.readout.gpu import cluster_on_gpu, quiet_windows


@pytest.fixture(scope="module")
def hits():
    return timepix(3000, kind="pion45", rate=1e6, chips=2, rng=0).drop_vars("truth")


def changed(hits, **columns):
    return {name: columns.get(name, hits[name].values) for name in ("x", "y", "toa", "chip")}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [1, 2]}, r"x must have one value for each of the 3000 points of X, got shape \(2,\)"),
        ({"toa": np.full(3000, 2**60)}, "beyond 2\\*\\*53"),
    ],
)
def test_columns_are_checked_as_by_the_estimator(hits, columns, words):
    wrong = changed(hits, **columns)
    for call in (EventBuilder(200.0).fit, lambda wrong: cluster_on_gpu(wrong, EventBuilder(200.0))):
        with pytest.raises(ValueError, match=words):
            call(wrong)


def test_hits_elsewhere_are_refused(hits):
    lazy = changed(hits, toa=da.from_array(hits["toa"].values))
    with pytest.raises(TypeError, match=r"must be in host memory, got .*dask.*; EventBuilder\.fit takes"):
        cluster_on_gpu(lazy, EventBuilder(200.0))


# ---------------------------------------------------------------------------------------------------- where windows end
def test_windows_end_at_quiet_gaps(hits):
    toa = hits["toa"].values
    begin = quiet_windows(toa, 200.0, 100)
    assert len(begin) > 5
    assert (np.diff(begin)[:-1] >= 100).all()
    assert (toa[begin[1:-1]] - toa[begin[1:-1] - 1] > 200.0).all()
    assert (begin[0], begin[-1]) == (0, 3000)


def test_a_gap_of_dt_max_is_not_quiet():
    toa = np.array([0.0, 100.0, 200.0, 300.0 + 2**-20, 400.0])
    assert quiet_windows(toa, 100.0, 1).tolist() == [0, 3, 5]


@pytest.mark.parametrize("gap", [0, 1, 4095, 4096, 4097, 99_998])
def test_a_gap_is_found_wherever_it_is(gap):
    """Stretches of growing length are looked at, one after the other."""
    toa = np.arange(200_000.0)
    toa[100_000 + gap :] += 10
    assert quiet_windows(toa, 5.0, 100_000).tolist() == [0, 100_000 + gap, 200_000]
    assert quiet_windows(toa, 15.0, 100_000).tolist() == [0, 200_000]


def test_few_hits_and_times_that_are_no_number():
    """They are refused when the windows are clustered."""
    for toa, wanted in (([], [0]), ([3.0], [0, 1]), ([1.0, np.nan, 2.0], [0, 3]), ([-np.inf, -np.inf], [0, 2])):
        assert quiet_windows(np.array(toa), 1.0, 1).tolist() == wanted
