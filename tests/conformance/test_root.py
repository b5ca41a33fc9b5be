"""Trees and RNTuples that uproot writes, read as uproot reads them; leaves of a struct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot
from cases.lanes import some_of

from daskclust.io import read_hits

TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
COMPRESSIONS = [None, uproot.ZLIB(1), uproot.LZMA(1), uproot.LZ4(1), uproot.ZSTD(1)]


def columns(n: int, kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2 if kind == "?" else 100, n).astype(kind)
    return {"x": rng.normal(size=n), "y": rng.normal(size=n).astype("f4"), "v": values}


def store(path: Path, arrays: dict[str, Any], *, ntuple: bool, parts: int = 1, **options: Any) -> None:
    """Write arrays in baskets, or clusters, of some entries."""
    with uproot.recreate(path, **options) as file:
        make = file.mkrntuple if ntuple else file.mktree
        step = -(-len(next(iter(arrays.values()))) // parts)
        first, *others = ({k: v[s * step : (s + 1) * step] for k, v in arrays.items()} for s in range(parts))
        types = {
            k: np.dtype((v.dtype, v.shape[1:])) if isinstance(v, np.ndarray) else ak.type(v).content
            for k, v in first.items()
        }
        tree = make("hits", first if ntuple else types)
        for part in others if ntuple else [first, *others]:
            tree.extend(part)


@some_of(22, parts=[1, 3], kind=TYPES, ntuple=[False, True])
def test_types(tmp_path: Path, ntuple: bool, kind: str, parts: int) -> None:
    path = tmp_path / "a.root"
    store(path, columns(50, kind), ntuple=ntuple, parts=parts)
    ds = read_hits(path)
    with uproot.open(path) as file:
        theirs = file["hits"].arrays(library="np" if not ntuple else "ak")
        for name in columns(1, kind):
            values = np.asarray(theirs[name])
            np.testing.assert_array_equal(ds[name], values, strict=False)
            assert ds[name].dtype == values.dtype.newbyteorder("=")


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
@pytest.mark.parametrize("ntuple", [False, True])
def test_compressions_and_lists(tmp_path: Path, ntuple: bool, compression: Any) -> None:
    flat, counts = columns(60, "i4"), np.random.default_rng(1).multinomial(60, np.ones(20) / 20)
    lists = {name: ak.unflatten(values, counts) for name, values in flat.items()}
    store(tmp_path / "a.root", lists, ntuple=ntuple, parts=2, compression=compression)
    ds = read_hits(tmp_path / "a.root")
    for name, values in flat.items():
        np.testing.assert_array_equal(ds[name], values)
    np.testing.assert_array_equal(ds["event"], np.repeat(np.arange(20), counts))


FIELDS = [[("x", ">f4"), ("y", ">f4")], [("x", ">i4"), ("q", ">f4")], [("px", ">f4"), ("py", ">i4")]]


def as_struct(monkeypatch: pytest.MonkeyPatch, fields: list[Any]) -> None:
    """Make uproot, which writes no leaf lists, read the branch p as one: the bytes of one are those of its numbers."""
    usual, struct = uproot.TBranch.interpretation.fget, uproot.AsDtype(np.dtype(fields))

    def interpretation(branch: Any) -> Any:
        found = usual(branch)
        return found if branch.name != "p" else uproot.AsJagged(struct) if hasattr(found, "content") else struct

    monkeypatch.setattr(uproot.TBranch, "interpretation", property(interpretation))


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_leaves_of_a_struct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: list[Any], is_list: bool) -> None:
    given = np.arange(16, dtype=">f4").reshape(8, 2)
    entries = {"p": given, **({} if fields[1][0] == "y" else {"x": np.arange(8.0), "y": np.arange(8.0)})}
    if is_list:
        entries = {name: ak.unflatten(values, [3, 0, 5]) for name, values in entries.items() if name != "p"}
        entries["p"] = ak.unflatten(ak.Array(given.ravel().astype("f4")), [6, 0, 10])
    store(tmp_path / "a.root", entries, ntuple=False)
    as_struct(monkeypatch, fields)
    ds = read_hits(tmp_path / "a.root")
    for name, _ in fields:
        theirs = given.view(np.dtype(fields)).ravel()[name]
        np.testing.assert_array_equal(ds[f"p.{name}" if name in entries else name], theirs)


def test_a_struct_that_is_no_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path / "a.root", {"x": np.zeros((2, 4)), "y": np.zeros((2, 4)), "p": np.zeros((2, 4, 2))}, ntuple=False)
    with pytest.raises(ValueError, match=r"branch 'p' of .*a.root is nested too deep.*columns={'p': None}"):
        read_hits(tmp_path / "a.root")
    as_struct(monkeypatch, [("a", ">f8", (2,)), ("b", ">f8", (2, 3))])
    with pytest.raises(ValueError, match=r"branch 'b' of .*a.root is nested too deep.*columns={'b': None}"):
        read_hits(tmp_path / "a.root")
