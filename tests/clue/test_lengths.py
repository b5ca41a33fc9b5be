"""Distances by section, by point or by name; points of one layer at both ends of a detector."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import Case, assert_right, assert_same_results, raise_if_dask_computes

import daskclust  # noqa: F401
from daskclust import CLUE
from daskclust.clue.kernels.density import ExponentialKernel

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 9, (300, 2))
SECTION = RNG.choice([120, 200, 300], 300)
DC, DELTA = {120: 1.0, 200: 0.5, 300: 1.75}, {120: 1.0, 200: 3.0, 300: 0.5}
OF_POINTS = {name: np.array([one[s] for s in SECTION.tolist()]) for name, one in (("dc", DC), ("delta_c", DELTA))}


def fit(points=X, section=SECTION, dc=DC, delta_c=DELTA, **others):
    return CLUE(dc, 2.0, delta_c=delta_c, **others).fit(points, section=section)


def test_a_point_is_compared_by_its_own_distance():
    """Of two points 1 apart the one with dc 1 sees the other."""
    clue = CLUE({0: 1.0, 1: 0.5}, 1.0).fit(np.array([[0.0], [1.0]]), layer=np.zeros(2, int), section=np.array([0, 1]))
    np.testing.assert_array_equal(clue.density_, [2.0, 1.0])
    np.testing.assert_array_equal(clue.nearest_higher_, [-1, -1])


def test_sections_columns_and_arrays_are_the_same():
    wanted = fit()
    assert_right(Case(X, DC, 2.0, {"section": SECTION}, {"delta_c": DELTA}), wanted)
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "section": SECTION, "a": OF_POINTS["dc"], "t": SECTION})
    assert_same_results(CLUE(DC, 2.0, delta_c=DELTA).fit(frame), wanted)
    assert_same_results(CLUE("a", 2.0, delta_c=DELTA).fit(frame.drop(columns="section"), section="t"), wanted)
    ds = xr.Dataset.from_dataframe(frame.drop(columns=["section"]))
    ds["a"] = (10 * ds["a"]).assign_attrs(units="mm")
    ds = ds.assign(x=ds["x"].assign_attrs(units="cm"), y=ds["y"].assign_attrs(units="cm"))
    found = ds.clust.clue("a", 2.0, delta_c=DELTA, section="t")
    np.testing.assert_array_equal(found["label"], wanted.labels_)
    np.testing.assert_array_equal(found["is_outlier"], wanted.is_outlier_)
    assert found.attrs["clue"].startswith("dc='a', rhoc=2, delta_c=(120: 1, 200: 3, 300: 0.5)")


def test_rethreshold():
    other = {120: 0.75, 200: 2.0, 300: 0.5}
    fresh = fit(delta_c=other)
    assert_same_results(fit().rethreshold(delta_c=other), fresh)
    assert_same_results(fit().rethreshold(delta_c=0.5), fit(delta_c=0.5))
    with pytest.raises(ValueError, match=r"= 3\.5 is larger than the 3 of the fit"):
        fit().rethreshold(delta_c={120: 1.0, 200: 3.5, 300: 0.5})
    lazy = CLUE(DC, 2.0, delta_c=DELTA).fit(da.from_array(X, chunks=(90, 2)), section=SECTION)
    with raise_if_dask_computes():
        again = lazy.rethreshold(rhoc=3.0)
    assert_same_results(again, fit().rethreshold(rhoc=3.0))
    assert_same_results(lazy.rethreshold(delta_c=0.5), fit(delta_c=0.5))
    with pytest.raises(ValueError, match="delta_c must be one number to rethreshold a dask array"):
        lazy.rethreshold(delta_c=other)


@pytest.mark.parametrize(
    ("parameters", "section", "words"),
    [
        ({"dc": {}}, SECTION, "dc must have a length for each section"),
        ({"dc": {120: 1.0}}, SECTION, r"dc has no length for section (200|300); it has those of \[120\]"),
        ({"dc": {1.5: 1.0}}, SECTION, "a section of dc must be a whole number"),
        ({"dc": {120: -1.0}}, SECTION, r"dc\[120\] must be finite and positive"),
        ({"delta_o": DELTA}, None, "delta_o has a length for each section; say which one"),
        ({"dc": "radius"}, None, "dc names the column 'radius'"),
        ({}, "thickness", "section names the column 'thickness'"),
        ({"dc": np.ones(7)}, None, "dc must have one value for each of the 300 points"),
        ({"delta_c": np.zeros(300)}, None, "each delta_c must be finite and positive"),
        ({"dc": np.full(300, np.nan)}, None, "each dc must be"),
        ({"dc": DC, "kernel": "gaussian"}, SECTION, r"give GaussianKernel\(sigma\)"),
        ({"dc": DC, "kernel": ExponentialKernel()}, SECTION, r"give ExponentialKernel\(length\)"),
    ],
)
@pytest.mark.parametrize("chunks", [None, 70])
def test_what_is_refused(parameters, section, words, chunks):
    points = X if chunks is None else da.from_array(X, chunks=(chunks, 2))
    with pytest.raises((ValueError, TypeError), match=words):
        np.asarray(CLUE(**{"dc": 1.0, "rhoc": 2.0, **parameters}).fit(points, section=section).labels_)


def two_ends():
    """Return hits of five layers at either end, at the same x and y, in turns."""
    n = len(X)
    layer, z = np.arange(n) // 2 % 5, np.where(np.arange(n) % 2, -1.0, 1.0) * RNG.uniform(300, 400, n)
    energy = RNG.integers(1, 5, n) / 4
    columns = {"x": X[:, 0], "y": X[:, 1], "z": z, "layer": layer, "energy": energy}
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()})


@pytest.mark.parametrize("chunks", [None, 70])
def test_layers_of_two_ends_are_kept_apart(chunks):
    hits = two_ends()
    found = (hits if chunks is None else hits.chunk(hit=chunks)).clust.clue(1.0, 1.0).compute()
    together = hits.drop_vars("z").clust.clue(1.0, 1.0)
    count = 0
    for end in (hits["z"] < 0, hits["z"] >= 0):
        alone, its = hits.isel(hit=end.values).clust.clue(1.0, 1.0), found.isel(hit=end.values)
        assert len(np.unique(alone["label"])) == len(np.unique(its["label"]))
        np.testing.assert_array_equal(alone["is_seed"], its["is_seed"])
        np.testing.assert_array_equal(alone["density"], its["density"])
        count += int(alone["label"].max()) + 1
    assert int(found["label"].max()) + 1 == count > int(together["label"].max()) + 1
    assert_same_results(CLUE(1.0, 1.0).fit(hits.to_dataframe()), CLUE(1.0, 1.0).fit(hits))


def test_layers_of_one_end_are_as_they_are():
    hits = two_ends()
    hits["z"] = abs(hits["z"])
    xr.testing.assert_equal(hits.clust.clue(1.0, 1.0)["label"], hits.drop_vars("z").clust.clue(1.0, 1.0)["label"])
