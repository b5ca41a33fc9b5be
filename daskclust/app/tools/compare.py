"""Two clusterings of the same points: how alike they are, which points moved, which clusters became others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from daskclust.core.merge.labels import NOISE

Ids = npt.NDArray[np.int64]

_NO_MATCH = -2
_MOST_NUMBERS = 6  # of clusters in a cell of the table


class Comparison(NamedTuple):
    """How clustering B differs from clustering A."""

    ari: float
    moved: npt.NDArray[np.bool_]  # points in another cluster than the one that matches theirs, or no longer noise
    n_clusters: tuple[int, int]
    changes: pd.DataFrame  # what happened, clusters of A and of B, their points
    partner: Ids  # cluster of B that matches each one of A, -2 for none

    @property
    def words(self) -> str:
        """Similarity and changes, in one line."""
        n, moved = len(self.moved), int(np.count_nonzero(self.moved))
        share = f"{moved / max(n, 1):.1%}" if moved == 0 or moved >= 0.0005 * n else "below 0.1%"
        before, after = self.n_clusters
        return f"ARI {_digits(self.ari)}; {moved:,} of {n:,} points moved ({share}); clusters {before:,} → {after:,}"


def compare(before: Ids, after: Ids) -> Comparison:
    """Compare two clusterings of the same points, -1 noise."""
    table = contingency(before, after)
    partner = match(table)
    moved = np.append(partner, NOISE)[before] != after  # the last one is that of noise
    pairs = zip((before, after), table.shape, strict=True)
    of_a, of_b = (np.bincount(label[label >= 0], minlength=count) for label, count in pairs)
    ari = _rand_index(table, of_a, of_b, len(before))
    return Comparison(ari, moved, table.shape, changes(table, of_a, of_b), partner)


def contingency(before: Ids, after: Ids) -> sp.coo_array:
    """Return the number of points in each pair of clusters; noise has no part."""
    both = (before >= 0) & (after >= 0)
    shape = int(before.max(initial=-1)) + 1, int(after.max(initial=-1)) + 1
    return sp.csr_array((np.ones(np.count_nonzero(both)), (before[both], after[both])), shape).tocoo()


def match(table: sp.coo_array) -> Ids:
    """Return the cluster after for each one before, -2 for none: the pairs with most points in common come first."""
    partner, free = np.full(table.shape[0], _NO_MATCH), [True] * table.shape[1]
    order = np.argsort(-table.data, kind="stable")
    for a, b in zip(table.row[order].tolist(), table.col[order].tolist(), strict=True):
        if free[b] and partner[a] == _NO_MATCH:
            partner[a], free[b] = b, False
    return partner


def _rand_index(table: sp.coo_array, of_a: Ids, of_b: Ids, n: int) -> float:
    """Return `daskclust.metrics.adjusted_rand_index` of clusters that are counted already."""
    both, one, other = (float((size * (size - 1.0)).sum()) for size in (table.data, of_a, of_b))  # pairs of points
    by_chance, most = one * other / max(n * (n - 1.0), 1.0), (one + other) / 2
    return (both - by_chance) / (most - by_chance) if most > by_chance else 1.0


def changes(table: sp.coo_array, of_a: Ids, of_b: Ids) -> pd.DataFrame:
    """Return the clusters that were split or merged, that appeared or vanished, the largest first; `of_a` are sizes.

    Two clusters belong together where more than half of the points of one of them are in the other.
    """
    half = table.data > 0.5 * np.minimum(of_a[table.row], of_b[table.col])
    links = sp.csr_array((np.ones(half.sum()), (table.row[half], table.col[half])), table.shape)
    rows = [("split", str(a), _numbers(bs), of_a[a]) for a, bs in _several(links)]
    rows += [("merged", _numbers(some), str(b), of_b[b]) for b, some in _several(links.T.tocsr())]
    gone, new = ((links.sum(axis=side) == 0) & (size > 0) for side, size in ((1, of_a), (0, of_b)))
    rows += [("vanished", str(a), "", of_a[a]) for a in np.flatnonzero(gone)]
    rows += [("appeared", "", str(b), of_b[b]) for b in np.flatnonzero(new)]
    frame = pd.DataFrame(rows, columns=["change", "A", "B", "points"])
    return frame.sort_values("points", ascending=False, kind="stable", ignore_index=True)


def _several(links: sp.csr_array) -> Iterator[tuple[int, Ids]]:
    """Yield each row with more than one column, and these columns in ascending order."""
    for row in np.flatnonzero(np.diff(links.indptr) > 1).tolist():
        yield row, np.sort(links.indices[links.indptr[row] : links.indptr[row + 1]])


def _numbers(numbers: Ids) -> str:
    more = len(numbers) - _MOST_NUMBERS
    return ", ".join(map(str, numbers[:_MOST_NUMBERS].tolist())) + (f" and {more} more" if more > 0 else "")


def _digits(value: float) -> str:
    """Return two digits, more where a value is nearly 1."""
    digits = next((digits for digits in range(2, 8) if value == 1 or round(value, digits) < 1), 8)
    return f"{value:.{digits}f}"
