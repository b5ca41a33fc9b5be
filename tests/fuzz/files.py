"""Small valid files of the formats that we decode ourselves, for tests that damage them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from cases.files.fcs_reference import fcs_bytes
from cases.files.tpx3_words import chunk, global_time, tdc
from cases.files.writers import write_gmhc

from daskclust import datasets
from daskclust.io import write_cells, write_clog, write_tpx3

_POINTS = "points.of"


def _pixels(n: int = 120) -> xr.Dataset:
    return datasets.timepix(n, kind="pion45", rng=1)


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
    words = [*global_time(2**36 + 77 * 16), *(tdc(k << 21, number=k) for k in range(20))]
    many.write_bytes(many.read_bytes() + chunk(words, chip=1))
    return [one, many]


def t3pa(folder: Path) -> list[Path]:
    """With all columns, and with those alone that are needed."""
    rng, n = np.random.default_rng(1), 150
    index, toa = rng.integers(0, 65536, n), np.sort(rng.integers(0, 10**7, n))
    tot, fine = rng.integers(1, 1000, n), rng.integers(0, 32, n)
    full, few = _made(folder) / "full.t3pa", folder / "few.t3pa"
    columns = {"Matrix Index": index, "ToA": toa, "ToT": tot, "FToA": fine}
    table = pd.DataFrame({"Index": range(n), **columns, "Overflow": 0})
    table.loc[n], table.loc[n + 1] = [n, 116, 1000, 0, 0, 1], [n + 1, 117, 2000, 0, 0, 1]
    table.to_csv(full, sep="\t", index=False)
    lines = pd.DataFrame(columns)[::-1].to_csv(sep="\t", index=False, lineterminator="\r\n")
    few.write_bytes(lines.rstrip().encode())
    return [full, few]


def pixet(folder: Path) -> list[Path]:
    """Cluster logs of frames, and in time; a list of pixels, and a matrix, without their descriptions."""
    hits = _pixels().assign(label=("hit", np.arange(_pixels().sizes["hit"]) // 3))
    of_frames = hits.drop_vars("toa").assign(frame=hits["label"] // 9)
    timed, log, sparse, matrix = (_made(folder) / name for name in ("t.clog", "f.clog", "s.txt", "m.pmf"))
    write_clog(hits, timed)
    write_clog(of_frames, log)
    sparse.write_text("#\n".join(f"{k}\t{9 * k}\t{k}\n" * 9 for k in range(1, 20)))
    np.savetxt(matrix, np.arange(3 * 20 * 20).reshape(60, 20) % 7, fmt="%d")
    return [timed, log, sparse, matrix]


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


def gmhc(folder: Path) -> list[Path]:
    """All layouts."""
    ds, paths = datasets.cytometry(60, rng=1)[["X"]], []
    for layout in ("uint32-float32", "uint64-float64", "uint64-float32", "text"):
        path = _made(folder) / layout
        write_gmhc(ds, path, layout=layout)
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
    here = path.parent / _POINTS
    return here if here.exists() else path.parent / "valid" / _POINTS
