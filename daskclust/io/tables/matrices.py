"""Matrices with one number for each pixel of a chip, in text files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import listed
from daskclust.io.files import check_file
from daskclust.io.tables.text import read_rows

PIXELS = 256
"""Pixels in a row, and in a column, of a chip."""


def check_matrix(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return a matrix (256, 256), by [y, x], as float64 in C order."""
    matrix = np.ascontiguousarray(values, np.float64)
    if matrix.shape != (PIXELS, PIXELS):
        raise ValueError(
            f"{name} has shape {matrix.shape}, expected ({PIXELS}, {PIXELS}): one number for each pixel of a chip"
        )
    return matrix


def find_matrices(folder: Path) -> dict[str, Path]:
    """Return the files of the matrices a, b, c and t (``a.txt`` or ``caliba.txt`` ...) of a folder."""
    if not folder.exists():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is one file; give the four files a, b, c and t, or a folder that has them")
    paths: dict[str, Path] = {}
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".txt")
    for name in "abct":
        stems = {name, f"calib{name}", f"calib_{name}"}
        matches = [path for path in files if path.stem.lower() in stems]
        if not matches:
            there = listed(path.name for path in files) if files else "no text files"
            raise FileNotFoundError(f"{folder} has no {name}.txt or calib{name}.txt; it has {there}")
        if len(matches) > 1:
            raise ValueError(
                f"{folder} has {' and '.join(path.name for path in matches)}, which could both be matrix {name}; give "
                "the four files instead of the folder"
            )
        paths[name] = matches[0]
    return paths


def read_matrix(path: Path) -> npt.NDArray[np.float64]:
    """Read a matrix (256, 256), by [y, x], from a text file with a line for each row of pixels."""
    check_file(os.fspath(path))
    return check_matrix(read_rows(os.fspath(path), PIXELS), os.fspath(path))
