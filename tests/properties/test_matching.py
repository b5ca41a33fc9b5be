"""Clusters that are followed from one step to the next, against a loop over members."""

from __future__ import annotations

from collections import Counter

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskclust.metrics import match_clusters


@given(n=st.integers(0, 60), seed=st.integers(0, 10**6), has_ids=st.booleans())
def test_descendants_are_those_of_a_loop(n: int, seed: int, has_ids: bool) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.integers(-1, 5, n), rng.integers(-1, 5, n)
    ids = rng.permutation(10 * n)[:n], rng.permutation(10 * n)[:n]
    if has_ids:  # some points are in one step alone
        ids[1][: n // 2] = rng.permutation(ids[0])[: n // 2]
        ids = ids[0], np.unique(ids[1])
        after = rng.permutation(after)[: len(ids[1])]
        found = match_clusters(before, after, *ids)
        later = dict(zip(ids[1].tolist(), after.tolist(), strict=True))
        pairs = Counter((b, later.get(i, -1)) for b, i in zip(before.tolist(), ids[0].tolist(), strict=True))
    else:
        found = match_clusters(da.from_array(before, chunks=7), after.tolist())
        pairs = Counter(zip(before.tolist(), after.tolist(), strict=True))
    pairs = Counter({pair: count for pair, count in pairs.items() if min(pair) >= 0})
    clusters = sorted({*before.tolist()} - {-1})
    assert found.cluster.tolist() == clusters
    assert found.size.tolist() == [int((before == c).sum()) for c in clusters]
    best = {c: min(((-pairs[c, d], d) for d in range(5) if pairs[c, d]), default=(0, -1)) for c in clusters}
    assert found.descendant.tolist() == [best[c][1] for c in clusters]
    assert found.shared.tolist() == [-best[c][0] for c in clusters]
    givers = {d: min(((-pairs[c, d], c) for c in clusters if pairs[c, d]), default=(0, -1))[1] for d in range(5)}
    assert found.is_main.tolist() == [best[c][1] >= 0 and givers[best[c][1]] == c for c in clusters]


def test_ids_beyond_float64_are_told_apart() -> None:
    ids = np.array([2**60, 2**60 + 1], np.uint64)
    assert match_clusters([0, 1], [7, 8], ids, ids[::-1].astype(np.int64)).descendant.tolist() == [8, 7]


@pytest.mark.parametrize(
    ("given_ids", "message"),
    [
        (([1, 2], None), "ids are needed of both steps"),
        (([1, 1], [1, 2]), "ids_before has 1 several times"),
        (([1, 2], [1, 2, 3]), r"ids_after must be 2 integers, as many as labels, got int64 \(3,\)"),
        (([1, 2], [0.5, 2]), "ids_after must be 2 integers"),
    ],
)
def test_ids_that_cannot_be_are_refused(given_ids: tuple[list[int], list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        match_clusters([0, 1], [0, 1], *given_ids)
