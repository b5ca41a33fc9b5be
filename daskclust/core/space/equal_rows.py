"""Rows that are equal, taken together: one place for each distinct row, with the rows that are there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.kernels import body, kernel

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: spreads what differs in a few bits over all bits
_ONE, _HALF = np.uint64(1), np.uint64(32)


class RowPlaces(NamedTuple):
    """Places of rows, numbered by their smallest row."""

    of_row: NDArray[np.int64]  # (n,): place of each row
    begin: NDArray[np.int64]  # (places + 1,): where the members of each place begin
    members: NDArray[np.int64]  # (n,): rows, place by place, ascending in each

    @property
    def first(self) -> NDArray[np.int64]:
        """Smallest row of each place."""
        return self.members[self.begin[:-1]]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each place."""
        return self.begin[1:] - self.begin[:-1]

    @property
    def are_single(self) -> bool:
        """Whether no two rows are equal."""
        return len(self.begin) == len(self.members) + 1


def equal_rows(X: Any, group: Any = None) -> RowPlaces:
    """Return the places of finite rows of floats (n, d) on the host; rows of different groups, whole numbers, differ.

    0.0 and -0.0 are equal. It takes O(n d): a look into a hash table for each row, a comparison where hashes agree.
    """
    X = np.ascontiguousarray(X)
    n = len(X)
    group = np.empty(0, np.int64) if group is None else np.ascontiguousarray(group, np.int64)
    of_row, begin, members = np.empty(n, np.int64), np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    table = np.full(2 << max(n - 1, 1).bit_length(), -1)
    codes = np.empty(n, np.uint64)
    _number_rows.run(1, X, X.view(f"u{X.itemsize}"), group, table, codes, of_row, begin, members)
    last = int(of_row.max(initial=-1))
    return RowPlaces(of_row, begin[: last + 2], members)


@body
def are_equal(i, j, X, group):
    """Whether two rows of the same group are equal."""
    same = len(group) == 0 or group[i] == group[j]
    for f in range(X.shape[1]):
        same = same and X[i, f] == X[j, f]
    return same


@body
def code_of_row(i, X, bits, group):
    """Return a hash of row i; `bits` are those of `X`."""
    code = _ODD
    if len(group) > 0:
        code ^= np.uint64(group[i])
    for f in range(X.shape[1]):
        code *= _ODD
        if X[i, f] != 0.0:  # 0.0 and -0.0 are equal
            code ^= np.uint64(bits[i, f])
        code ^= code >> _HALF
    code *= _ODD
    return code ^ (code >> _HALF)


@kernel
def _number_rows(_once, X, bits, group, table, codes, of_row, begin, members):
    """Write `RowPlaces`; `table` has a place for some hashes and -1 for others, `members` first the smallest rows."""
    mask = np.uint64(len(table) - 1)
    places = 0
    for i in range(len(X)):
        code = code_of_row(i, X, bits, group)
        entry = code & mask
        while table[entry] >= 0:
            k = table[entry]
            if codes[k] == code and are_equal(members[k], i, X, group):
                break
            entry = (entry + _ONE) & mask
        if table[entry] < 0:
            table[entry] = places
            codes[places], members[places] = code, i
            places += 1
        of_row[i] = table[entry]
        begin[table[entry] + 1] += 1
    for k in range(places):
        begin[k + 1] += begin[k]
    for i in range(len(X) - 1, -1, -1):  # from their ends, which are brought back to where places begin
        k = of_row[i]
        begin[k + 1] -= 1
        members[begin[k + 1]] = i
    for k in range(places):
        begin[k] = begin[k + 1]
    begin[places] = len(X)
