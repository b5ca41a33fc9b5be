"""Choosing of clusters by expressions, and of their hits."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from cases.tables import pixel_hits, random_hits, ranges_of
from hypothesis import given
from hypothesis import strategies as st

from daskclust.properties import _select, cluster_table, select, select_hits, where


@pytest.mark.parametrize(
    ("expression", "query"),
    [
        ("size == 4 or not (x < 0 or y >= 1e-1)", None),
        ("-1 <= x < 1", None),
        ("(x**2 + y**2) / 4 <= +energy - 1 and layer % 2 == 0", None),
        ("cluster // 3 != 2", None),
        ("  1 / (size - 2) > 0\n", "1 / (size - 2) > 0"),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_select_equals_pandas(expression: str, query: str | None, lazy: bool) -> None:
    ds = random_hits(150, 30)
    table = cluster_table(ds.chunk(hit=40), n_clusters=30) if lazy else cluster_table(ds)
    chosen = select(table, expression)
    expected = cluster_table(ds).to_dataframe().reset_index().query(query or expression)
    np.testing.assert_array_equal(chosen["cluster"], expected["cluster"])
    np.testing.assert_array_equal(chosen["size"], expected["size"])
    mask = where(table, expression)
    np.testing.assert_array_equal(mask["cluster"], table["cluster"])
    assert bool(chosen.chunks) == lazy
    with_index = chosen if "cluster" in chosen.xindexes else chosen.set_xindex("cluster")
    xr.testing.assert_identical(with_index, table.isel(cluster=np.flatnonzero(mask)))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("mass > 3", r"unknown mass; the table has .*size, energy, x"),
        ("__import__('os').getcwd()", "unknown __import__"),
        ("x.real > 1", r"'x.real' is not allowed; use names, numbers, comparisons"),
        ("x(1) > 1", r"'x\(1\)' is not allowed"),
        ("x > True", "'True' is not allowed"),
        ("-(x > 1)", "cannot be computed: and, or, not join comparisons"),
        ("x > " + "(" * 240 + "1" + ")" * 240, "is not a valid expression"),
        ("x > 1" + "0" * 400, "cannot be computed: .* arithmetic takes numbers below 1e308"),
    ],
)
def test_select_refuses_everything_else(expression: str, message: str) -> None:
    table = cluster_table(random_hits(30, 3))
    with pytest.raises(ValueError, match=message):
        select(table, expression)


def test_small_integers_do_not_wrap() -> None:
    table = cluster_table(pixel_hits(300, 60))
    np.testing.assert_array_equal(where(table, "x_min - x_max > 0"), False)
    np.testing.assert_array_equal(where(table, "-x_max <= 0 and x_max * x_max * x_max >= x_max"), table["size"] >= 0)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("by", ["table", "where"])
def test_select_hits(lazy: bool, by: str) -> None:
    ds = pixel_hits(400, 90)
    given_ds = ds.chunk(hit=90) if lazy else ds
    table = cluster_table(given_ds, n_clusters=90) if lazy else cluster_table(ds)
    clusters = select(table, "size > 4") if by == "table" else where(table, "size > 4")
    kept = select_hits(given_ds, clusters)
    numbers = [c for c in range(90) if (ds["label"].values == c).sum() > 4]
    xr.testing.assert_identical(kept.compute(), ds.isel(hit=np.isin(ds["label"].values, numbers)))
    assert bool(kept.chunks) == lazy
    labels = da.from_array(ds["label"].values, chunks=33) if lazy else ds["label"].values
    xr.testing.assert_identical(select_hits(given_ds.drop_vars("label"), clusters, labels), kept.drop_vars("label"))


def test_bits_of_clusters_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_select, "_BITS", 16)
    ds = pixel_hits(400, 90)
    with ranges_of(7):
        table = cluster_table(ds.chunk(hit=90), n_clusters=91)
    expected = select_hits(ds, where(cluster_table(ds), "size > 4"))
    xr.testing.assert_identical(select_hits(ds.chunk(hit=33), where(table, "size > 4")).compute(), expected)
    labels = ds["label"].values.copy()
    labels[200] = -2
    with pytest.raises(ValueError, match=r"labels must be -1 \(noise\) or larger, got -2 at index 200"):
        select_hits(ds.chunk(hit=33), where(table, "size > 4"), da.from_array(labels, chunks=33))


def test_selected_rows_of_lazy_data_keep_their_shape() -> None:
    ds = xr.Dataset({"a": (("channel", "hit"), np.arange(12).reshape(2, 6)), "label": ("hit", np.arange(6) % 3)})
    table = xr.Dataset({"size": ("cluster", [1, 2, 2])}, coords={"cluster": [0, 1, 2]})
    kept = select_hits(ds.chunk(hit=4), where(table, "size > 1"))
    xr.testing.assert_identical(kept.compute(), ds.isel(hit=[1, 2, 4, 5]))


LIBRARIES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "nullable": pd.DataFrame.convert_dtypes,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
    "mapping": lambda frame: dict(frame.items()),
}


@pytest.mark.parametrize("of", LIBRARIES)
def test_select_hits_of_tables(of: str) -> None:
    frame = random_hits(80, 9).to_dataframe()
    table = select(cluster_table(frame), "size > 8")
    found = select_hits(LIBRARIES[of](frame), table)
    for name, values in frame[frame["label"].isin(table["cluster"].values)].items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("of", [*LIBRARIES, "pandas with the index"])
def test_tables_of_other_libraries(of: str) -> None:
    ds = random_hits(80, 9)
    table = cluster_table(ds).isel(cluster=slice(None, None, -1))
    frame = table.to_dataframe()
    other = frame if of not in LIBRARIES else LIBRARIES[of](frame.reset_index())
    chosen, expected = select(other, "size > 8"), select(table, "size > 8")
    np.testing.assert_array_equal(chosen["cluster"], expected["cluster"])
    np.testing.assert_array_equal(where(other, "size > 8"), where(table, "size > 8"))
    hits = select_hits(ds, expected)
    for clusters in (chosen, where(other, "size > 8"), LIBRARIES["pandas"](frame[frame["size"] > 8])):
        xr.testing.assert_identical(select_hits(ds, clusters), hits)


@pytest.mark.parametrize("clusters", [[0, 1], np.array([0, 1]), random_hits(80, 9).to_dataframe()["x"] > 0])
def test_what_is_no_table_is_refused(clusters: Any) -> None:
    with pytest.raises(TypeError, match="data must be a Dataset, a DataFrame or a mapping with named columns, got"):
        select_hits(random_hits(80, 9), clusters)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["2026", "NaT"], "M8[ns]"), "when must be numbers, got dtype datetime64"),
        (np.ma.masked_equal([1, 2], 2), None),
        (pd.array([1, None], dtype="Int64"), r"when has 1 missing values \(NA\) of 2"),
        (np.array(["a", "b"]), "when must be numbers, got dtype <U1"),
        (np.array([1 + 1j, 2]), "Complex data not supported: when is complex128"),
    ],
)
def test_columns_that_are_no_numbers(values: Any, message: str | None) -> None:
    table = xr.Dataset({"when": ("cluster", values)})
    if message is None:  # xarray has NaN in the place of what is masked
        assert where(table, "when > 0").values.tolist() == [True, False]
        return
    with pytest.raises(ValueError, match=message):
        where(table, "when > 0")


def test_select_hits_of_nothing() -> None:
    ds = pixel_hits(30, 4)
    table = cluster_table(ds)
    assert select_hits(ds, select(table, "size > 1000")).sizes == {"hit": 0}
    assert select_hits(ds.isel(hit=slice(0)), table).sizes == {"hit": 0}
    with pytest.raises(ValueError, match=r"clusters have no coordinate 'cluster' but \[\]; use select or where"):
        select_hits(ds, table.drop_vars("cluster"))
    with pytest.raises(ValueError, match="clusters must be a table or boolean, got dtype int64; use where"):
        select_hits(ds, table["size"])
    with pytest.raises(ValueError, match=r"labels must have .* \(30,\), got \(7,\)"):
        select_hits(ds, table, np.zeros(7, int))
    ds["label"][5] = -2
    with pytest.raises(ValueError, match=r"labels must be -1 \(noise\) or larger, got -2 at index 5"):
        select_hits(ds, table)


_SIGNS = ["<", "<=", "==", "!=", ">", "+", "-", "*", "/", "//", "%", "**", "(", ")", "[", "]", ".", ",", "&", "|", "~"]
_WORDS = ["size", "tot", "x_min", "toa", "chip", "energy", "no", "and", "or", "not", "if", "else", "is", "in", "lambda"]
_REST = ["1", "0", "2.5", "1e300", "9**9", "True", "'a'", "None", "1j", "f''", "__class__", ":=", "#", "(-1)**.5"]
_TEXTS = st.one_of(st.lists(st.sampled_from(_SIGNS + _WORDS + _REST), max_size=12).map(" ".join), st.text(max_size=40))


def test_ids_of_selected_hits_may_be_large() -> None:
    table = xr.Dataset({"size": ("cluster", [2, 1])}, coords={"cluster": [3, 2**62]})
    ds = xr.Dataset({"x": ("hit", np.arange(5)), "label": ("hit", [2**62, -1, 3, 7, 2**62])})
    np.testing.assert_array_equal(select_hits(ds, table)["x"], [0, 2, 4])


def outcome(table: xr.Dataset, text: str) -> tuple[Any, str]:
    """Return what `where` returns, or its message."""
    try:
        return where(table, text), ""
    except ValueError as error:
        return None, str(error)


@given(text=_TEXTS)
def test_any_text_is_a_choice_or_a_clear_error(text: str) -> None:
    table = cluster_table(pixel_hits(40, 5))
    chosen, message = outcome(table, text)
    if chosen is None:
        assert message.startswith((repr(text), "the expression must have"))
    else:
        assert chosen.dtype == bool
        assert chosen.shape == (5,)
        lazy = table.chunk(cluster=2)
        np.testing.assert_array_equal(where(lazy, text), chosen)


def _formulas() -> Any:
    """Return pairs of an expression and a function that computes it with NumPy."""
    numbers = st.one_of(st.sampled_from(["size", "tot", "chip", "x_min"]), st.integers(0, 99).map(str))
    sums = st.tuples(numbers, st.sampled_from("+-*"), numbers).map(" ".join).map("({})".format)
    terms = st.one_of(numbers, sums)
    comparisons = st.tuples(terms, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), terms).map(" ".join)
    return st.lists(st.tuples(st.sampled_from(["and", "or"]), st.booleans(), comparisons), min_size=1, max_size=4)


@given(parts=_formulas())
def test_expressions_equal_python(parts: list[tuple[str, bool, str]]) -> None:
    table = cluster_table(pixel_hits(60, 12))
    text = "".join(
        f"{f' {op} ' if i else ''}{'not ' if negated else ''}({comparison})"
        for i, (op, negated, comparison) in enumerate(parts)
    )
    names = ("size", "tot", "chip", "x_min")
    rows = [{name: float(table[name][i]) for name in names} for i in range(table.sizes["cluster"])]
    wanted = [eval(text, {"__builtins__": {}}, row) for row in rows]  # the tests' own text, from the lists above
    if any(name in text for name in names):
        chosen, message = outcome(table, text)
        if chosen is None:
            assert message.endswith("must compare variables of the table, as in 'size > 3'")
        else:
            np.testing.assert_array_equal(chosen, wanted)
