"""Files of cells for tests of readers: FCS as the standard describes it, byte by byte; and cells to write."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

BIG, LITTLE = "4,3,2,1", "1,2,3,4"


def fcs_bytes(
    formats: list[str],
    events: list[tuple[Any, ...]],
    *,
    version: str = "3.1",
    names: list[str] | None = None,
    delimiter: str = "|",
    datatype: str | None = None,
    byteord: str | None = None,
    **keywords: str | None,
) -> bytes:
    """Return an FCS file as the standard describes it, byte by byte; a keyword of None is left out."""
    order = formats[0][0]
    row = struct.Struct(
        order + "".join({"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "f8": "d"}[f[1:]] for f in formats)
    )
    data = b"".join(row.pack(*event) for event in events)
    kinds = {"u": "I", "f4": "F", "f8": "D"}
    text: dict[str, str | None] = {
        "$BEGINANALYSIS": "0",
        "$ENDANALYSIS": "0",
        "$BEGINSTEXT": "0",
        "$ENDSTEXT": "0",
        "$BEGINDATA": "        ",
        "$ENDDATA": "        ",
        "$BYTEORD": byteord or (LITTLE if order == "<" else BIG),
        "$DATATYPE": datatype or kinds.get(formats[0][1:], kinds.get(formats[0][1], "?")),
        "$MODE": "L",
        "$NEXTDATA": "0",
        "$PAR": str(len(formats)),
        "$TOT": str(len(events)),
    }
    for n, kind in enumerate(formats, start=1):
        text[f"$P{n}N"] = names[n - 1] if names else f"D{n}"
        text[f"$P{n}B"] = str(8 * int(kind[2]))
        text[f"$P{n}E"] = "0,0"
        text[f"$P{n}R"] = str(2 ** (8 * int(kind[2]))) if kind[1] == "u" else "262144"
    text |= {(f"${key}" if key.isupper() else key.upper()): value for key, value in keywords.items()}
    if version == "2.0":
        text = {key: value for key, value in text.items() if key not in ("$BEGINDATA", "$ENDDATA")}
    pairs = [(key, value) for key, value in text.items() if value is not None]
    length = len(delimiter + "".join(key + delimiter + value + delimiter for key, value in pairs))
    first = 58 + length
    last = first + len(data) - 1
    told = {"$BEGINDATA": f"{first:8d}", "$ENDDATA": f"{last:8d}"}
    pairs = [(key, told[key] if value == "        " else value) for key, value in pairs]
    body = delimiter + "".join(key + delimiter + value + delimiter for key, value in pairs)
    head = f"FCS{version}    {58:8d}{58 + length - 1:8d}{first:8d}{last:8d}{0:8d}{0:8d}"
    return head.encode() + body.encode() + data


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
