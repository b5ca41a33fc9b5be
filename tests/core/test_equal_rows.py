"""Rows that are equal, against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskclust.core.device.kernels import body
from daskclust.core.space import equal_rows as module
from daskclust.core.space.equal_rows import equal_rows


def assert_right(X, group, found):
    wanted = {}
    for i, row in enumerate(X.tolist()):
        wanted.setdefault((tuple(row), None if group is None else int(group[i])), []).append(i)
    members = list(wanted.values())
    assert found.counts.tolist() == [len(rows) for rows in members]
    assert found.first.tolist() == [rows[0] for rows in members]
    assert found.members.tolist() == [i for rows in members for i in rows]
    assert all((found.of_row[rows] == k).all() for k, rows in enumerate(members))
    assert found.are_single == (len(members) == len(X))


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -1.5, 1e-300])] * 2)),
    st.sampled_from([1, 2]),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_places_of_equal_rows(values, d, dtype, is_grouped):
    X = np.array(values, dtype).reshape(-1, d)
    group = np.arange(len(X)) % 3 - 1 if is_grouped else None
    assert_right(X, group, equal_rows(X, group))


@body
def same_code(i, X, bits, group):
    return np.uint64(7)


def test_rows_whose_hashes_agree_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "_number_rows", module._number_rows.bind(code_of_row=same_code))
    X = np.random.default_rng(0).integers(0, 5, (300, 2)).astype(float)
    for group in (None, np.arange(300) % 3):
        assert_right(X, group, equal_rows(X, group))


@pytest.mark.parametrize("layout", ["C", "F", "every second"])
def test_any_layout(layout):
    X = np.random.default_rng(1).integers(0, 3, (50, 3)).astype(float)
    given = np.repeat(X, 2, axis=0)[::2] if layout == "every second" else np.array(X, order=layout)
    assert_right(X, None, equal_rows(given))
