"""Matrices with one number for each pixel of a chip, in text files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from daskclust.core.data.files import check_file
from daskclust.core.data.quote import listed, quoted

PIXELS = 256
"""Pixels in a row, and in a column, of a chip."""

# 65536 numbers of 250 characters: what is larger is no matrix of a chip, and need not be read.
_LARGEST_FILE = 1 << 24


def check_matrix(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return a matrix as float64.

    Parameters
    ----------
    values : array_like
        By [y, x].
    name : str
        For the message.

    Returns
    -------
    numpy.ndarray of float64, shape (256, 256)
        In C order.

    Raises
    ------
    ValueError
        For another shape.
    """
    matrix = np.ascontiguousarray(values, np.float64)
    if matrix.shape != (PIXELS, PIXELS):
        raise ValueError(
            f"{name} has shape {matrix.shape}, expected ({PIXELS}, {PIXELS}): one number for each pixel of a chip"
        )
    return matrix


def find_matrices(folder: Path) -> dict[str, Path]:
    """Return the files of the four matrices of a folder.

    Parameters
    ----------
    folder : Path
        Has ``a.txt``, or ``caliba.txt``, and so on.

    Returns
    -------
    dict of str to Path
        By "a", "b", "c" and "t".

    Raises
    ------
    FileNotFoundError
        Where one is missing, with what there is.
    NotADirectoryError
        Where it is one file: four are needed.
    ValueError
        Where two files could be the same matrix.
    """
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
    """Read a matrix from a text file with white space between the numbers.

    Parameters
    ----------
    path : Path
        The file; a line for each row of pixels.

    Returns
    -------
    numpy.ndarray of float64, shape (256, 256)
        By [y, x].

    Raises
    ------
    FileNotFoundError
        Where there is none.
    ValueError
        For another shape, or what is no number, with the line.
    """
    size = check_file(os.fspath(path)).st_size
    if size > _LARGEST_FILE:
        raise ValueError(f"{path} has {size} bytes, too many for 256 lines of 256 numbers")
    rows: list[npt.NDArray[np.float64]] = []
    with open(path, encoding="utf-8-sig", errors="replace") as stream:
        for number, line in enumerate(stream, start=1):
            fields = line.split()
            if not fields:
                continue
            try:
                rows.append(np.array(fields, np.float64))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: expected numbers, found {quoted(line)}") from error
            if len(rows[-1]) != len(rows[0]):
                raise ValueError(
                    f"{path}, line {number}: expected {len(rows[0])} numbers as in the first line, found {len(fields)}"
                )
    return check_matrix(np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, 0)), os.fspath(path))
