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
    """What became of clustering A in clustering B."""

    ari: float
    moved: npt.NDArray[np.bool_]  # points in another cluster than the one that matches theirs, or no longer noise
    n_clusters: tuple[int, int]
    changes: pd.DataFrame  # what happened, clusters of A and of B, their points
    partner: Ids  # cluster of B that matches each one of A, -2 for none

    @property
    def words(self) -> str:
        """How alike they are, in one line."""
        n, moved = len(self.moved), int(np.count_nonzero(self.moved))
        share = f"{moved / max(n, 1):.1%}" if moved == 0 or moved >= 0.0005 * n else "below 0.1%"
        before, after = self.n_clusters
        return f"ARI {_digits(self.ari)}; {moved:,} of {n:,} points moved ({share}); clusters {before:,} → {after:,}"


def compare(before: Ids, after: Ids) -> Comparison:
    """Return what became of the clusters `before`, -1 noise, in those `after`."""
    from daskclust.metrics import adjusted_rand_index

    table = contingency(before, after)
    partner = match(table)
    moved = np.append(partner, NOISE)[before] != after  # the last one is that of noise
    ari = adjusted_rand_index(before, after)
    return Comparison(ari, moved, table.shape, changes(table, before, after), partner)


def contingency(before: Ids, after: Ids) -> sp.coo_array:
    """Return the number of points in each pair of clusters; noise has no part."""
    both = (before >= 0) & (after >= 0)
    shape = int(before.max(initial=-1)) + 1, int(after.max(initial=-1)) + 1
    table = sp.coo_array((np.ones(np.count_nonzero(both)), (before[both], after[both])), shape)
    table.sum_duplicates()
    return table


def match(table: sp.coo_array) -> Ids:
    """Return the cluster after for each one before, -2 for none, such that as many points as possible stay.

    Each may also match nothing, which counts less than any point: then a full matching always exists.
    """
    rows, columns = table.shape
    if not table.nnz:
        return np.full(rows, _NO_MATCH)
    nothing = sp.eye_array(rows, format="coo") / (4.0 * rows)
    graph = sp.csr_array(sp.hstack([table, nothing]))
    chosen = sp.csgraph.min_weight_full_bipartite_matching(graph, maximize=True)[1]
    return np.where(chosen < columns, chosen, _NO_MATCH).astype(np.int64)


def changes(table: sp.coo_array, before: Ids, after: Ids) -> pd.DataFrame:
    """Return the clusters that were split or merged, that appeared or vanished, the largest first.

    Two clusters belong together where more than half of the points of one of them are in the other.
    """
    pairs = zip((before, after), table.shape, strict=True)
    of_a, of_b = (np.bincount(label[label >= 0], minlength=count) for label, count in pairs)
    half = table.data > 0.5 * np.minimum(of_a[table.row], of_b[table.col])
    links = sp.csr_array((np.ones(half.sum()), (table.row[half], table.col[half])), table.shape)
    rows = [("split", str(a), _numbers(bs), of_a[a]) for a, bs in _linked(links) if len(bs) > 1]
    rows += [("merged", _numbers(some), str(b), of_b[b]) for b, some in _linked(links.T.tocsr()) if len(some) > 1]
    rows += [("vanished", str(a), "", of_a[a]) for a, bs in _linked(links) if not len(bs) and of_a[a]]
    rows += [("appeared", "", str(b), of_b[b]) for b, some in _linked(links.T.tocsr()) if not len(some) and of_b[b]]
    frame = pd.DataFrame(rows, columns=["change", "A", "B", "points"])
    return frame.sort_values("points", ascending=False, kind="stable", ignore_index=True)


def _linked(links: sp.csr_array) -> Iterator[tuple[int, Ids]]:
    """Yield each row, and its columns in ascending order."""
    return enumerate(map(np.sort, np.split(links.indices, links.indptr[1:-1]))) if links.shape[0] else iter(())


def _numbers(numbers: Ids) -> str:
    more = len(numbers) - _MOST_NUMBERS
    return ", ".join(map(str, numbers[:_MOST_NUMBERS].tolist())) + (f" and {more} more" if more > 0 else "")


def _digits(value: float) -> str:
    """Return two digits, and as many as it takes to tell what is nearly 1 from 1."""
    digits = next((digits for digits in range(2, 8) if value == 1 or round(value, digits) < 1), 8)
    return f"{value:.{digits}f}"
