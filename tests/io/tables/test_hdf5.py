"""HDF5 files of columns: groups, chunks of rows, and what is not read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from cases.files.hits import refused

from daskclust import io
from daskclust.io import read_hits
from daskclust.io.tables import binary


def columns_in(path: Path, group: str = "/", n: int = 5, **options: Any) -> None:
    """Write columns into a group of an HDF5 file."""
    with h5py.File(path, "a") as file:
        where = file.require_group(group)
        for name, values in {"x": np.arange(n), "y": np.arange(n), "toa": np.arange(n) * 1.5625}.items():
            where.create_dataset(name, data=values, **options)


def test_groups(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    columns_in(path, "raw/pixels")
    with h5py.File(path, "a") as file:
        file["raw"].attrs["n_words"] = 5
        file["raw/pixels"].attrs["n_lost"] = np.int32(2)
        file["picture"] = np.zeros((4, 4))
        file["text"] = "a"
    ds = read_hits(path)
    assert ds.sizes == {"hit": 5}
    assert ds.attrs == {"field": "timepix", "layout": "chips", "n_lost": 2, "source": str(path)}
    columns_in(path, "other", 3)
    refused(r"has 2 groups with columns \('other', 'raw/pixels'\); choose one with .*:name", path)
    assert read_hits(f"{path}:other").sizes == {"hit": 3}
    assert read_hits(f"{path}:/raw/pixels/", chunks=2).compute().sizes == {"hit": 5}
    refused(r"has no group 'none' with columns; it has 'other', 'raw/pixels'", f"{path}:none")
    columns_in(path, "/", 2)
    assert read_hits(path, columns={"picture": None, "text": None}).sizes == {"hit": 2}
    refused(r"dataset /picture of .* is no column of numbers; leave it out with columns=\{'picture'", path)


@pytest.mark.parametrize("group", ["", "run/"])
def test_records_beside_other_datasets(tmp_path: Path, group: str) -> None:
    """They are a group of their own, and no column of the group that they are in."""
    path = tmp_path / "run.h5"
    with h5py.File(path, "w") as file:
        file[f"{group}hits"] = np.array([(1.0, 2.0), (3.0, 4.0)], [("x", "f8"), ("y", "f8")])
        file[f"{group}x"], file[f"{group}y"] = np.arange(5), np.arange(5)
    here = group.strip("/") or "/"
    refused(rf"has 2 groups with columns \('{group}hits', '{here}'\); choose one with .*run.h5:name", path)
    for chunks in (None, 2):
        assert read_hits(f"{path}:{group}hits", chunks=chunks)["y"].values.tolist() == [2, 4]
        assert read_hits(f"{path}:{here}", chunks=chunks).sizes == {"hit": 5}


def test_blocks_read_only_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns_in(tmp_path / "run.h5", n=12)
    lazy = read_hits(tmp_path / "run.h5", chunks=4)
    assert all(key.startswith("daskclust-io-") for key in lazy["x"].data.dask.layers)
    asked: list[Any] = []
    original = h5py.Dataset.__getitem__

    def spy(self: Any, key: Any, **options: Any) -> Any:
        asked.append((self.name, key))
        return original(self, key, **options)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", spy)
    lazy["y"][5:7].compute()
    assert asked == [("/y", slice(4, 8))]


def test_columns_of_unequal_lengths(tmp_path: Path) -> None:
    columns_in(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5", "a") as file:
        file["triggers"] = np.arange(3)
    for chunks in (None, 2):
        refused(r"unequal lengths: \{'toa': 5, 'triggers': 3, 'x': 5, 'y': 5\}", tmp_path / "run.h5", chunks=chunks)
    assert read_hits(tmp_path / "run.h5", columns={"triggers": None}).sizes == {"hit": 5}


def test_what_was_not_written_is_not_read(tmp_path: Path) -> None:
    for k, options in enumerate([{}, {"chunks": (1 << 20,)}, {"chunks": (1 << 20,), "compression": "gzip"}]):
        path = tmp_path / f"run{k}.h5"
        columns_in(path)
        with h5py.File(path, "a") as file:
            del file["x"]
            file.create_dataset("x", shape=(10**12,), dtype="f8", **options)
            if k:
                file["x"][:3] = 1
        for chunks in (None, 10**6):
            refused(r"dataset /x of .*\.h5 has .* (bytes|chunks): it was not written compl", path, chunks=chunks)


def test_other_files_are_not_read(tmp_path: Path) -> None:
    path, secret = tmp_path / "run.h5", tmp_path / "secret.bin"
    np.arange(5.0).tofile(secret)
    columns_in(path)
    columns_in(tmp_path / "other.h5")
    with h5py.File(path, "a") as file:
        del file["x"]
        file.create_dataset("x", shape=(5,), dtype="f8", external=[(str(secret), 0, 40)])
    refused(r"dataset /x of .* stores its numbers in other files", path)
    with h5py.File(path, "a") as file:
        del file["x"]
        file["x"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")
    refused("has no column for 'x'", path)
    with h5py.File(path, "a") as file:
        del file["x"]
        virtual = h5py.VirtualLayout(shape=(5,), dtype="f8")
        virtual[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", shape=(5,))
        file.create_virtual_dataset("x", virtual)
    refused(r"dataset /x of .* stores its numbers in other files", path)


@pytest.mark.parametrize("name", ["hits", "run/hits/table"])
@pytest.mark.parametrize("chunks", [None, 2])
def test_records_are_a_table(tmp_path: Path, name: str, chunks: int | None) -> None:
    rows = np.zeros(5, [("pos", "f8", 3), ("mass", ">f4"), ("id", "u2"), ("name", "S3")])
    rows["pos"], rows["mass"], rows["id"] = np.arange(15.0).reshape(5, 3), np.arange(5), np.arange(5)
    path = tmp_path / "halos.h5"
    with h5py.File(path, "w") as file:
        file[name] = rows
        file[name].attrs["run"] = 7
    found = read_hits(path, field="particles", chunks=chunks, columns={"name": None})
    assert np.array_equal(np.stack([found[axis] for axis in "xyz"], axis=1), rows["pos"])
    assert np.array_equal(found["mass"], rows["mass"])
    assert found.attrs["run"] == 7
    with pytest.raises(ValueError, match=r"\[name\] .* is no column"):
        read_hits(path, field="particles")


@pytest.mark.parametrize("name", ["pos", "Coordinates", "Position"])
def test_vectors_are_columns_of_their_axes(tmp_path: Path, name: str) -> None:
    path, pos = tmp_path / "snap.h5", np.arange(12.0).reshape(4, 3)
    with h5py.File(path, "w") as file:
        file[name] = pos
    for chunks in (None, 3):
        particles = read_hits(path, field="particles", chunks=chunks)
        assert np.array_equal(np.stack([particles[axis] for axis in "xyz"], axis=1), pos)
    assert set(read_hits(path, field="particles", columns={f"{name}_z": "mass"})) == {"x", "y", "mass"}


@pytest.mark.parametrize("suffix", [".h5", ".zarr"])
@pytest.mark.parametrize("wanted", [["x"], ["z", "x"], ["y", "z", "x"]])
def test_only_columns_that_are_chosen_take_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, wanted: list[str]
) -> None:
    """Of an array of vectors."""
    path, pos = tmp_path / f"snap{suffix}", np.arange(3000.0).reshape(1000, 3)
    if suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["Coordinates"] = pos
        names, read = {axis: f"Coordinates_{axis}" for axis in "xyz"}, partial(read_hits, field="particles")
    else:
        zarr.open_group(path, mode="w").create_array("Coordinates", data=pos)
        names, read = {axis: axis for axis in "xyz"}, io.open_particles
    columns = {**{names[axis]: new for axis, new in zip(wanted, "xyz", strict=False)}, "*": None}
    asked: list[int] = []
    monkeypatch.setattr(binary, "check_memory", lambda size, _: asked.append(size))
    for chunks in (None, 300):
        found = read(path, columns=columns, chunks=chunks)
        for axis, new in zip(wanted, "xyz", strict=False):
            assert np.array_equal(found[new], pos[:, "xyz".index(axis)])
    assert asked == [8000 * len(wanted)]
