"""Files of cells for tests of readers: FCS with whole bytes, and cells to write."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from cases.files.fcs_writer import changed, fcs_file, keywords

_TYPES = {"u1": ("I", "B"), "u2": ("I", "H"), "u4": ("I", "I"), "u8": ("I", "Q"), "f4": ("F", "f"), "f8": ("D", "d")}


def fcs_bytes(
    formats: list[str],
    events: list[tuple[Any, ...]],
    *,
    version: str = "3.1",
    names: list[str] | None = None,
    byteord: str | None = None,
    **words: str | None,
) -> bytes:
    """Return an FCS file of channels in NumPy's formats; a keyword of None is left out, lower case has no dollar."""
    order, kinds = formats[0][0], [_TYPES[kind[1:]] for kind in formats]
    row = struct.Struct(order + "".join(code for _, code in kinds))
    stored = [(kind, 8 * int(each[2])) for (kind, _), each in zip(kinds, formats, strict=True)]
    pairs = keywords(stored, len(events), byteord or ("1,2,3,4" if order == "<" else "4,3,2,1"), version)
    pairs = changed(pairs, **{f"P{n}N": name for n, name in enumerate(names or [], start=1)})
    pairs = changed(pairs, **{key: value for key, value in words.items() if key.isupper()})
    pairs += [(key.upper(), value) for key, value in words.items() if not key.isupper() and value is not None]
    return fcs_file(pairs, b"".join(row.pack(*event) for event in events), version=version, mark="|")


def write(tmp_path: Path, content: bytes | str, name: str = "cells.fcs") -> Path:
    """Write a file."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(n: int = 20, d: int = 3, dtype: Any = np.float32, **attrs: Any) -> xr.Dataset:
    """Return cells with everything that they may have."""
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {"X": (("cell", "channel"), rng.normal(size=(n, d)).astype(dtype)), "apriori": ("cell", np.arange(n) % 4)},
        coords={"channel": [f"CD{k}" for k in range(d)]},
        attrs={"transform": "none", **attrs},
    )
