"""Small valid files of every format, for tests that damage them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from cases.fcs_reference import fcs_bytes

from daskclust import datasets
from daskclust.io import write_cells, write_gmhc, write_hits, write_particles, write_tpx3

_POINTS, _MATRIX = "points.of", "good.of"


def _pixels(n: int = 120) -> xr.Dataset:
    return datasets.timepix(n, kind="pion45", rng=1)


def _calorimeter() -> xr.Dataset:
    return datasets.calorimeter(2, 60, rng=1)


def _box() -> xr.Dataset:
    return datasets.cosmology_box(150, rng=1)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tpx3(folder: Path) -> list[Path]:
    """Hits of one chip and of several in chunks, with TDC and global time words."""
    one, many = _made(folder) / "one.tpx3", folder / "many.tpx3"
    write_tpx3(_pixels(), one)
    hits = _pixels(400)
    hits["chip"] = hits["chip"] * 0 + (np.arange(hits.sizes["hit"]) % 4).astype(np.uint8)
    write_tpx3(hits, many)
    words = [
        0x44 << 56 | 77 << 16,
        0x45 << 56 | 1 << 16,
        *(0x6F << 56 | k << 44 | (k << 20) << 9 | 1 << 5 for k in range(20)),
    ]
    chunk = np.array(words, "<u8").tobytes()
    many.write_bytes(many.read_bytes() + b"TPX3" + bytes([1, 0, *len(chunk).to_bytes(2, "little")]) + chunk)
    return [one, many]


def t3pa(folder: Path) -> list[Path]:
    """With all columns, and with those alone that are needed."""
    rng, n = np.random.default_rng(1), 150
    index, toa = rng.integers(0, 65536, n), np.sort(rng.integers(0, 10**7, n))
    tot, fine = rng.integers(1, 1000, n), rng.integers(0, 32, n)
    full, few = _made(folder) / "full.t3pa", folder / "few.t3pa"
    rows = zip(range(n), index, toa, tot, fine, [0] * n, strict=True)
    full.write_text(
        "\t".join(["Index", "Matrix Index", "ToA", "ToT", "FToA", "Overflow"])
        + "\n"
        + "".join("\t".join(map(str, row)) + "\n" for row in rows)
        + f"{n}\t116\t1000\t0\t0\t1\n{n + 1}\t117\t2000\t0\t0\t1\n"
    )
    lines = ["\t".join(map(str, row)) for row in zip(index, toa, tot, fine, strict=True)]
    few.write_text("\r\n".join(["Matrix Index\tToA\tToT\tFToA", *lines[::-1]]))
    return [full, few]


def katherine(folder: Path) -> list[Path]:
    """A frame with offsets, hits and its counts."""
    rng = np.random.default_rng(1)
    words = [0x7 << 44]
    for k in range(200):
        if k % 20 == 0:
            words.append(0x5 << 44 | k)
        x, y, toa, tot, fine = (int(rng.integers(top)) for top in (256, 256, 1 << 14, 1 << 10, 16))
        words.append(0x4 << 44 | y << 36 | x << 28 | toa << 14 | tot << 4 | fine)
    words += [0xD << 44 | 3, 0xC << 44 | 200]
    path = _made(folder) / "run.raw"
    path.write_bytes(b"".join(word.to_bytes(6, "little") for word in words))
    return [path]


def hits_csv(folder: Path) -> list[Path]:
    """Of a calorimeter with names and without, and pixels with metadata in a comment."""
    paths = [_made(folder) / name for name in ("named.csv", "pixels.csv", "bare.csv")]
    write_hits(_calorimeter(), paths[0])
    write_hits(_pixels(), paths[1])
    paths[2].write_text("".join(f"{k / 7},{-k},{k % 5},1e-{k % 9}\n" for k in range(100)))
    return paths


def hits_txt(folder: Path) -> list[Path]:
    """With spaces, tabs and semicolons, and comments."""
    rows = [(k / 7, -k, k % 5, 0.25) for k in range(100)]
    paths = []
    for name, separator in (("spaces.txt", "  "), ("tabs.tsv", "\t"), ("semicolons.txt", ";")):
        path = _made(folder) / name
        path.write_text("# x y layer energy\n" + "".join(separator.join(map(str, row)) + "  # so\n" for row in rows))
        paths.append(path)
    return paths


def hits_parquet(folder: Path) -> list[Path]:
    """Ours, with lists too, and pandas' with an index, missing values, several row groups and other compressions."""
    paths = [_made(folder) / name for name in ("ours.parquet", "pixels.parquet", "lists.parquet")]
    write_hits(_calorimeter(), paths[0])
    write_hits(_pixels().chunk({"hit": 50}), paths[1])
    event = np.arange(_calorimeter().sizes["hit"]) // 7
    write_hits(_calorimeter().assign(event=("hit", event)).chunk({"hit": 90}), paths[2], nested=True)
    frame = _calorimeter().to_dataframe()
    frame.loc[3, "energy"] = np.nan
    for compression in ("gzip", "zstd", "lz4", "brotli"):
        path = folder / f"{compression}.parquet"
        frame.to_parquet(path, compression=compression, row_group_size=70)
        paths.append(path)
    return paths


def hits_hdf5(folder: Path) -> list[Path]:
    """Ours, and with chunks, filters and groups."""
    import h5py

    paths = [_made(folder) / name for name in ("ours.h5", "pixels.hdf5", "filters.h5", "latest.h5")]
    write_hits(_calorimeter(), paths[0])
    write_hits(_pixels(), paths[1])
    for path, version in zip(paths[2:], ("earliest", "latest"), strict=True):
        with h5py.File(path, "w", libver=version) as file:
            group = file.create_group("run/hits")
            for name, values in _calorimeter().data_vars.items():
                group.create_dataset(name, data=values, chunks=(40,), compression="gzip", shuffle=True, fletcher32=True)
            group["x"].attrs["units"] = "cm"
    return paths


def hits_root(folder: Path) -> list[Path]:
    """Flat and jagged trees, with and without compression."""
    import awkward as ak
    import uproot

    rng, paths = np.random.default_rng(1), []
    for name, compression in (
        ("plain", None),
        ("zlib", uproot.ZLIB(4)),
        ("lz4", uproot.LZ4(4)),
        ("lzma", uproot.LZMA(4)),
    ):
        paths.append(_made(folder) / f"{name}.root")
        with uproot.recreate(paths[-1], compression=compression) as file:
            hits = {axis: rng.normal(size=200) for axis in ("x", "y", "energy")} | {"layer": rng.integers(0, 9, 200)}
            file.mktree("hits", {axis: values.dtype for axis, values in hits.items()}).extend(hits)
    paths.append(folder / "jagged.root")
    counts = rng.integers(0, 5, 60)
    with uproot.recreate(paths[-1], compression=None) as file:
        lists = {axis: ak.unflatten(rng.normal(size=int(counts.sum())), counts) for axis in ("x", "y", "energy")}
        types = dict.fromkeys(lists, "var * float64") | {"weight": "float64"}
        file.mktree("events", types).extend(lists | {"weight": rng.normal(size=60)})
    return paths


def hits_rntuple(folder: Path) -> list[Path]:
    """Flat fields, lists, and a collection, with and without compression."""
    import awkward as ak
    import uproot

    rng, paths = np.random.default_rng(1), [_made(folder) / f"{name}.root" for name in ("flat", "lists", "collection")]
    counts = rng.integers(0, 5, 60)
    flat = {axis: rng.normal(size=int(counts.sum())) for axis in ("x", "y", "energy")}
    lists = {axis: ak.unflatten(values, counts) for axis, values in flat.items()}
    contents = (flat, lists, {"hits": ak.zip(lists), "run": np.arange(60)})
    for path, content, compression in zip(paths, contents, (None, uproot.ZSTD(3), None), strict=True):
        with uproot.recreate(path, compression=compression) as file:
            file.mkrntuple("events", content)
    return paths


def hits_npy(folder: Path) -> list[Path]:
    """A matrix, one in the other order of bytes and of axes, and a structured array."""
    ds = _calorimeter()
    names = ("x", "y", "layer", "energy")
    table = np.stack([ds[name].values.astype(float) for name in names], axis=1)
    arrays = {
        "matrix": table,
        "other": np.asfortranarray(table.astype(">f4")),
        "records": np.rec.fromarrays(list(table.T), names=names),
        "empty": table[:0],
    }
    for name, array in arrays.items():
        np.save(_made(folder) / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


def hits_npz(folder: Path) -> list[Path]:
    """Ours, with metadata in the comment; compressed; and with one matrix."""
    paths = [_made(folder) / name for name in ("ours.npz", "pixels.npz", "compressed.npz", "matrix.npz")]
    write_hits(_calorimeter(), paths[0])
    write_hits(_pixels(), paths[1])
    np.savez_compressed(paths[2], **{name: values.values for name, values in _calorimeter().data_vars.items()})
    np.savez_compressed(paths[3], np.arange(400.0).reshape(100, 4))
    return paths


def gadget(folder: Path) -> list[Path]:
    """Snapshots in one file, of Gadget-4's layout, and with chunks and a table of masses."""
    import h5py

    paths = [_made(folder) / name for name in ("ours.hdf5", "chunks.hdf5")]
    write_particles(_box(), paths[0])
    with h5py.File(paths[1], "w") as file:
        counts = np.array([0, 150, 0, 0, 0, 0], np.uint32)
        told = {
            "NumPart_ThisFile": counts,
            "NumPart_Total": counts,
            "NumFilesPerSnapshot": 1,
            "BoxSize": 10.0,
            "Time": 0.5,
        }
        file.create_group("Header").attrs.update(
            told
            | {"Redshift": 1.0, "MassTable": np.full(6, 0.25), "HubbleParam": 0.7, "Omega0": 0.3, "OmegaLambda": 0.7}
        )
        rng, group = np.random.default_rng(1), file.create_group("PartType1")
        group.create_dataset("Coordinates", data=rng.random((150, 3)), chunks=(40, 3), compression="gzip")
        group.create_dataset("Velocities", data=rng.random((150, 3), np.float32), chunks=(40, 3), compression="lzf")
        group.create_dataset("ParticleIDs", data=np.arange(150))
    return paths


def particles_parquet(folder: Path) -> list[Path]:
    """Ours."""
    path = _made(folder) / "box.parquet"
    write_particles(_box(), path)
    return [path]


def particles_npy(folder: Path) -> list[Path]:
    """Matrices of 3 and 7 columns, and a structured array."""
    table = np.random.default_rng(1).random((150, 7), np.float32)
    records = np.rec.fromarrays(list(table.T), names=("x", "y", "z", "vx", "vy", "vz", "mass"))
    arrays = {"three": table[:, :3].astype(">f8"), "seven": np.asfortranarray(table), "records": records}
    for name, array in arrays.items():
        np.save(_made(folder) / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


def particles_arborx(folder: Path) -> list[Path]:
    """Three coordinates, and one."""
    paths = [_made(folder) / "three.arborx", folder / "one.bin"]
    ds = _box()[["x", "y", "z"]]
    write_particles(ds, paths[0])
    write_particles(ds[["x"]], paths[1])
    return paths


def particles_zarr(folder: Path) -> list[Path]:
    """Stores of formats 2 and 3 with several chunks and codecs, and one of a single array."""
    import zarr

    paths = [_made(folder) / name for name in ("ours.zarr", "two.zarr", "three.zarr", "array.zarr")]
    write_particles(_box(), paths[0])
    rng = np.random.default_rng(1)
    for path, version in zip(paths[1:3], (2, 3), strict=True):
        group = zarr.open_group(path, mode="w", zarr_format=version)
        for name in ("Coordinates", "Velocities"):
            group.create_array(name, data=rng.random((150, 3)), chunks=(60, 3))
        group.create_array("ParticleIDs", data=np.arange(150), chunks=(60,))
        group.attrs["boxsize"] = 1.0
    compressor: Any = zarr.codecs.BloscCodec(cname="lz4")
    zarr.create_array(paths[3], data=rng.random((150, 3), np.float32), chunks=(50, 3), compressors=compressor)
    return paths


def fcs(folder: Path) -> list[Path]:
    """Floats of ours, some with a spillover matrix, whole numbers of several widths, and two data sets in one file."""
    rng, n = np.random.default_rng(1), 100
    paths = [_made(folder) / name for name in ("ours.fcs", "spill.fcs", "whole.fcs", "two.fcs")]
    cells = datasets.cytometry(n, rng=1)
    write_cells(cells.drop_attrs(deep=False), paths[0])
    floats = [tuple(row) for row in rng.random((n, 4)).tolist()]
    names = ["FSC-A", "A", "B", "Time"]
    paths[1].write_bytes(
        fcs_bytes([">f8"] * 4, floats, names=names, SPILLOVER="2,A,B,1,0.1,0.2,1", TIMESTEP="0.01", CYT="x")
    )
    whole = [tuple(int(rng.integers(2 ** (8 * k))) for k in (1, 2, 4)) for _ in range(n)]
    paths[2].write_bytes(fcs_bytes(["<u1", "<u2", "<u4"], whole, version="3.0", P2E="4,1", P1G="2", P3R="1024"))
    short, text = [row[:2] for row in floats], {"version": "2.0", "NEXTDATA": f"{0:08d}"}
    last = fcs_bytes(["<f4"] * 2, short, **text)
    paths[3].write_bytes(fcs_bytes(["<f4"] * 2, short, **(text | {"NEXTDATA": f"{len(last):08d}"})) + last)
    return paths


def fcs_single(folder: Path) -> list[Path]:
    """Those with one data set."""
    return [path for path in fcs(folder) if path.stem != "two"]


def cells_csv(folder: Path) -> list[Path]:
    """With apriori clusters and populations beside channels."""
    path = _made(folder) / "cells.csv"
    write_cells(datasets.cytometry(100, rng=1), path)
    return [path]


def cells_parquet(folder: Path) -> list[Path]:
    """With apriori clusters and populations beside channels."""
    path = _made(folder) / "cells.parquet"
    write_cells(datasets.cytometry(100, rng=1), path)
    return [path]


def gmhc(folder: Path) -> list[Path]:
    """All layouts."""
    ds, paths = datasets.cytometry(60, rng=1)[["X"]], []
    for layout in ("uint32-float32", "uint64-float64", "uint64-float32", "text"):
        path = _made(folder) / layout
        write_gmhc(ds, path, layout=layout)  # type: ignore[arg-type]
        paths.append(path)
    return paths


def assignments(folder: Path) -> list[Path]:
    """Apriori clusters of points that lie beside them."""
    ds = datasets.cytometry(200, rng=1)[["X"]]
    ds["apriori"] = ("cell", np.arange(200) % 7)
    path = _made(folder) / "assignments.txt"
    write_gmhc(ds, folder / _POINTS, path)
    return [path]


def points_of_assignments(path: Path) -> Path:
    """Return the points of a file of assignments, or of a damaged copy of it."""
    return _valid_beside(path, _POINTS)


def calibration(folder: Path) -> list[Path]:
    """One matrix of the four."""
    values = np.random.default_rng(1).integers(0, 100, (256, 256)) / 10
    for name in ("a.txt", _MATRIX):
        np.savetxt(_made(folder) / name, values, fmt="%g")
    return [folder / "a.txt"]


def good_matrix(path: Path) -> Path:
    """Return a matrix that is not damaged."""
    return _valid_beside(path, _MATRIX)


def _valid_beside(path: Path, name: str) -> Path:
    here = path.parent / name
    return here if here.exists() else path.parent / "valid" / name
