"""Files in formats that the package reads and does not write, those of detectors among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

GMHC = {"uint32-float32": ("<u4", "<f4"), "uint64-float64": ("<u8", "<f8"), "uint64-float32": ("<u8", "<f4")}
"""Types of the two numbers at the beginning of a binary file of gmhclust, and of its values, by the name of both."""


def write_gmhc(ds: xr.Dataset, path: Path, assignments: Path | None = None, *, layout: str = "uint32-float32") -> None:
    """Write cells as gmhclust reads them, and their apriori clusters to a second file."""
    X = ds["X"].values
    if layout == "text":
        rows = [f"{X.shape[1]} {X.shape[0]}", *(" ".join(map(repr, row)) for row in X.astype(float).tolist())]
        path.write_text("\n".join(rows) + "\n")
    else:
        count, value = GMHC[layout]
        path.write_bytes(np.array(X.shape[::-1], count).tobytes() + X.astype(value).tobytes())
    if assignments is not None:
        assignments.write_text("".join(f"{number}\n" for number in ds["apriori"].values))


def columns(ds: xr.Dataset) -> np.ndarray[Any, Any]:
    """Return the variables of a data set as an array (n, d)."""
    return np.stack([ds[name].values for name in ds.variables], axis=1)


def write_npy(ds: xr.Dataset, path: Path) -> None:
    """Write all variables as one array (n, d)."""
    np.save(path, columns(ds))


def write_arborx(ds: xr.Dataset, path: Path) -> None:
    """Write coordinates as ArborX reads them."""
    X = columns(ds).astype("<f4")
    path.write_bytes(np.array(X.shape, "<i4").tobytes() + X.tobytes())


def write_ntuple(ds: xr.Dataset, path: Path) -> None:
    write_root(ds, path, "mkrntuple")


def write_root(ds: xr.Dataset, path: Path, kind: str = "mktree") -> None:
    """Write a tree, or an RNTuple, of lists."""
    import awkward as ak
    import uproot

    counts = np.full(ds.sizes["hit"] // 10, 10)
    lists = {name: ak.unflatten(ds[name].values[: counts.sum()], counts) for name in ("x", "y", "energy")}
    with uproot.recreate(path, compression=None) as file:
        if kind == "mktree":
            file.mktree("events", {name: values.type for name, values in lists.items()}).extend(lists)
        else:
            file.mkrntuple("events", lists)


def write_t3pa(ds: xr.Dataset, path: Path) -> None:
    """Write pixel hits as Pixet does; times are rounded to 25 ns."""
    rows = zip(*(ds[name].values.astype(int) for name in ("x", "y", "toa", "tot")), strict=True)
    lines = [f"{256 * y + x}\t{toa // 25}\t{tot // 25}\t0\n" for x, y, toa, tot in rows]
    path.write_text("Matrix Index\tToA\tToT\tFToA\n" + "".join(lines))


def write_katherine(ds: xr.Dataset, path: Path) -> None:
    """Write pixel hits as words of the Katherine readout; times are rounded to 25 ns, and below 409 us."""
    rows = zip(*(ds[name].values.astype(int).tolist() for name in ("x", "y", "toa", "tot")), strict=True)
    words = [4 << 44 | y << 36 | x << 28 | toa // 25 % 2**14 << 14 | tot // 25 % 1024 << 4 for x, y, toa, tot in rows]
    path.write_bytes(b"".join(word.to_bytes(6, "little") for word in words))
