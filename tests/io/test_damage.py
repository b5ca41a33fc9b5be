"""Damaged files of every format: an error that names the file, no crash, no part of the data."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.files.writers import write_arborx, write_gmhc, write_npy, write_ntuple, write_root
from fuzz.readers import is_clear
from hypothesis import given
from hypothesis import strategies as st
from laws.systems import content

from daskclust import datasets, io
from daskclust.io import attrs as _attrs


def hits() -> xr.Dataset:
    return datasets.calorimeter(2, 60, rng=1)


def pixels() -> xr.Dataset:
    return datasets.timepix(120, rng=1)


def box() -> xr.Dataset:
    return datasets.cosmology_box(150, rng=1)


def points() -> xr.Dataset:
    return box()[["x", "y", "z"]]


def cells() -> xr.Dataset:
    return datasets.cytometry(100, rng=1).drop_attrs(deep=False)


FORMATS: dict[str, tuple[Callable[..., None], Callable[[], xr.Dataset], Callable[..., xr.Dataset]]] = {
    "hits.parquet": (io.write_hits, hits, io.read_hits),
    "hits.h5": (io.write_hits, hits, io.read_hits),
    "hits.nxs": (io.write_hits, pixels, io.read_hits),
    "hits.npz": (io.write_hits, hits, io.read_hits),
    "hits.npy": (write_npy, lambda: hits()[["x", "y", "layer", "energy"]], io.read_hits),
    "tree.root": (write_root, hits, io.read_hits),
    "ntuple.root": (write_ntuple, hits, io.read_hits),
    "box.hdf5": (io.write_particles, box, io.open_particles),
    "box.parquet": (io.write_particles, box, io.open_particles),
    "box.npy": (write_npy, points, io.open_particles),
    "box.arborx": (write_arborx, points, io.open_particles),
    "box.zarr": (io.write_particles, box, io.open_particles),
    "cells.fcs": (io.write_cells, cells, io.read_cells),
    "cells.parquet": (io.write_cells, cells, io.read_cells),
    "cells.bin": (write_gmhc, cells, io.read_gmhc),
}


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [None, 50])
@pytest.mark.parametrize("damage", ["noise", "half", "start", "end"])
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(tmp_path: Path, name: str, damage: str, chunks: int | None) -> None:
    """All of the data, where nothing but the end of the file is missing, or an error."""
    write, data, read = FORMATS[name]
    path = tmp_path / name
    write(data(), path)
    whole = read(path, chunks=chunks).compute()
    file = next(path.rglob("c/0")) if path.is_dir() else path  # a chunk of a store
    good = file.read_bytes()
    damaged = {"noise": b"\x07" * 500, "half": good[: len(good) // 2], "start": good[:3], "end": good[:-1]}
    file.write_bytes(damaged[damage])
    try:
        found = read(path, chunks=chunks).compute()
    except ValueError as error:
        assert is_clear(error, path)  # noqa: PT017
    else:
        xr.testing.assert_identical(found, whole)


@pytest.mark.parametrize(
    "name", ["hits.csv", *(name for name, (write, *_) in FORMATS.items() if write.__module__.startswith("daskclust"))]
)
def test_a_lost_worker_leaves_nothing(tmp_path: Path, name: str) -> None:
    """What is written is there completely, or what was there before is."""

    def fail(block: Any, block_info: Any = None) -> Any:
        if block_info[0]["chunk-location"][0] == 1:
            raise RuntimeError("lost worker")
        return block

    write, data, _ = FORMATS.get(name, (io.write_hits, hits, io.read_hits))
    good, path = data(), tmp_path / name
    last = list(good.data_vars)[-1]
    bad = good.chunk({good[last].dims[0]: 40})
    lost = bad[last].data.map_blocks(fail, dtype=bad[last].dtype, meta=bad[last].data._meta)
    bad = bad.assign({last: bad[last].copy(data=lost)})
    with pytest.raises(RuntimeError, match="lost worker"):
        write(bad, path)
    assert os.listdir(tmp_path) == []
    write(good, path)
    before = content(path)
    with pytest.raises(RuntimeError, match="lost worker"):
        write(bad, path)
    assert os.listdir(tmp_path) == [name]
    assert content(path) == before


def test_headers_that_say_too_much(tmp_path: Path) -> None:
    """More than the file has, and more than memory holds."""
    np.save(tmp_path / "a.npy", np.zeros((1000, 2)))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes().replace(b"(1000, 2)", b"(9999, 2)"))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for axis in "xy":
            with archive.open(f"{axis}.npy", "w") as member:
                about = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
                np.lib.format.write_array_header_1_0(member, about)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=rf"{name} cannot be read as a NumPy"):
            io.read_hits(tmp_path / name)


def test_lists_of_root_files_that_are_not_there(tmp_path: Path) -> None:
    """Offsets of lists beyond their numbers: uproot would give what happens to be in memory."""
    path = tmp_path / "jagged.root"
    write_root(hits(), path)
    data, good = path.read_bytes(), io.read_hits(path).sizes["hit"]
    rng, wrong = np.random.default_rng(1), 0
    offsets = [k for k in range(len(data) - 8) if data[k : k + 2] == data[k + 4 : k + 6] == b"\0\0" and data[k + 2]]
    for place in rng.choice(offsets, min(40, len(offsets)), replace=False).tolist():
        path.write_bytes(data[: place + 1] + b"\x7f" + data[place + 2 :])
        try:
            assert io.read_hits(path).sizes["hit"] == good
        except ValueError as error:
            assert path.name in str(error)  # noqa: PT017
            wrong += "do not lie, in order, within their numbers" in str(error)
    assert wrong


# -------------------------------------------------------------------------------------------------------------- pickles
class Evil:
    """What makes a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def evil(tmp_path: Path) -> Any:
    """Return such an object; nothing may have unpickled it in the end."""
    yield Evil(tmp_path / "owned")
    assert not (tmp_path / "owned").exists()
    pickle.loads(pickle.dumps(Evil(tmp_path / "owned")))
    assert (tmp_path / "owned").exists()  # it would have been seen


def test_pickles_in_numpy_files(tmp_path: Path, evil: Evil) -> None:
    objects = np.array([[evil, evil, evil]], dtype=object)
    np.save(tmp_path / "bad.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "bad.npz", x=objects[0], y=np.zeros(3))
    np.save(tmp_path / "records.npy", np.array([(1.0, evil)], dtype=[("x", "f8"), ("y", "O")]), allow_pickle=True)
    for name in ("bad.npy", "bad.npz", "records.npy"):
        for read in (io.read_hits, io.open_particles)[: 2 - name.endswith("z")]:
            with pytest.raises(ValueError, match=rf"{name} cannot be read as a NumPy"):
                read(tmp_path / name)


def test_pickles_in_zarr_stores(tmp_path: Path, evil: Evil) -> None:
    """As of format 2, which names any codec of numcodecs."""
    path = tmp_path / "bad.zarr"
    about = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<f8", "fill_value": 0, "order": "C"}
    about |= {"compressor": {"id": "pickle", "protocol": 5}, "filters": None}
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(about))
    (path / "0").write_bytes(pickle.dumps(evil))
    with pytest.raises(ValueError, match=r"bad.zarr cannot be read as a zarr file"):
        io.open_particles(path).compute()


@pytest.mark.parametrize("name", ["a.pkl", "a.csv", "a.parquet", "a.npy", "a.npz", "a.root", "a.h5", "a.arborx", "a"])
def test_bare_pickles(tmp_path: Path, evil: Evil, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(evil))
    for read in (io.read_hits, io.open_particles, io.read_cells, io.read_gmhc):
        with pytest.raises(ValueError, match=rf"{name}\b"):
            read(tmp_path / name)


# --------------------------------------------------------------------------------------------------------- pure parsers
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


ENTRY = ANY_JSON | st.fixed_dictionaries({"attrs": ANY_JSON, "units": ANY_JSON})


@given(st.text() | st.binary() | ENTRY.map(json.dumps))
def test_any_metadata(text: str | bytes) -> None:
    try:
        attrs, units = _attrs.unpack(text, "run.csv")
    except ValueError as error:
        assert is_clear(error, Path("run.csv"))  # noqa: PT017
    else:
        assert all(isinstance(entry, str) for entry in (*attrs, *units, *units.values()))


@given(st.text(max_size=300) | st.from_regex(r"([0-9., ;\t#\n-]|e5|nan|x,y){0,60}", fullmatch=True))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "run.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for read in (io.read_hits, io.read_cells, io.read_gmhc):
        try:
            read(path)
        except ValueError as error:
            assert is_clear(error, path)  # noqa: PT017
