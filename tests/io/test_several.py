"""Several files as one data set: every reader takes a list, a glob and a folder, lazily too, and by one rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from cases.files.particles import write_gadget2
from cases.files.writers import write_arborx, write_gmhc, write_katherine, write_npy, write_root, write_t3pa
from cases.lanes import some_of
from hypothesis import example, given
from hypothesis import strategies as st

from daskclust import datasets, io
from daskclust.io.files import numeric_order
from daskclust.io.rows import About

NUMBERS = (2, 10, 1)
"""Of the files, in the order in which a list names them; each has so many points more than 20."""


def hits(k: int) -> xr.Dataset:
    return datasets.calorimeter(2, 10 + k, rng=k).drop_attrs(deep=False).assign_attrs(field="calorimeter")


def pixels(k: int) -> xr.Dataset:
    return datasets.timepix(20 + k, rng=k).drop_vars("truth")


def box(k: int) -> xr.Dataset:
    return datasets.cosmology_box(60 + k, rng=k)[["x", "y", "z"]].assign_attrs(boxsize=50.0)


def cells(k: int) -> xr.Dataset:
    return datasets.cytometry(20 + k, 3, rng=k).drop_attrs(deep=False)


def write_run(ds: xr.Dataset, path: Path) -> None:
    io.write_tpx3(ds, path, triggers=xr.Dataset({"time": ("trigger", np.arange(3.0) * 1000)}))


Read = Callable[..., xr.Dataset]
FORMATS: dict[str, tuple[Callable[..., None], Callable[[int], xr.Dataset], Read]] = {
    **{f"hits{suffix}": (io.write_hits, hits, io.read_hits) for suffix in (".csv", ".parquet", ".h5", ".npz")},
    "pixels.nxs": (io.write_hits, pixels, io.read_hits),
    "hits.npy": (write_npy, lambda k: hits(k)[["x", "y", "layer", "energy"]], io.read_hits),
    "hits.root": (write_root, hits, io.read_hits),
    **{f"box{suffix}": (io.write_particles, box, io.open_particles) for suffix in (".hdf5", ".parquet", ".zarr")},
    "box.npy": (write_npy, box, io.open_particles),
    "box.arborx": (write_arborx, box, io.open_particles),
    "cells.fcs": (io.write_cells, cells, io.open_fcs),
    **{f"tube{suffix}": (io.write_cells, cells, io.read_cells) for suffix in (".fcs", ".csv", ".parquet")},
    "points.bin": (write_gmhc, cells, io.read_gmhc),
    "run.tpx3": (write_run, pixels, io.open_tpx3),
    "triggers.tpx3": (write_run, pixels, io.open_tpx3_triggers),
    "run.t3pa": (write_t3pa, pixels, io.open_t3pa),
    "run.raw": (write_katherine, pixels, io.open_katherine),
    "run.clog": (lambda ds, path: io.write_clog(ds.clust.events(200.0), path), pixels, io.open_pixet),
}
WAYS: dict[str, Callable[[Path, str], tuple[Any, tuple[int, ...]]]] = {
    "list": lambda folder, suffix: ([folder / f"run_{k}{suffix}" for k in NUMBERS], NUMBERS),
    "generator": lambda folder, suffix: ((str(folder / f"run_{k}{suffix}") for k in NUMBERS), NUMBERS),
    "glob": lambda folder, suffix: (str(folder / f"run_*{suffix}"), (1, 2, 10)),
    "list of globs": lambda folder, suffix: ([folder / f"run_?{suffix}", folder / f"run_??{suffix}"], (1, 2, 10)),
    "folder": lambda folder, _: (folder, (1, 2, 10)),
}


@pytest.mark.filterwarnings("ignore")
@some_of(len(FORMATS), name=FORMATS, way=WAYS, chunks=[None, 9])
def test_every_reader_takes_several(tmp_path: Path, name: str, way: str, chunks: int | None) -> None:
    write, make, read = FORMATS[name]
    suffix = Path(name).suffix
    for k in NUMBERS:
        write(make(k), tmp_path / f"run_{k}{suffix}")
    (tmp_path / ".hidden").touch()
    paths, order = WAYS[way](tmp_path, suffix)
    options: dict[str, Any] = {} if name == "triggers.tpx3" else {"chunks": chunks}
    alone = [read(tmp_path / f"run_{k}{suffix}", **options) for k in order]
    with raise_if_dask_computes():
        ds = read(paths, **options)
    files = [str(tmp_path / f"run_{k}{suffix}") for k in order]
    assert ds.attrs["files"] == ds["source"].attrs["files"] == files
    assert bool(ds.chunks) == bool(alone[0].chunks) or "chunks" not in options
    dim = ds["source"].dims[0]
    np.testing.assert_array_equal(ds["source"], np.repeat(range(3), [each.sizes[dim] for each in alone]))
    for number, each in enumerate(alone):
        part = ds.isel({dim: np.flatnonzero(ds["source"].values == number)})
        for variable in set(each.variables) - {"event", "frame"}:
            xr.testing.assert_equal(part[variable], each[variable])
            assert part[variable].attrs == each[variable].attrs
    for group in {"event", "frame"} & set(ds.variables):
        groups = [len(np.unique(each[group])) if group in each else 1 for each in alone]
        assert len(np.unique(ds[group])) == sum(groups)


@given(
    numbers=st.lists(st.lists(st.integers(-5, 50), max_size=8), min_size=1, max_size=5),
    chunks=st.sampled_from([None, 2]),
)
def test_events_of_several_files_are_apart(tmp_path_factory: Any, numbers: list[list[int]], chunks: int | None) -> None:
    """Two points are of one event if they were of one file and one event; those that are apart keep their numbers."""
    folder, sizes = tmp_path_factory.mktemp("events"), [len(each) for each in numbers]
    for k, each in enumerate(numbers):
        zeros = np.zeros(len(each))
        ds = io.to_dataset({"x": zeros, "y": zeros, "event": np.array(each, np.int32)})
        io.write_hits(ds, folder / f"{k}.parquet")
    with raise_if_dask_computes():
        ds = io.read_hits(folder, chunks=chunks)
    found, source = ds["event"].values, np.repeat(range(len(numbers)), sizes)
    given_numbers = np.concatenate([np.array(each, int) for each in numbers])
    pairs = source * 1000 + given_numbers
    np.testing.assert_array_equal(found[:, None] == found, pairs[:, None] == pairs)
    full = [each for each in numbers if each]
    if all(max(one) < min(other) for one, other in itertools.pairwise(full)):
        np.testing.assert_array_equal(found, given_numbers)


def test_attributes_and_one_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for k in (1, 2):
        write_run(pixels(k), tmp_path / f"{k}.tpx3")
    ds = io.open_tpx3(tmp_path)
    alone = [io.open_tpx3(tmp_path / f"{k}.tpx3").attrs for k in (1, 2)]
    assert ds.attrs["n_pixel"] == sum(each["n_pixel"] for each in alone)
    assert ds.attrs["layout"] == "chips"
    assert "times of" in caplog.text  # both begin at 0
    one = io.open_tpx3(str(tmp_path / "1*"))
    assert (one["source"] == 0).all()
    assert one.attrs["n_pixel"] == alone[0]["n_pixel"]
    io.write_hits(ds, tmp_path / "both.parquet")
    back = io.read_hits(tmp_path / "both.parquet")
    assert back.attrs["files"] == ds.attrs["files"]
    np.testing.assert_array_equal(back["source"], ds["source"])
    with pytest.raises(ValueError, match=r"both.parquet has a column 'source', .* columns=\{'source': None\}"):
        io.read_hits([tmp_path / "both.parquet"])


def test_channels_in_another_order(tmp_path: Path) -> None:
    for k in (1, 2):
        io.write_cells(cells(k).isel(channel=slice(None, None, 3 - 2 * k)), tmp_path / f"{k}.fcs")
    ds = io.open_fcs(tmp_path, transform=None)
    for k in (1, 2):
        part = ds.isel(cell=ds["source"].values == k - 1)
        wanted = io.open_fcs(tmp_path / f"{k}.fcs", transform=None)
        np.testing.assert_array_equal(part["X"], wanted["X"].sel(channel=ds["channel"]))


T = hits(1)["x"]
DIFFERENT: dict[str, tuple[Any, Read, xr.Dataset, xr.Dataset, str]] = {
    "a column": (
        io.write_hits, io.read_hits, hits(1), hits(1).drop_vars("energy"),
        r"a\.parquet has the column 'energy', and \S*b\.parquet has not",
    ),
    "another column": (
        io.write_hits, io.read_hits, hits(1), hits(1).assign(t=T),
        r"b\.parquet has the column 't', and \S*a\.parquet has not",
    ),
    "a unit": (
        io.write_hits, io.read_hits, hits(1).assign(t=T.assign_attrs(units="s")),
        hits(1).assign(t=T.assign_attrs(units="ns")),
        r"the unit of 't' is 'ns' in \S*b\.parquet, and 's' in \S*a\.parquet",
    ),
    "a field": (
        io.write_hits, io.read_hits, hits(1)[["x", "y"]],
        hits(1)[["x", "y"]].rename(hit="particle").assign_attrs(field="particles"), "'field' is 'particles' in",
    ),
    "a box": (
        io.write_particles, io.open_particles, box(1), box(1).assign_attrs(boxsize=9.0),
        r"'boxsize' is 9.0 in \S*b\.parquet, and 50.0 in",
    ),
    "channels": (
        io.write_cells, io.read_cells, cells(1), cells(1).isel(channel=[0, 1]),
        r"a\.parquet has the channel '[\w+]+', and \S*b\.parquet has not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
@pytest.mark.parametrize("chunks", [None, 5])
def test_files_that_differ_are_refused(tmp_path: Path, what: str, chunks: int | None) -> None:
    write, read, first, second, message = DIFFERENT[what]
    write(first, tmp_path / "a.parquet")
    write(second, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=message):
        read(tmp_path, chunks=chunks)


def test_what_names_no_files(tmp_path: Path) -> None:
    io.write_hits(hits(1), tmp_path / "a.csv")
    io.write_hits(hits(1), tmp_path / "a.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.md").touch()
    wrong: list[tuple[Any, type[Exception], str]] = [
        ([], ValueError, "the list of files is empty"),
        ([tmp_path / "a.csv", 3], TypeError, "or a list of names, got 3"),
        (3, TypeError, "got 3"),
        (b"a.csv", TypeError, "or a list of names, got 97"),
        ([tmp_path / "a.csv", tmp_path / "*.csv"], ValueError, r"a\.csv is given twice"),
        (tmp_path / "b*.csv", FileNotFoundError, r"no file matches \S*b\*\.csv"),
        ([tmp_path / "a.csv", tmp_path / "b.csv"], FileNotFoundError, r"no such file: \S*b\.csv"),
        (tmp_path / "empty", IsADirectoryError, r"empty is a directory; give one that has \.csv or"),
        (
            tmp_path,
            ValueError,
            r"has files of several kinds, '\.csv', '\.parquet'; choose those of one, as \S*/\*\.csv",
        ),
    ]
    for paths, error, message in wrong:
        with pytest.raises(error, match=message):
            io.read_hits(paths)


def test_files_with_marks_of_globs_and_members(tmp_path: Path) -> None:
    for k in (1, 2):
        io.write_hits(hits(k), tmp_path / f"run[{k}].csv")
        with h5py.File(tmp_path / f"{k}.h5", "w") as file:
            for name, values in {"one/x": 1.0, "one/y": 2.0, "two/x": 3.0, "two/y": 4.0}.items():
                file[name] = [values * k]
    assert "source" not in io.read_hits(tmp_path / "run[1].csv")
    assert io.read_hits(tmp_path / "run*.csv").attrs["files"] == [str(tmp_path / f"run[{k}].csv") for k in (1, 2)]
    assert io.read_hits(f"{tmp_path}/*.h5:two")["x"].values.tolist() == [3.0, 6.0]


@given(sizes=st.lists(st.integers(0, 12), min_size=1, max_size=8), about=st.integers(3, 15))
@example(sizes=[0, 0], about=3)
def test_small_files_share_a_chunk(tmp_path_factory: Any, sizes: list[int], about: int) -> None:
    folder = tmp_path_factory.mktemp("small")
    for k, n in enumerate(sizes):
        columns = {"x": np.arange(n) * 1.0, "y": np.full(n, k), "event": np.arange(n) % 3}
        io.write_hits(io.to_dataset(columns), folder / f"{k}.parquet")
    with raise_if_dask_computes():
        lazy = io.read_hits(folder, chunks=About(about))
    chunks = lazy.chunks["hit"]
    assert all(one + other > about for one, other in itertools.pairwise(chunks))
    assert max(chunks) <= 2 * about
    xr.testing.assert_identical(lazy.compute(), io.read_hits(folder))


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_a_snapshot_of_several_files_counts_once(tmp_path: Path, chunks: Any) -> None:
    write_gadget2(tmp_path)
    alone = io.open_particles(tmp_path / "snap_005.0.hdf5", chunks=chunks)
    for paths in (tmp_path, [tmp_path / "snap_005.1.hdf5", tmp_path / "snap_005.0.hdf5"], str(tmp_path / "snap*")):
        ds = io.open_particles(paths, chunks=chunks)
        assert ds.sizes == alone.sizes
        np.testing.assert_array_equal(ds["x"], alone["x"])


@given(st.lists(st.integers(0, 10**6), unique=True), st.sampled_from(["", "run", "2024_"]))
def test_numbers_in_names_count_as_numbers(numbers: list[int], prefix: str) -> None:
    names = sorted((f"{prefix}{k}.csv" for k in numbers), key=numeric_order)
    assert names == [f"{prefix}{k}.csv" for k in sorted(numbers)]
