"""Chunks of lazy data sets after those of their files."""

from __future__ import annotations

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from daskclust import io
from daskclust.io.rows import About, chunk_sizes

ROWS = 1000


@pytest.mark.parametrize(
    ("own", "sizes"),
    [
        (None, (400, 400, 200)),  # a file without chunks
        (100, (400, 400, 200)),
        (150, (450, 450, 100)),
        (300, (300, 300, 400)),
        (500, (500, 500)),
        (800, (800, 200)),
        (900, (400, 400, 200)),  # each would be read thrice if they were larger, and take too much memory
        (1, (400, 400, 200)),
    ],
)
def test_chunks_are_whole_ones_of_the_file(own, sizes):
    assert chunk_sizes(About(400), [(ROWS, own)]) == sizes
    assert chunk_sizes(300, [(ROWS, own)]) == (300, 300, 300, 100)  # a number is taken as it is


def test_small_parts_are_taken_together_and_empty_ones_vanish():
    assert chunk_sizes(About(400), [(150, 150), (0, None), (250, 250), (10, 10), (600, 600), (0, 4)]) == (400, 10, 600)
    assert chunk_sizes(About(400), [(0, None)]) == chunk_sizes(About(400), []) == (0,)


def _snapshot(path, rows, own):
    with h5py.File(path, "w") as file:
        header = file.create_group("Header").attrs
        header["NumPart_ThisFile"] = header["NumPart_Total"] = [0, rows, 0, 0, 0, 0]
        header["MassTable"], header["BoxSize"], header["NumFilesPerSnapshot"] = [0, 1.0, 0, 0, 0, 0], 1.0, 1
        group = file.create_group("PartType1")
        group.create_dataset("Coordinates", data=np.zeros((rows, 3), np.float32), chunks=(own, 3))
        group.create_dataset("Velocities", data=np.zeros((rows, 3), np.float32), chunks=(own + 1, 1))


def _hdf5(path, rows, own):
    with h5py.File(path, "w") as file:
        for name in "xyz":
            file.create_dataset(name, data=np.zeros(rows), chunks=(own,))


def _zarr(path, rows, own):
    group = zarr.open_group(path, mode="w")
    for name in "xyz":
        group.create_array(name, shape=rows, chunks=own, dtype="f4", fill_value=1.0)[:] = 0


def _parquet(path, rows, own):
    pq.write_table(pa.table({name: np.zeros(rows) for name in "xyz"}), path, row_group_size=own)


WRITERS = {"snapshot.hdf5": _snapshot, "plain.h5": _hdf5, "store.zarr": _zarr, "table.parquet": _parquet}


@pytest.mark.parametrize("name", WRITERS)
def test_no_chunk_of_a_file_is_read_twice(tmp_path, name):
    WRITERS[name](tmp_path / name, ROWS, 150)

    def opened(chunks):
        if name == "plain.h5":
            return io.read_hits(tmp_path / name, field="particles", chunks=chunks)
        return io.open_particles(tmp_path / name, chunks=chunks)

    ends = np.cumsum(opened(About(400)).chunks["particle"])
    assert set(ends % 150) == {0, ROWS % 150}
    assert len(ends) == 3
    assert opened(About(400)).compute().equals(opened(None))
    assert opened(400).chunks["particle"] == (400, 400, 200)
    assert opened("auto").chunks["particle"] == (ROWS,)


def test_cells_too(tmp_path):
    _parquet(tmp_path / "cells.parquet", ROWS, 150)
    assert io.read_cells(tmp_path / "cells.parquet", chunks=About(400)).chunks["cell"] == (300, 300, 400)
    assert io.read_cells(tmp_path / "cells.parquet", chunks="auto").chunks["cell"] == (ROWS,)
