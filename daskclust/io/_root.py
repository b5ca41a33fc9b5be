"""Columns of ROOT files: branches of one tree, flat or jagged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.quote import listed, meant, quoted, short

from ._binary import reading
from .schema import Naming, Table

Arrays = dict[str, npt.NDArray[Any]]

# ROOT's compressions make less than this out of one byte, except of long runs of one number.
_MOST_EXPANSION = 2000


def read_root(path: str, tree: str | None, naming: Naming) -> Table:
    """Read the branches of one tree of a ROOT file.

    Parameters
    ----------
    path : str
        The file.
    tree : str or None
        Name of the tree; None where the file has only one.
    naming : Naming
        Which branches become which variables.

    Returns
    -------
    Table
        The columns. Where branches are jagged (a list of hits per event), they are joined, values per event are
        repeated for each of its hits, and ``event`` is the entry of the tree, unless a branch is named so.

    Raises
    ------
    ImportError
        Without uproot.
    ValueError
        For damaged files, no or several trees, branches that are no numbers, and lists of unequal lengths.
    """
    try:
        import uproot
    except ImportError as error:
        raise ImportError('reading ROOT files needs uproot: pip install "daskclust[io]"') from error
    with reading(path, "ROOT"):
        # Mapped: with its other sources, uproot starts threads, which go on where a damaged file ends the reading.
        file = uproot.open(path, handler=uproot.MemmapSource)
    with file:
        name = _tree_name(file, tree, path)
        with reading(path, "ROOT"):
            branches = {b.name: b for b in file[name].itervalues(recursive=True) if not len(b.branches)}
        naming = naming.settle(list(branches))
        chosen = naming.choose(list(branches), named=True)
        arrays = {name: _array(uproot, branches[name], name, path) for name in chosen}
    columns = _flatten(arrays, path)
    event = columns.pop("", None)
    result = {ours: columns[name] for name, ours in chosen.items()}
    if event is not None and "event" not in result:
        result["event"] = event
    return Table(result, naming)


def _tree_name(file: Any, tree: str | None, path: str) -> str:
    """Return the name of the tree to read."""
    with reading(path, "ROOT"):
        known = list(file.keys(cycle=False, filter_classname="TTree"))
    if tree is None:
        if len(known) != 1:
            raise ValueError(
                f"{path} has {len(known)} trees ({listed(known)}); choose one with {path}:name"
                if known
                else f"{path} has no TTree"
            )
        return str(known[0])
    if tree not in known:
        raise ValueError(f"{path} has no tree {quoted(tree)}{meant(tree, known)}; it has {listed(known)}")
    return tree


def _array(uproot: Any, branch: Any, name: str, path: str) -> Any:
    """Return the numbers of a branch as an awkward array of one dimension or two."""
    with reading(path, "ROOT"):
        kind = branch.interpretation
        numbers = kind.content if isinstance(kind, uproot.AsJagged) else kind
        is_known = isinstance(numbers, uproot.interpretation.numerical.Numerical)
        told = branch.typename
    if not is_known:
        raise _no_numbers(name, told, path)
    _check_baskets(branch, name, path)
    with reading(path, "ROOT"):
        return branch.array(_checked(uproot, kind) if numbers is not kind else kind, library="ak")


def _no_numbers(name: str, told: Any, path: str) -> ValueError:
    """Return the error for a branch of another type."""
    return ValueError(
        f"branch {quoted(name)} of {path} has type {short(told)}, which is neither a number per hit nor a list of "
        f"numbers per event; leave it out with columns={{{quoted(name)}: None}}"
    )


def _check_baskets(branch: Any, name: str, path: str) -> int:
    """Raise for a branch that claims more than its baskets hold; return the bytes that these have, uncompressed.

    uproot allocates what headers claim before it reads, so damaged ones must not get that far.
    """
    size, total = os.path.getsize(path), 0
    with reading(path, "ROOT"):
        entries = max(branch.num_entries, branch.entry_offsets[-1])
        dtype = getattr(branch.interpretation, "from_dtype", None)
        for number in range(branch.num_baskets):
            stored, made = branch.basket_compressed_bytes(number), branch.basket_uncompressed_bytes(number)
            if not 0 <= stored <= size or not 0 <= made <= _MOST_EXPANSION * stored:
                raise ValueError(f"basket {number} of branch {quoted(name)} claims {made} bytes, made of {stored}")
            total += made
        counts = branch.count_branch
    room = total if counts is None else total + _check_baskets(counts, counts.name, path)
    claimed = entries * (1 if dtype is None else dtype.itemsize)
    if not 0 <= claimed <= room:
        raise ValueError(
            f"branch {quoted(name)} of {path} claims {entries} entries, and its baskets have {room} bytes: it was not "
            f"written completely; write it again, or leave it out with columns={{{quoted(name)}: None}}"
        )
    return total


def _checked(uproot: Any, kind: Any) -> Any:
    """Return the interpretation of jagged numbers with a check that lists lie within the numbers of their basket.

    uproot believes these offsets, and allocates, and leaves unset, what they claim.
    """

    class Checked(uproot.AsJagged):  # type: ignore[misc,unused-ignore]
        def basket_array(self, *args: Any, **options: Any) -> Any:
            found = super().basket_array(*args, **options)
            offsets = found.offsets
            if len(offsets) and (
                offsets[0] < 0 or offsets[-1] > len(found.content) or (offsets[1:] < offsets[:-1]).any()
            ):
                raise ValueError("the offsets of its lists do not lie, in order, within their numbers")
            return found

    return Checked(kind.content, kind.header_bytes, kind.typename, kind.original)


def _flatten(arrays: Mapping[str, Any], path: str) -> Arrays:
    """Return flat columns of flat or jagged awkward arrays; the event number has the name ''."""
    import awkward as ak

    for name, array in arrays.items():
        if array.ndim > 2 or not all(kind in "fiub" for kind in _kinds(array)):
            raise _no_numbers(name, array.type, path)
    jagged = [name for name, array in arrays.items() if array.ndim == 2]
    if not jagged:
        return {name: ak.to_numpy(array) for name, array in arrays.items()}
    counts = ak.to_numpy(ak.num(arrays[jagged[0]]))
    columns: Arrays = {"": np.repeat(np.arange(len(counts), dtype=np.int64), counts)}
    for name, array in arrays.items():
        if name not in jagged:
            columns[name] = np.repeat(ak.to_numpy(array), counts)
            continue
        if not np.array_equal(ak.to_numpy(ak.num(array)), counts):
            raise ValueError(
                f"branches {quoted(jagged[0])} and {quoted(name)} of {path} have lists of unequal lengths, so they are "
                "not of the same hits; give columns={'branch': 'variable', ..., '*': None} to read only those "
                "that belong together"
            )
        columns[name] = ak.to_numpy(ak.flatten(array))
    return columns


def _kinds(array: Any) -> list[str]:
    """Return the NumPy kind of the numbers in an awkward array, 'O' for what is no number."""
    import awkward as ak

    flat = ak.flatten(array, axis=None) if array.ndim == 2 else array
    try:
        return [ak.to_numpy(flat).dtype.kind]
    except (TypeError, ValueError):
        return ["O"]
