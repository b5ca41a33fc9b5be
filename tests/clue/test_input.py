"""Bad input to CLUE alone: each error shows the value and says what to do; what all systems share is in `laws`."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from cases.clue import Case, assert_right, assert_same_results

from daskclust import CLUE, ExponentialKernel, GaussianKernel
from daskclust.core.space.partition import Partition

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (80, 2))
LAYER = RNG.integers(0, 3, 80)
ENERGY = RNG.uniform(1, 2, 80)
THIN = Partition(cuts=(np.array([5.0]), np.empty(0)), period=(0.0, 0.0), halo=0.5)


def with_value(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def lazy(values):
    return da.from_array(values, chunks=(30, *values.shape[1:]))


@pytest.mark.parametrize(
    ("parameters", "points", "how", "words"),
    [
        ({"kernel": 3}, X, {}, "got 3"),
        ({"kernel": GaussianKernel(-1.0)}, X, {}, r"sigma must be finite and positive, got -1\.0"),
        ({"kernel": ExponentialKernel(0.0)}, X, {}, r"length must be finite and positive, got 0\.0"),
        ({"wrap": {2: 1.0}}, X, {}, r"axis 2; the axes are \[0, 1\]"),
        ({"wrap": {"phi": 1.0}}, X, {}, "axis 'phi'"),
        ({"wrap": {0: -1.0}}, X, {}, r"wrap\[0\] must be finite and positive, got -1\.0"),
        ({"rhoc": np.ones(7)}, X, {}, r"rhoc must have one value for each of the 80 points.*\(7,\)"),
        ({"rhoc": "cut"}, X, {}, "'cut'"),
        *(({"rhoc": with_value(ENERGY, 11, np.nan)}, x, {"layer": LAYER}, r"rhoc\[11\] = nan") for x in (X, lazy(X))),
        ({}, with_value(X, (0, 0), 1e300), {}, r"1e\+300 along axis 0.*remove far outliers"),
        *(
            ({"wrap": {1: 10.0}}, x, {"partition": "space"}, r"X\[47, 1\] = .*isfinite")
            for value in (np.nan, -np.inf)
            for x in (with_value(X, (47, 1), value), lazy(with_value(X, (47, 1), value)))
        ),
        ({}, lazy(X), {"partition": "tiles"}, "'tiles'"),
        ({}, lazy(X), {"partition": "layers"}, 'partition="layers" needs layer='),
        ({}, lazy(X), {"partition": "chunks", "layer": LAYER}, r"layer 0 is in several chunks.*partition"),
        ({}, lazy(X), {"partition": THIN}, r"halo of 0\.5.*at least"),
    ],
)
def test_what_is_refused(parameters, points, how, words):
    with pytest.raises((ValueError, TypeError), match=words):
        np.asarray(CLUE(**{"dc": 1.0, "rhoc": 2.0, **parameters}).fit(points, **how).labels_)


@pytest.mark.parametrize("chunks", [None, 1])
@pytest.mark.parametrize(("event", "layer"), [([0, 1], [2**32 + 5, 5]), ([0, 2**32], [0, 0]), ([0, 1], [2**31, 0])])
def test_events_and_layers_beyond_32_bits(chunks, event, layer):
    points = np.zeros((2, 2)) if chunks is None else da.zeros((2, 2), chunks=(chunks, 2))
    with pytest.raises(ValueError, match=r"event and layer must lie within 32 bits.*np\.unique"):
        np.asarray(CLUE(1.0, 1.0).fit(points, event=np.array(event), layer=np.array(layer)).labels_)


def test_event_and_layer_of_one_point_beside_an_empty_chunk():
    one, zero = da.from_array(np.zeros((1, 1)), chunks=((0, 1), 1)), da.from_array(np.zeros(1, int), chunks=((0, 1),))
    assert CLUE(1.0, 1.0).fit(one, layer=zero, event=zero).labels_.compute() == [0]


def test_read_only_periodic_coordinates_are_not_changed():
    frozen = X.copy()
    frozen.setflags(write=False)
    assert_same_results(CLUE(1.0, 2.0, wrap={0: 4.0}).fit(frozen), CLUE(1.0, 2.0, wrap={0: 4.0}).fit(X))
    np.testing.assert_array_equal(frozen, X)


def test_a_constant_coordinate():
    points = np.stack([X[:, 0], np.full(80, 3.0)], axis=1)
    assert_right(Case(points), CLUE(1.0, 2.0).fit(points))


def test_columns_by_name():
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "layer": LAYER, "energy": ENERGY, "extra": ENERGY})
    expected = CLUE(1.0, 2.0).fit(X, layer=LAYER, sample_weight=ENERGY)
    assert_same_results(CLUE(1.0, 2.0).fit(frame), expected)
    by_name = CLUE(1.0, "extra", wrap={"y": 10.0}).fit(frame)
    assert_same_results(by_name, CLUE(1.0, ENERGY, wrap={1: 10.0}).fit(X, layer=LAYER, sample_weight=ENERGY))
    assert_same_results(by_name.rethreshold(rhoc=3.0), CLUE(1.0, 3.0, wrap={"y": 10.0}).fit(frame))
