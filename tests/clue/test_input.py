"""Bad input: each error shows the value and says what to do; and input of every class."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import Case, assert_right, assert_same_results

from daskclust import CLUE, ExponentialKernel, GaussianKernel
from daskclust.core.space.partition import Partition

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (80, 2))
LAYER = RNG.integers(0, 3, 80)
ENERGY = RNG.uniform(1, 2, 80)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"rhoc": -1}, ValueError, "rhoc must be finite and not negative, got -1"),
        ({"kernel": "box"}, ValueError, "flat.*'box'"),
        ({"kernel": 3}, TypeError, "got 3"),
        ({"kernel": GaussianKernel(-1.0)}, ValueError, r"sigma must be finite and positive, got -1\.0"),
        ({"kernel": ExponentialKernel(0.0)}, ValueError, r"length must be finite and positive, got 0\.0"),
        ({"wrap": {2: 1.0}}, ValueError, r"axis 2; the axes are \[0, 1\]"),
        ({"wrap": {"phi": 1.0}}, ValueError, "axis 'phi'"),
        ({"wrap": {0: -1.0}}, ValueError, r"wrap\[0\] must be finite and positive, got -1\.0"),
        ({"rhoc": np.ones(7)}, ValueError, r"rhoc must have one value for each of the 80 points.*\(7,\)"),
        ({"rhoc": "cut"}, ValueError, "'cut'"),
    ],
)
def test_parameters(parameters, error, words):
    with pytest.raises(error, match=words):
        CLUE(**{"dc": 1.0, "rhoc": 2.0, **parameters}).fit(X)


@pytest.mark.parametrize("points", [X, da.from_array(X, chunks=(30, 2)), da.from_array(X, chunks=(80, 2))])
def test_rhoc_that_is_no_number(points):
    rhoc = ENERGY.copy()
    rhoc[11] = np.nan
    with pytest.raises(ValueError, match=r"rhoc\[11\] = nan"):
        np.asarray(CLUE(1.0, rhoc).fit(points, layer=LAYER).labels_)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_coordinates_that_are_no_numbers_along_periodic_axes(value):
    bad = X.copy()
    bad[47, 1] = value
    for points in (bad, da.from_array(bad, chunks=(30, 2))):
        with pytest.raises(ValueError, match=r"X\[47, 1\] = .*isfinite"):
            np.asarray(CLUE(1.0, 2.0, wrap={1: 10.0}).fit(points, partition="space").labels_)


def test_read_only_periodic_coordinates_are_not_changed():
    frozen = X.copy()
    frozen.setflags(write=False)
    assert_same_results(CLUE(1.0, 2.0, wrap={0: 4.0}).fit(frozen), CLUE(1.0, 2.0, wrap={0: 4.0}).fit(X))
    np.testing.assert_array_equal(frozen, X)


def test_coordinates_that_are_too_far_apart():
    far = X.copy()
    far[0, 0] = 1e300
    with pytest.raises(ValueError, match=r"1e\+300 along axis 0.*remove far outliers"):
        CLUE(1.0, 2.0).fit(far)


@pytest.mark.parametrize("chunks", [None, 1])
@pytest.mark.parametrize(("event", "layer"), [([0, 1], [2**32 + 5, 5]), ([0, 2**32], [0, 0]), ([0, 1], [2**31, 0])])
def test_events_and_layers_beyond_32_bits(chunks, event, layer):
    points = np.zeros((2, 2)) if chunks is None else da.zeros((2, 2), chunks=(chunks, 2))
    with pytest.raises(ValueError, match=r"event and layer must lie within 32 bits.*np\.unique"):
        np.asarray(CLUE(1.0, 1.0).fit(points, event=np.array(event), layer=np.array(layer)).labels_)


def test_event_and_layer_of_one_point_beside_an_empty_chunk():
    one, zero = da.from_array(np.zeros((1, 1)), chunks=((0, 1), 1)), da.from_array(np.zeros(1, int), chunks=((0, 1),))
    assert CLUE(1.0, 1.0).fit(one, layer=zero, event=zero).labels_.compute() == [0]


@pytest.mark.parametrize(("partition", "words"), [("tiles", "'tiles'"), ("layers", 'partition="layers" needs layer=')])
def test_partition_names(partition, words):
    with pytest.raises(ValueError, match=words):
        CLUE(1.0, 2.0).fit(da.from_array(X, chunks=(30, 2)), partition=partition)


def test_layers_in_two_chunks_are_refused_where_chunks_are_to_be_taken_as_they_are():
    lazy = CLUE(1.0, 2.0).fit(da.from_array(X, chunks=(30, 2)), layer=LAYER, partition="chunks")
    with pytest.raises(ValueError, match=r"layer 0 is in several chunks.*partition"):
        lazy.labels_.compute()


def test_partition_without_the_halo_is_refused():
    small = Partition(cuts=(np.array([5.0]), np.empty(0)), period=(0.0, 0.0), halo=0.5)
    with pytest.raises(ValueError, match=r"halo of 0\.5.*at least"):
        CLUE(1.0, 2.0).fit(da.from_array(X, chunks=(30, 2)), partition=small)


@pytest.mark.parametrize(
    "points",
    [
        X[:2],
        np.stack([X[:, 0], np.full(80, 3.0)], axis=1),
        pytest.param(X[:, :1], marks=pytest.mark.slow),
        pytest.param(X.astype(np.float32), marks=pytest.mark.slow),
    ],
    ids=["two", "constant", "1-d", "float32"],
)
def test_odd_but_right(points):
    assert_right(Case(points), CLUE(1.0, 2.0).fit(points))


def test_data_frames_and_data_sets():
    columns = {"x": X[:, 0], "y": X[:, 1], "layer": LAYER, "energy": ENERGY, "extra": ENERGY}
    expected = CLUE(1.0, 2.0).fit(X, layer=LAYER, sample_weight=ENERGY)
    frame = pd.DataFrame(columns)
    dataset = xr.Dataset({name: ("hit", values) for name, values in columns.items()})
    for points in (frame, dd.from_pandas(frame, npartitions=3), dataset, dataset.chunk(hit=25)):
        assert_same_results(CLUE(1.0, 2.0).fit(points), expected)
    nameless = CLUE(1.0, 2.0).fit(xr.DataArray(X, dims=("hit", "axis")), layer=LAYER, sample_weight=ENERGY)
    assert_same_results(nameless, expected)
    by_name = CLUE(1.0, "extra", wrap={"y": 10.0}).fit(frame)
    assert_same_results(by_name, CLUE(1.0, ENERGY, wrap={1: 10.0}).fit(X, layer=LAYER, sample_weight=ENERGY))
    assert_same_results(by_name.rethreshold(rhoc=3.0), CLUE(1.0, 3.0, wrap={"y": 10.0}).fit(frame))
