"""Columns of ROOT files: branches of one TTree, or fields of one RNTuple, flat or jagged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.nested import Nesting, join
from daskclust.core.data.quote import listed, meant, quoted, short
from daskclust.io.blocks import as_text, blocks_of, only_dim, with_scalars_told
from daskclust.io.files import import_library, reading, reads
from daskclust.io.replacing import replacing
from daskclust.io.schema import Naming, Table, short_names

_LEAVE_OUT = "leave it out with columns={{{name}: None}}"  # its name is filled in
_CLASSES = ("TTree", "ROOT::RNTuple")


@reads("ROOT")
def read_root(path: str, tree: str | None, naming: Naming) -> Table:
    """Read the branches of one TTree of a ROOT file, or the fields of one RNTuple: `tree`, or the only one.

    Lists are joined, values of an entry are repeated for each of its hits, and ``event`` is the entry, unless a branch
    is named so. Fields of a collection in an RNTuple go by their own name, as ``x`` of ``hits.x``, where no other field
    has it, and by their path otherwise.
    """
    with _opened(path, tree) as (kind, parts):
        naming = naming.settle(list(parts))
        chosen = naming.choose(list(parts), named=True)
        array_of = _field_array if kind == "field" else _branch_array
        arrays = {}
        for name in chosen:
            with reading(path, "ROOT", f"{kind} {quoted(name)}"):
                arrays[name] = array_of(parts[name], name, path)
    chosen = naming.without_lists(chosen, [name for name, array in arrays.items() if array.layout.purelist_depth > 1])
    arrays = {name: arrays[name] for name in chosen}
    try:
        columns, counts = join(arrays, path, (kind, "branches" if kind == "branch" else "fields"), _LEAVE_OUT)
    except TypeError as error:
        raise ValueError(str(error)) from error
    result = {ours: columns[name] for name, ours in chosen.items()}
    if counts is not None and "event" not in result:
        result["event"] = Nesting(counts).event()
    return Table(result, naming)


def own_columns(path: str, tree: str | None, *, joins: bool = True) -> dict[str, Any]:
    """Return all columns of a tree of a file as they are, text as objects; lists are joined, or texts, too."""
    with _opened(path, tree) as (kind, parts):
        import awkward as ak

        if kind == "field":
            arrays = {name: field.array() for name, field in parts.items()}
        else:
            whole = {name: (branch.array(library="ak"), leaf) for name, (branch, leaf) in parts.items()}
            arrays = {name: array if leaf is None else array[leaf] for name, (array, leaf) in whole.items()}
    lists = [name for name, array in arrays.items() if joins and array.layout.purelist_depth == 2]
    lengths = np.asarray(ak.num(arrays[lists[0]])) if lists else None
    columns = {}
    for name, array in arrays.items():
        values = ak.flatten(array) if name in lists else array
        if values.ndim > 1:  # texts have two dimensions
            words = map(str, values.to_list()) if values.layout.purelist_depth > 1 else values.to_list()
            found = np.fromiter(words, object, len(values))
        else:
            found = np.asarray(values)
        columns[name] = found if lengths is None or name in lists else np.repeat(found, lengths)
    return columns


def text_in(path: str, tree: str | None) -> list[str]:
    """Return the columns of a tree of a file that have text, without reading it."""
    with _opened(path, tree) as (kind, parts):
        types = {name: part.typename if kind == "field" else part[0].typename for name, part in parts.items()}
    return [name for name, type_ in types.items() if "string" in type_ or type_ == "char*"]


def write_root(ds: xr.Dataset, path: Path) -> None:
    """Write columns as the branches of a TTree ``points``, completely or not at all; text as strings."""
    uproot = import_library("uproot", "ROOT files")
    import awkward as ak

    ds = with_scalars_told(ds)
    dim, tree = only_dim(ds), None
    with replacing(path) as stream, uproot.recreate(stream.name) as file:
        for block in blocks_of(ds, dim):
            words = {name: as_text(values) for name, values in block.items()}
            columns = {name: ak.from_numpy(v) if v.dtype.kind == "U" else v for name, v in words.items()}
            if tree is None:
                file["points"] = columns
                tree = file["points"]
            else:
                tree.extend(columns)


@contextmanager
def _opened(path: str, tree: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Open the branches of a tree, or the fields of an RNTuple, and tell which of these they are."""
    uproot = import_library("uproot", "ROOT files")
    # Mapped: with its other sources, uproot starts threads, which go on where a damaged file ends the reading.
    with uproot.open(path, handler=uproot.MemmapSource) as file:
        name = _tree_name(file, tree, path)
        is_ntuple = file.classname_of(name) == _CLASSES[1]
        yield ("field", _fields(file[name])) if is_ntuple else ("branch", _branches(file[name]))


def _tree_name(file: Any, tree: str | None, path: str) -> str:
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


def _branches(tree: Any) -> dict[str, Any]:
    """Return the branches of a tree that have no branches, by their name, or path where several have one name.

    Leaves of a branch that has several, which are a struct, are columns, too.
    """
    leaves = [
        (key.split("/"), branch, field)
        for key, branch in tree.iteritems(recursive=True)
        if not len(branch.branches)
        for field in _struct(branch) or [None]
    ]
    names = short_names([(*path, *([] if field is None else [field])) for path, _, field in leaves])
    return {name: (branch, field) for name, (_, branch, field) in zip(names, leaves, strict=True)}


def _struct(branch: Any) -> Any:
    """Return the names of the leaves of a branch that has several."""
    import uproot

    numbers = getattr(branch.interpretation, "content", branch.interpretation)
    return numbers.to_dtype.base.names if type(numbers) is uproot.AsDtype else None


def _fields(ntuple: Any) -> dict[str, Any]:
    """Return the fields of an RNTuple that have no fields, by their name or path."""
    paths = ntuple.keys()
    inner = {path.rpartition(".")[0] for path in paths}
    leaves = [path for path in paths if path not in inner]
    names = short_names([tuple(path.split(".")) for path in leaves])
    return {name: ntuple[path] for name, path in zip(names, leaves, strict=True)}


def _field_array(field: Any, name: str, path: str) -> Any:
    """Return the numbers of a field, if its lists lie within them, as an awkward array; missing floats are NaN."""
    import awkward as ak

    array = field.array()
    if wrong := ak.validity_error(array):
        raise ValueError(wrong)
    if "?" in str(array.type) and ak.to_numpy(ak.flatten(array, axis=None)).dtype.kind == "f":
        array = ak.fill_none(array, float("nan"), axis=-1)
    return array


def _branch_array(leaf: tuple[Any, str | None], name: str, path: str) -> Any:
    """Return the numbers of a branch, or of one of its leaves, as an awkward array of one dimension or two."""
    import uproot

    branch, field = leaf
    kind = branch.interpretation
    is_jagged = isinstance(kind, uproot.AsJagged)
    if not isinstance(kind.content if is_jagged else kind, uproot.interpretation.numerical.Numerical):
        raise ValueError(
            f"branch {quoted(name)} of {path} has the type {short(branch.typename)}, which is neither a number nor a "
            "list of numbers; " + _LEAVE_OUT.format(name=quoted(name))
        )
    array = branch.array(_checked(kind) if is_jagged else kind, library="ak")
    if len(array) != branch.num_entries:
        raise ValueError(f"it has {len(array)} of its {branch.num_entries} entries")
    return array if field is None else array[field]


def _checked(kind: Any) -> Any:
    """Return the interpretation of lists with a check that they lie within their basket, beyond which uproot reads."""
    import uproot

    class Checked(uproot.AsJagged):  # type: ignore[misc,unused-ignore]
        def basket_array(self, *args: Any, **options: Any) -> Any:
            found = super().basket_array(*args, **options)
            places = np.concatenate([[0], found.offsets, [len(found.content)]])
            if (places[1:] < places[:-1]).any():
                raise ValueError("the offsets of its lists do not lie, in order, within their numbers")
            return found

    return Checked(kind.content, kind.header_bytes, kind.typename, kind.original)
