"""Friends-of-friends by ``b``, a fraction of the mean separation: the length that is used, and what is refused."""

from __future__ import annotations

from typing import Any

import awkward as ak
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.lanes import quick_first
from sklearn.base import clone

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.data.inputs import split_points


def frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"axis {k}" for k in range(X.shape[1])])


CLASSES = {
    "numpy": np.asarray,
    "float32": np.float32,
    "dask": lambda X: da.from_array(X, chunks=(17, X.shape[1])),
    "pandas": frame,
    "mapping": lambda X: {f"axis {k}": column for k, column in enumerate(X.T)},
    "xarray": lambda X: xr.Dataset({f"axis {k}": ("point", column) for k, column in enumerate(X.T)}),
}


@pytest.mark.parametrize("made", CLASSES)
@pytest.mark.parametrize("seed", quick_first(range(12), 3))
def test_a_fraction_of_the_mean_separation(seed: int, made: str) -> None:
    """Of drawn points in 1 to 4 dimensions, in boxes with one side or one for each axis."""
    rng = np.random.default_rng(seed)
    n, d, b = int(rng.integers(1, 200)), int(rng.integers(1, 5)), float(rng.uniform(0.1, 0.45))
    sides = [float(rng.uniform(5, 20))] * d if seed % 2 else rng.uniform(5, 20, d).tolist()
    X, boxsize = rng.uniform(0, 1, (n, d)) * sides, sides[0] if seed % 2 else sides
    length = b * (np.prod(sides) / n) ** (1 / d)
    if 2 * length > min(sides):
        with pytest.raises(ValueError, match="at most half of the box"):
            FriendsOfFriends(b=b, boxsize=boxsize).fit(X)
        return
    found = FriendsOfFriends(b=b, boxsize=boxsize).fit(CLASSES[made](X))
    assert found.linking_length_ == pytest.approx(length, rel=1e-14)
    assert (found.b, found.linking_length) == (b, None)
    wanted = FriendsOfFriends(found.linking_length_, boxsize=boxsize).fit(np.float32(X) if made == "float32" else X)
    assert wanted.linking_length_ == found.linking_length_
    np.testing.assert_array_equal(np.asarray(found.labels_), wanted.labels_)


@pytest.mark.parametrize("attrs", [{}, {"boxsize": 0.0}, {"boxsize": 9.0}, {"boxsize": [9.0, 8.0, None]},
                                   {"boxsize": 90.0, "boxsize_units": "mm"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("axes", ["xyz", "yx", "z"])
def test_the_box_of_a_dataset(attrs: dict[str, Any], axes: str) -> None:
    """It is taken unasked; None is an open one, and arrays and tables have none."""
    X = np.random.default_rng(0).uniform(0, 8, (200, 3))
    ds = xr.Dataset({axis: ("particle", x, {"units": "cm"}) for axis, x in zip("xyz", X.T, strict=True)}, attrs=attrs)
    known = {"boxsize": 9.0} if "boxsize_units" in attrs else attrs
    sides = dict(zip("xyz", np.broadcast_to(known.get("boxsize", 0.0), 3), strict=True))
    chosen, box = X[:, ["xyz".index(axis) for axis in axes]], [sides[axis] or None for axis in axes]
    points = split_points(ds, (), list(axes))
    for one in (FriendsOfFriends(0.7), DBSCAN(0.9, min_samples=3)):
        wanted = clone(one).set_params(boxsize=box).fit(chosen)
        np.testing.assert_array_equal(clone(one).fit(points).labels_, wanted.labels_)
        is_open = clone(one).set_params(boxsize=None)
        np.testing.assert_array_equal(is_open.fit(points).labels_, clone(one).fit(chosen).labels_)
    by_mean = FriendsOfFriends(b=0.2)
    if all(box):
        assert by_mean.fit(points).linking_length_ == FriendsOfFriends(b=0.2, boxsize=box).fit(chosen).linking_length_
    else:
        with pytest.raises(ValueError, match=r"got boxsize=.* of .*; give boxsize=, its side"):
            by_mean.fit(points)


def test_it_stays_lazy() -> None:
    X = np.random.default_rng(0).uniform(0, 9, (50, 2))
    with raise_if_dask_computes():
        found = FriendsOfFriends(b=0.4, boxsize=9.0).fit(da.from_array(X, chunks=(50, 2)))
    np.testing.assert_array_equal(found.labels_.compute(), FriendsOfFriends(b=0.4, boxsize=9.0).fit(X).labels_)


def test_parameters_are_those_of_scikit_learn() -> None:
    X = np.random.default_rng(0).uniform(0, 9, (50, 2))
    one = FriendsOfFriends(b=0.3, min_members=3, boxsize=9.0).fit(X)
    parameters = {"linking_length": None, "b": 0.3, "min_members": 3, "boxsize": 9.0}
    parameters |= {"metric": "euclidean", "units": "radians"}
    assert one.get_params() == clone(one).get_params() == parameters
    assert not hasattr(clone(one), "linking_length_")
    other = clone(one).set_params(b=None, linking_length=one.linking_length_)
    np.testing.assert_array_equal(other.fit_predict(X), one.labels_)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "give linking_length or b, and not both; got linking_length=None and b=None"),
        ({"linking_length": 1.0, "b": 0.2}, r"got linking_length=1\.0 and b=0\.2"),
        (
            {"b": 0.2},
            r"b=0\.2 is a fraction .* closed along each axis, got boxsize=None of 0, 1; give",
        ),
        (
            {"b": 0.2, "boxsize": [9.0, None]},
            r"closed along each axis, got boxsize=\[9\.0, None\] of 0, 1",
        ),
        ({"b": 0.2, "boxsize": [9.0]}, "one number or one for each of the 2 axes"),
        ({"b": 0.0, "boxsize": 9.0}, r"b must be finite and positive, got 0\.0"),
        ({"b": np.nan, "boxsize": 9.0}, "b must be finite and positive, got nan"),
        ({"b": 40.0, "boxsize": 9.0}, r"at most half of the box, got b=40\.0: .* in a box of 9"),
    ],
    ids=str,
)
def test_what_is_refused(parameters: dict[str, Any], words: str) -> None:
    X = np.random.default_rng(0).uniform(0, 9, (50, 2))
    for points in (X, da.from_array(X, chunks=(20, 2))):
        with pytest.raises(ValueError, match=words):
            FriendsOfFriends(**parameters).fit(points)


def test_lists_of_points_have_no_mean_separation() -> None:
    lists = ak.zip({"x": [[1.0, 2.0], [3.0]], "y": [[1.0, 2.0], [3.0]]})
    with pytest.raises(ValueError, match="these are of events; give linking_length"):
        FriendsOfFriends(b=0.2, boxsize=9.0).fit(lists)
