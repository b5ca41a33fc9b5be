"""Columns of ROOT files: branches of one TTree, or fields of one RNTuple, flat or jagged."""

from __future__ import annotations

import os
from typing import Any

from daskclust.core.data.nested import Nesting, join
from daskclust.core.data.quote import listed, meant, quoted, short
from daskclust.io.schema import Naming, Table, short_names
from daskclust.io.tables.binary import reading

# ROOT's compressions make less than this out of one byte, except of long runs of one number.
_MOST_EXPANSION = 2000
# A page of an RNTuple that has one number only is stored in a few bytes, whatever its length.
_ALWAYS = 1 << 26
_LEAVE_OUT = "leave it out with columns={{{name}: None}}"
_CLASSES = ("TTree", "ROOT::RNTuple")


def read_root(path: str, tree: str | None, naming: Naming) -> Table:
    """Read the branches of one TTree of a ROOT file, or the fields of one RNTuple.

    Parameters
    ----------
    path : str
        The file.
    tree : str or None
        Name of the tree or RNTuple; None where the file has only one.
    naming : Naming
        Which branches become which variables. Fields of a collection in an RNTuple go by their own name, as ``x`` of
        ``hits.x``, where no other field has it, and by their path otherwise.

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
        For damaged files, no or several trees and RNTuples, branches that are no numbers, and lists of unequal lengths.
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
            found = file[name]
            is_ntuple = file.classname_of(name) == _CLASSES[1]
            parts = _fields(found) if is_ntuple else _branches(found)
        naming = naming.settle(list(parts))
        chosen = naming.choose(list(parts), named=True)
        if is_ntuple:
            _check_pages(found, path)
            arrays = {name: _field_array(parts[name], name, path) for name in chosen}
        else:
            arrays = {name: _array(uproot, parts[name], name, path) for name in chosen}
    try:
        columns, counts = join(arrays, path, ("field", "fields") if is_ntuple else ("branch", "branches"), _LEAVE_OUT)
    except TypeError as error:
        raise ValueError(str(error)) from error
    result = {ours: columns[name] for name, ours in chosen.items()}
    if counts is not None and "event" not in result:
        result["event"] = Nesting(counts).event()
    return Table(result, naming)


def _branches(tree: Any) -> dict[str, Any]:
    """Return the branches of a tree that have no branches, by their name, or path where several have one name."""
    leaves = [(key, branch) for key, branch in tree.iteritems(recursive=True) if not len(branch.branches)]
    names = short_names([tuple(key.split("/")) for key, _ in leaves])
    return {name: branch for name, (_, branch) in zip(names, leaves, strict=True)}


def _fields(ntuple: Any) -> dict[str, Any]:
    """Return the fields of an RNTuple that have no fields, by their name or path."""
    paths = ntuple.keys()
    inner = {path.rpartition(".")[0] for path in paths}
    leaves = [path for path in paths if path not in inner]
    names = short_names([tuple(path.split(".")) for path in leaves])
    return {name: ntuple[path] for name, path in zip(names, leaves, strict=True)}


def _check_pages(ntuple: Any, path: str) -> None:
    """Raise for an RNTuple whose pages claim much more than the file can hold: uproot allocates what they claim."""
    with reading(path, "ROOT"):
        pages = sum(p.num_elements for cluster in ntuple.page_link_list for column in cluster for p in column.pages)
        claimed = 8 * max(pages, ntuple.num_entries)
    size = os.path.getsize(path)
    if not 0 <= claimed <= size * _MOST_EXPANSION + _ALWAYS:
        raise ValueError(f"{path} has {size} bytes, and its RNTuple claims {claimed} bytes: it is damaged")


def _field_array(field: Any, name: str, path: str) -> Any:
    """Return the numbers of a field, if its lists lie within them, as an awkward array; missing floats are NaN."""
    import awkward as ak

    with reading(path, "ROOT", f"field {quoted(name)}"):
        array = field.array()
        wrong = ak.validity_error(array)
        if wrong:
            raise ValueError(wrong)
        if "?" in str(array.type) and ak.to_numpy(ak.flatten(array, axis=None)).dtype.kind == "f":
            array = ak.fill_none(array, float("nan"), axis=-1)
    return array


def _tree_name(file: Any, tree: str | None, path: str) -> str:
    """Return the name of the tree or RNTuple to read."""
    with reading(path, "ROOT"):
        known = list(file.keys(cycle=False, filter_classname=_CLASSES))
    if tree is None:
        if len(known) != 1:
            raise ValueError(
                f"{path} has {len(known)} trees and RNTuples ({listed(known)}); choose one with {path}:name"
                if known
                else f"{path} has no TTree and no RNTuple"
            )
        return str(known[0])
    if tree not in known:
        raise ValueError(f"{path} has no tree or RNTuple {quoted(tree)}{meant(tree, known)}; it has {listed(known)}")
    return tree


def _array(uproot: Any, branch: Any, name: str, path: str) -> Any:
    """Return the numbers of a branch as an awkward array of one dimension or two."""
    with reading(path, "ROOT"):
        kind = branch.interpretation
        numbers = kind.content if isinstance(kind, uproot.AsJagged) else kind
        is_known = isinstance(numbers, uproot.interpretation.numerical.Numerical)
        told = branch.typename
    if not is_known:
        raise ValueError(
            f"branch {quoted(name)} of {path} has the type {short(told)}, which is neither a number nor a list of "
            "numbers; " + _LEAVE_OUT.format(name=quoted(name))
        )
    _check_baskets(branch, name, path)
    with reading(path, "ROOT"):
        return branch.array(_checked(uproot, kind) if numbers is not kind else kind, library="ak")


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
