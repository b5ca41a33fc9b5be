"""Awkward arrays as columns and back: points one after the other, or one list of points for each event.

awkward is known by the name of its module, and imported only where one of its arrays is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.quote import quoted, short

Array = NDArray[Any]

_CHOOSE = "choose fields of numbers that all points have, e.g. X[['x', 'y']]"


class Nesting(NamedTuple):
    """How the points of an awkward array are nested."""

    counts: NDArray[np.int64] | None  # points of each event; None where they are one after the other

    def event(self, given: Any = None) -> Any:
        """Return the number of each point's list; where there are no lists, its `given` event."""
        if self.counts is None:
            return given
        event = np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)
        mixed = np.zeros(0, bool) if given is None else (given[1:] != given[:-1]) & (event[1:] == event[:-1])
        if mixed.any():
            raise ValueError(
                f"X has a list for each event, and its field 'event' is not the same within list "
                f"{event[np.argmax(mixed)]}; join the lists with ak.flatten(X), or give event="
            )
        return event


def is_awkward(data: Any) -> bool:
    """Return True for awkward arrays and records, those of subclasses such as vector's too."""
    return any(base.__module__.split(".")[0] == "awkward" for base in type(data).__mro__)


def flatten(data: Any, source: str = "X") -> tuple[dict[str, Array] | Array, Nesting]:
    """Return the fields of awkward records as columns (n,), or a regular array (n, d); and how the points were nested.

    Records are ``n * {x, y, ...}``, ``events * var * {x, y, ...}`` or ``events * {x: var, ...}``; numbers ``n * d``.
    """
    import awkward as ak

    if isinstance(data, ak.Record):
        raise TypeError(f"{source} is one awkward record; zip its fields to an array of points with ak.zip")
    if ak.backend(data) != "cpu":
        raise ValueError(f"{source} is on awkward's backend {ak.backend(data)!r}; ak.to_backend({source}, 'cpu') first")
    names = ak.fields(data)
    if _is_union(data.layout):
        raise TypeError(f"{source} has records of several kinds, {short(data.type)}; {_CHOOSE}")
    if names:
        fields = dict(zip(names, ak.unzip(data), strict=True))
        lists = [name for name, array in fields.items() if array.layout.purelist_depth > 1]
        if lists and "x" in set(names) - set(lists):
            raise ValueError(
                f"field {quoted(lists[0])} of {source} has a list in each entry, and 'x' has a number: its entries are "
                f"points, which need one number each; {_CHOOSE}"
            )
        columns, counts = join(fields, source)
        return columns, Nesting(counts)
    try:
        matrix = ak.to_numpy(data, allow_missing=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{source} has the type {short(data.type)}, which is neither records nor a regular array (n, d); name its "
            "columns: ak.zip({'x': ..., 'y': ...})"
        ) from error
    return matrix, Nesting(None)


def join(
    fields: Mapping[str, Any], source: str, what: tuple[str, str] = ("field", "fields"), remedy: str = _CHOOSE
) -> tuple[dict[str, Array], NDArray[np.int64] | None]:
    """Return awkward arrays, each of one number or one list of numbers an event, as columns; and the lengths of lists.

    `remedy` is said of a field that holds no numbers; ``{name}`` in it stands for the name.
    """
    parts = {
        name: _numbers(array, f"{what[0]} {quoted(name)} of {source}", remedy.format(name=quoted(name)))
        for name, array in fields.items()
    }
    lists = {name: counts for name, (_, counts) in parts.items() if counts is not None}
    if not lists:
        return {name: values for name, (values, _) in parts.items()}, None
    first, counts = next(iter(lists.items()))
    for name, others in lists.items():
        if not np.array_equal(others, counts):
            event = int(np.argmax(others != counts))
            raise ValueError(
                f"{what[1]} {quoted(first)} and {quoted(name)} of {source} have lists of unequal lengths, "
                f"{counts[event]} and {others[event]} in event {event}, so they are not of the same hits; "
                f"{remedy.format(name=quoted(name))}"
            )
    return {name: values if name in lists else np.repeat(values, counts) for name, (values, _) in parts.items()}, counts


def _numbers(array: Any, source: str, remedy: str) -> tuple[Array, NDArray[np.int64] | None]:
    """Return the numbers in an awkward array one after the other, and the lengths of its lists, if it has any."""
    import awkward as ak

    depth = array.layout.purelist_depth
    if depth > 2 and not array.fields:
        raise ValueError(
            f"{source} is nested too deep, {short(array.type)}; join inner lists first, "
            f"ak.flatten(..., axis={depth - 1}), or {remedy}"
        )
    try:
        counts = ak.to_numpy(ak.num(array), allow_missing=False).astype(np.int64) if depth == 2 else None
        values = ak.to_numpy(ak.flatten(array) if depth == 2 else array, allow_missing=False)
        if values.dtype.kind in "fiub" and values.ndim == 1:
            return values, counts
    except (TypeError, ValueError):
        entry = _missing(array, depth)
        if entry is not None:
            raise ValueError(
                f"{source} has a missing value (None) in entry {entry}, {short(array[entry])}; leave such points out "
                f"with ak.is_none, fill the values with ak.fill_none, or {remedy}"
            ) from None
    raise TypeError(
        f"{source} has the type {short(array.type)}, which is neither a number nor a list of numbers; {remedy}"
    )


def _missing(array: Any, depth: int) -> int | None:
    """Return the first entry that is, or has, a missing value."""
    import awkward as ak

    missing = ak.to_numpy(ak.is_none(array, axis=0))
    if depth == 2:
        missing |= ak.to_numpy(ak.fill_none(ak.any(ak.is_none(array, axis=1), axis=1), True))
    return int(np.argmax(missing)) if missing.any() else None


def _is_union(layout: Any) -> bool:
    """Return whether points are of several kinds."""
    while layout.is_list or layout.is_option or layout.is_indexed:
        layout = layout.content
    return bool(layout.is_union)


def nest(values: Any, nesting: Nesting | None) -> Any:
    """Return values, one for each point, as an awkward array nested like the points; as they are without a nesting."""
    if nesting is None:
        return values
    import awkward as ak

    return ak.Array(values) if nesting.counts is None else ak.unflatten(values, nesting.counts)


def flat(values: Any, name: str = "values", nesting: Nesting | None = None) -> Any:
    """Return an awkward array of numbers as an array (n,), and others as they are.

    With the nesting of the points, it must be nested like them, or have one value for each event.
    """
    if not is_awkward(values):
        return values
    numbers, counts = _numbers(values, name, "give one number for each point")
    if nesting is None or nesting.counts is None:
        return numbers
    if counts is None and len(numbers) == len(nesting.counts):
        return np.repeat(numbers, nesting.counts)
    if counts is None or not np.array_equal(counts, nesting.counts):
        raise ValueError(
            f"{name} of type {short(values.type)} is not nested like the {len(nesting.counts)} events of X; give a "
            "number for each point, or one for each event"
        )
    return numbers


def without_lists(nesting: Nesting | None, who: str) -> None:
    """Refuse lists of points where all points are clustered together."""
    if nesting is not None and nesting.counts is not None:
        raise ValueError(
            f"{who} clusters all points together, and X has them in {len(nesting.counts)} lists; join the lists with "
            f"ak.flatten(X), or fit one after the other: [{who}(...).fit(points).labels_ for points in X]"
        )
