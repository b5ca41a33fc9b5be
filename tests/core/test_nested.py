"""Awkward arrays: what goes in flat or in lists comes out so, and each list is an event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import lanes
from hypothesis import given
from hypothesis import strategies as st

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA, io, metrics, plot
from daskclust.core.data.nested import flatten
from daskclust.properties import cluster_table

ak = pytest.importorskip("awkward")

RESULTS = ("labels_", "density_", "delta_", "nearest_higher_", "is_seed_")


@st.composite
def events(draw: Any) -> tuple[list[int], dict[str, Any]]:
    """Return the numbers of points of events, and columns of any types: few places, so that points are neighbours."""
    real = ("f8",) if lanes.drawn == "common" else ("f4", "f8")
    counts = draw(st.lists(st.integers(0, 6), max_size=6))
    rng, n = np.random.default_rng(draw(st.integers(0, 99))), sum(counts)
    columns = {
        axis: rng.integers(0, 4, n).astype(draw(st.sampled_from((*real, "i4", "u1", "i8")))) for axis in ("x", "y")
    }
    if draw(st.booleans()):
        columns["layer"] = rng.integers(0, 2, n).astype(draw(st.sampled_from(("i4", "u2", "i8"))))
    if draw(st.booleans()):
        columns["energy"] = rng.integers(1, 4, n).astype(draw(st.sampled_from(real)))
    return counts, columns


def records(counts: list[int] | None, columns: dict[str, Any], form: str = "zipped") -> Any:
    """Return the points as awkward records, in lists where there are counts, laid out in one of several ways."""
    if counts is None:
        return ak.zip(columns)
    lists = {name: ak.unflatten(values, np.array(counts, int)) for name, values in columns.items()}
    if form == "fields":
        return ak.zip(lists, depth_limit=1)
    hits = ak.zip(lists)
    if form == "chosen":  # lists out of order in memory, behind an index, as a selection leaves them
        order = np.arange(len(counts))[::-1]
        return hits[order][order]
    return ak.mask(hits, np.ones(len(counts), bool)) if form == "option" else hits


def joined(columns: dict[str, Any]) -> Any:
    return np.stack([columns["x"], columns["y"]], axis=1)


@lanes.every_shape
@given(events(), st.sampled_from(["zipped", "fields", "chosen", "option"]))
def test_lists_are_events_of_clue(drawn: Any, form: str) -> None:
    counts, columns = drawn
    hits = records(counts, columns, form)
    clue = CLUE(1.5, 2.0)
    if not sum(counts):
        with pytest.raises(ValueError, match="0 sample"):  # as of an array (0, 2)
            clue.fit(hits)
        return
    event = np.repeat(np.arange(len(counts)), counts)
    expected = CLUE(1.5, 2.0).fit(
        joined(columns), layer=columns.get("layer"), event=event, sample_weight=columns.get("energy")
    )
    clue.fit(hits)
    for fitted, wanted in ((clue, expected), (clue.rethreshold(rhoc=4.0), expected.rethreshold(rhoc=4.0))):
        assert fitted.n_clusters_ == wanted.n_clusters_
        for name in RESULTS:
            result = getattr(fitted, name)
            assert isinstance(result, ak.Array)
            assert ak.num(result).tolist() == counts
            np.testing.assert_array_equal(ak.to_numpy(ak.flatten(result)), getattr(wanted, name))
            assert ak.to_numpy(ak.flatten(result)).dtype == getattr(wanted, name).dtype


@lanes.every_shape
@given(events(), st.booleans())
def test_lists_are_clustered_one_by_one(drawn: Any, weighted: bool) -> None:
    counts, columns = drawn
    hits = records(counts, {name: columns[name] for name in ("x", "y")})
    weight = np.arange(sum(counts), dtype=float) % 3
    for estimator in (DBSCAN(1.0, min_samples=2), FriendsOfFriends(1.0)):
        weights: Any = {"sample_weight": weight} if weighted and isinstance(estimator, DBSCAN) else {}
        if not sum(counts):
            continue
        X, first, expected, core = joined(columns).astype(float), 0, [], []
        for stop, count in zip(np.cumsum(counts), counts, strict=True):
            rows = slice(stop - count, stop)
            labels = np.empty(0, int)
            if count:
                alone = estimator.fit(X[rows], **{name: values[rows] for name, values in weights.items()})
                labels = np.where(alone.labels_ < 0, -1, alone.labels_ + first)
                first += alone.n_clusters_
                core += (alone.core_sample_indices_ + stop - count).tolist()
            expected.append(labels.tolist())
        estimator.fit(hits, **{name: ak.unflatten(values, counts) for name, values in weights.items()})
        assert estimator.labels_.tolist() == expected
        assert estimator.n_clusters_ == first
        assert ak.num(estimator.is_core_).tolist() == counts
        assert estimator.core_sample_indices_.tolist() == core
        np.testing.assert_array_equal(estimator.components_, X[core])


@pytest.mark.parametrize(
    ("estimator", "third"),
    [
        (CLUE(1.5, 2.0), None),
        (DBSCAN(1.0, min_samples=2), None),
        (FriendsOfFriends(1.0), None),
        (MahalanobisHCA(), None),
        (EventBuilder(2.0), "toa"),
    ],
)
def test_flat_records_and_matrices(estimator: Any, third: str | None) -> None:
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, 9, 40) for name in ("x", "y", *([third] if third else []))}
    X = np.stack(list(columns.values()), axis=1)
    expected = estimator.fit(X).labels_
    for given_points in (ak.zip(columns), ak.Array(X), ak.from_regular(ak.to_regular(ak.Array(X)))):
        labels = estimator.fit_predict(given_points)
        assert isinstance(labels, ak.Array)
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("estimator", [EventBuilder(2.0), MahalanobisHCA()])
def test_lists_where_all_points_count(estimator: Any) -> None:
    hits = records([2, 1], {"x": np.arange(3), "y": np.arange(3), "toa": np.arange(3.0)})
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__} clusters all .* in 2 lists; .*ak.flatten\(X\)"):
        estimator.fit(hits)
    assert len(estimator.fit(ak.flatten(hits)).labels_) == 3


def test_columns_beside_lists() -> None:
    """Of each point, of each event, flat for all points; but no other nesting."""
    counts, x = [2, 0, 1], np.zeros(3)
    hits = records(counts, {"x": x, "y": x})
    weights = np.array([1.0, 2.0, 4.0])
    for given_weights in (ak.unflatten(weights, counts), weights, list(weights)):
        density = CLUE(1.0, 1.0).fit(hits, sample_weight=given_weights).density_
        assert density.tolist() == [[3.0, 3.0], [], [4.0]]
    assert CLUE(1.0, 1.0).fit(hits, sample_weight=ak.Array([1.0, 5.0, 2.0])).density_.tolist() == [[2, 2], [], [2]]
    assert CLUE(1.0, 1.0).fit(hits, event=ak.Array([7, 8, 7])).density_.tolist() == [[3, 3], [], [3]]
    assert CLUE(1.0, ak.unflatten([1.0, 9.0, 9.0], counts)).fit(hits).is_seed_.tolist() == [[False, False], [], [False]]
    with pytest.raises(ValueError, match=r"sample_weight of type 3 \* var \* float64 is not nested like the 3 events"):
        CLUE(1.0, 1.0).fit(hits, sample_weight=ak.unflatten(weights, [1, 1, 1]))


def test_field_of_events_in_lists() -> None:
    x = np.zeros(3)
    same = records([2, 1], {"x": x, "y": x, "event": np.array([5, 5, 5])})
    assert CLUE(1.0, 1.0).fit(same).density_.tolist() == [[2, 2], [1]]
    assert CLUE(1.0, 1.0).fit(ak.flatten(same)).density_.tolist() == [3, 3, 3]
    mixed = records([1, 2], {"x": x, "y": x, "event": np.array([5, 5, 6])})
    with pytest.raises(ValueError, match=r"field 'event' is not the same within list 1; .* event="):
        CLUE(1.0, 1.0).fit(mixed)
    assert CLUE(1.0, 1.0).fit(mixed, event=mixed.event).density_.tolist() == [[2], [2, 1]]


def test_tables_and_pictures_take_nested_labels() -> None:
    rng, counts = np.random.default_rng(6), [30, 0, 50]
    hits = records(counts, {axis: rng.integers(0, 9, 80).astype(float) for axis in ("x", "y", "energy")})
    clue, ds = CLUE(1.5, 4.0).fit(hits), io.to_dataset(hits)
    np.testing.assert_array_equal(ds["event"], np.repeat([0, 2], [30, 50]))
    again = CLUE(1.5, 4.0).fit(ds)
    np.testing.assert_array_equal(ak.flatten(clue.labels_), again.labels_)
    table = cluster_table(ds, clue.labels_)
    assert table.identical(cluster_table(ds, again.labels_))
    assert ds.clust.assign(clue).identical(ds.clust.assign(again))
    assert plot._data.on_host(clue.labels_).tolist() == again.labels_.tolist()
    energy = hits.energy
    assert metrics.purity(clue.labels_, again.labels_, sample_weight=energy) == 1.0


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"x": [1.0, None], "y": [1, 2]}, ValueError, r"field 'x' of X has a missing value \(None\) in entry 1"),
        ({"x": [[1.0], [2.0, None]], "y": [[1], [1, 2]]}, ValueError, r"missing .* entry 1, \[2, None\]; .*fill_none"),
        ({"x": [[1.0], None], "y": [[1], None]}, ValueError, r"missing value \(None\) in entry 1"),
        ({"x": ["a"], "y": [1]}, TypeError, r"field 'x' of X has the type 1 \* string.*choose fields"),
        ({"x": [1, "a"], "y": [1, 2]}, TypeError, r"has the type 2 \* union"),
        ({"x": [1j], "y": [1]}, TypeError, r"field 'x' of X has the type .*complex128.*choose"),
        ({"x": [[[1]]], "y": [[[1]]]}, ValueError, r"nested too deep, .*ak.flatten\(..., axis=2\)"),
        ({"x": [{"a": 1}], "y": [1]}, TypeError, r"field 'x' of X has the type .*\{a: int64\}.*choose"),
        ({"x": [[1], [2, 3]], "y": [[1], [2]]}, ValueError, r"'x' and 'y' of X .* unequal lengths, 2 and 1 in event 1"),
    ],
)
def test_what_is_no_points(fields: dict[str, Any], error: Any, words: str) -> None:
    for estimator in (CLUE(1.0, 1.0), DBSCAN(), FriendsOfFriends(1.0), MahalanobisHCA()):
        with pytest.raises(error, match=words):
            estimator.fit(ak.zip({name: ak.Array(values) for name, values in fields.items()}, depth_limit=1))


def test_other_classes_of_awkward() -> None:
    two = ak.concatenate([ak.Array([{"x": 1.0}]), ak.Array([{"x": 2.0, "y": 2.0}])])
    for X, words in (
        (ak.Record({"x": [1.0], "y": [2.0]}), "one awkward record; .* ak.zip"),
        (two, "records of several kinds"),
        (ak.Array([[1.0, 2.0], [3.0]]), r"neither records nor a regular array \(n, d\); .*ak.zip"),
        (ak.Array([[1.0, None]]), "neither records nor a regular array"),
    ):
        with pytest.raises(TypeError, match=words):
            CLUE(1.0, 1.0).fit(X)
    with pytest.raises(ValueError, match=r"backend 'typetracer'; ak\.to_backend"):
        flatten(ak.to_backend(ak.Array([{"x": 1.0}]), "typetracer"))
