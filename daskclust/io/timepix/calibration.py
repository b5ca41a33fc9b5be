"""Calibration of pixel detectors: time over threshold to energy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.fields import SIDES, TIMEPIX
from daskclust.core.data.quote import listed, quoted
from daskclust.io.files import check_file
from daskclust.io.tables.text import read_rows
from daskclust.io.timepix.hitwise import hits_with, over_blocks
from daskclust.io.timepix.quad import QUAD_CHIPS, pixels_of_quad
from daskclust.io.timepix.ticks import TOT_TICK

Floats = npt.NDArray[np.float64]

_OF_CHIPS = {SIDES[layout][::-1]: SIDES[layout] for layout in ("chips", "timepix4")}  # shapes of matrices, by [y, x]


class _OfPixels:
    """Energies of the pixels of one chip, of which a subclass says how they follow from ToT."""

    __slots__ = ()
    sides: tuple[int, int]

    def energy(self, x: npt.ArrayLike, y: npt.ArrayLike, tot: npt.ArrayLike) -> Floats:
        """Return the energy of hits.

        Parameters
        ----------
        x, y : array_like of int, shape (n,)
            Pixels of the chip.
        tot : array_like, shape (n,)
            Time over threshold, in the unit of the calibration.

        Returns
        -------
        numpy.ndarray of float64, shape (n,)
            In keV. NaN where the pixel has no calibration, and where no energy has this ToT.
        """
        columns, rows = np.asarray(x, np.int64), np.asarray(y, np.int64)
        remedy = "give x and y of the chip, or a Dataset with common coordinates to calibrate"
        _check_pixels(columns, rows, remedy, self.sides)
        return self._energy(rows * self.sides[0] + columns, np.asarray(tot, np.float64))

    def _energy(self, pixel: npt.NDArray[np.int64], tot: Floats) -> Floats:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Calibration(_OfPixels):
    """Energy calibration of the pixels of one chip: ToT = a*E + b - c/(E - t).

    Parameters
    ----------
    a, b, c, t : array_like, shape (256, 256), or (512, 448) of a Timepix4
        By [y, x]: slope (ToT per keV), offset (ToT), curvature (ToT keV), pole (keV); ToT in the unit of the tool that
        fitted them, ns or ticks of 25 ns.
    """

    a: npt.ArrayLike
    b: npt.ArrayLike
    c: npt.ArrayLike
    t: npt.ArrayLike
    sides: tuple[int, int] = field(init=False)  # columns and rows of the chip

    def __post_init__(self) -> None:
        for name in "abct":
            object.__setattr__(self, name, _check_matrix(getattr(self, name), f"matrix {name}"))
        shapes = {np.shape(getattr(self, name)) for name in "abct"}
        if len(shapes) > 1:
            raise ValueError(f"matrices a, b, c and t have shapes {listed(sorted(shapes))}; give those of one chip")
        object.__setattr__(self, "sides", _OF_CHIPS[shapes.pop()])

    def _energy(self, pixel: npt.NDArray[np.int64], tot: Floats) -> Floats:
        """Return the energy where the curve has this ToT: none where a is 0."""
        a, b, c, t = (np.asarray(getattr(self, name), np.float64).ravel()[pixel] for name in "abct")
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            root = np.sqrt((b + a * t - tot) ** 2 + 4 * a * c)
            energy: Floats = (a * t + tot - b + root) / (2 * a)
        energy[~np.isfinite(energy)] = np.nan
        return energy


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationTable(_OfPixels):
    """Energy calibration of the pixels of one chip as a table: the ToT of each pixel at some energies.

    Energies of hits are on the straight lines between these, and on the last line beyond; NaN below the first.

    Parameters
    ----------
    tot : array_like, shape (k, 256, 256), or (k, 512, 448) of a Timepix4
        By [energy, y, x]: ToT in ns or ticks of 25 ns, which rises with the energy; NaN where a pixel has none.
    energies : array_like, shape (k,)
        In keV, at least two, which rise, too.
    """

    tot: npt.ArrayLike
    energies: npt.ArrayLike
    sides: tuple[int, int] = field(init=False)  # columns and rows of the chip

    def __post_init__(self) -> None:
        tot, energies = np.asarray(self.tot, np.float64), np.asarray(self.energies, np.float64)
        if energies.ndim != 1 or len(energies) < 2 or not (np.diff(energies) > 0).all():
            raise ValueError(f"energies must be two or more that rise, got {quoted(energies)}")
        if tot.ndim != 3 or len(tot) != len(energies):
            raise ValueError(
                f"tot has shape {tot.shape}, expected a matrix of a chip for each of {len(energies)} energies"
            )
        _check_matrix(tot[0], "a matrix of tot")
        falls = (np.diff(tot, axis=0) <= 0).any(axis=0)
        if falls.any():
            y, x = np.argwhere(falls)[0].tolist()
            raise ValueError(f"tot of pixel ({x}, {y}) does not rise with the energy: {quoted(tot[:, y, x])}")
        object.__setattr__(self, "sides", _OF_CHIPS[tot.shape[1:]])
        object.__setattr__(self, "tot", np.where(np.isnan(tot).any(axis=0), np.nan, tot).reshape(len(tot), -1))
        object.__setattr__(self, "energies", energies)

    def _energy(self, pixel: npt.NDArray[np.int64], tot: Floats) -> Floats:
        """Return energies on straight lines, the last one of which goes on; the curve below the first is not known."""
        table, energies = np.asarray(self.tot), np.asarray(self.energies)
        below = np.zeros(len(pixel), np.int64)  # how many ToT of the pixel are not above that of the hit
        for bit in reversed(range(len(table).bit_length())):
            more = np.minimum(below + (1 << bit), len(table))
            below = np.where(table[more - 1, pixel] <= tot, more, below)
        k = np.clip(below - 1, 0, len(table) - 2)
        first, last = table[k, pixel], table[k + 1, pixel]
        energy = energies[k] + (energies[k + 1] - energies[k]) * (tot - first) / (last - first)
        return np.where(below > 0, energy, np.nan)


AnyCalibration = Calibration | CalibrationTable


def read_calibration(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str] | None = None,
    c: str | os.PathLike[str] | None = None,
    t: str | os.PathLike[str] | None = None,
) -> AnyCalibration:
    """Read the energy calibration of one chip.

    Parameters
    ----------
    a, b, c, t : str or path
        Text files of 256 lines of 256 numbers (Timepix4: 512 of 448) with white space between them, a line for each
        row of pixels (y). Or `a` alone is a folder that has ``a.txt``, ``b.txt``, ``c.txt`` and ``t.txt``,
        or ``caliba.txt`` and so on; or an ``.npz`` file with the arrays ``tot`` and ``energies`` of a
        `CalibrationTable`.

    Returns
    -------
    Calibration or CalibrationTable
        To be given to `calibrate`, with the unit of ToT that it was made for.

    Raises
    ------
    FileNotFoundError, ValueError
        Where a file is missing, has another shape, or holds what is no number (with the line).
    """
    others = (b, c, t)
    if all(path is None for path in others):
        if Path(a).suffix.lower() == ".npz":
            return _read_table(Path(a))
        paths = _find_matrices(Path(a))
    elif any(path is None for path in others):
        raise TypeError("read_calibration needs all four files a, b, c and t, or one folder that has them")
    else:
        paths = {name: Path(path) for name, path in zip("abct", (a, *others), strict=True) if path is not None}
    return Calibration(**{name: _read_matrix(os.fspath(path)) for name, path in paths.items()})


def calibrate(
    ds: xr.Dataset,
    calibration: AnyCalibration | Mapping[int, AnyCalibration],
    *,
    tot_unit: Literal["ns", "tick"] = "ns",
) -> xr.Dataset:
    """Add the energy of hits to a Timepix data set.

    Parameters
    ----------
    ds : xarray.Dataset
        With ``x``, ``y`` (pixel) and ``tot`` (ns) along one dimension, numpy or dask; ``chip`` where there are several;
        ``attrs["layout"]``, and ``attrs["gap"]`` (pixel, default 0) for ``"quad"``, as `open_tpx3` describes them.
    calibration : Calibration or CalibrationTable, or mapping of int to these
        One for all chips, or by chip.
    tot_unit : {"ns", "tick"}, default "ns"
        Unit of ToT that the calibration was made for: some tools count ticks of 25 ns. ``ds["tot"]`` is in ns, or in
        the unit of time that its ``attrs["units"]`` names.

    Returns
    -------
    xarray.Dataset
        `ds` with ``energy`` (keV, float32), lazy where `ds` is. In memory, ``attrs["n_uncalibrated"]`` counts hits
        without an energy (NaN: the calibration of their pixel is NaN, its a is 0, or no energy has their ToT, as below
        the first of a table), and
        ``attrs["n_negative_energy"]`` those below 0.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU, missing variables, chips without a calibration, and pixels that no chip has (on dask when
        they are computed).

    Notes
    -----
    E = (a*t + ToT - b + sqrt((b + a*t - ToT)^2 + 4*a*c)) / (2*a), for each pixel.

    References
    ----------
    J. Jakubek, "Precise energy calibration of pixel detector working in time-over-threshold mode", NIM A 633 (2011)
    S262. DOI: 10.1016/j.nima.2010.06.183

    Examples
    --------
    >>> ones = np.ones((256, 256))
    >>> linear = Calibration(a=2 * ones, b=10 * ones, c=0 * ones, t=0 * ones)
    >>> ds = xr.Dataset({"x": ("hit", [3]), "y": ("hit", [4]), "tot": ("hit", [50.0])}, attrs={"layout": "chips"})
    >>> calibrate(ds, linear)["energy"].values
    array([20.], dtype=float32)
    """
    if tot_unit not in ("ns", "tick"):
        raise ValueError(f"tot_unit must be 'ns' or 'tick', got {tot_unit!r}")
    layout = ds.attrs.get("layout", "chips")
    if layout not in SIDES:
        raise ValueError(f"ds.attrs['layout'] must be one of {listed(SIDES)}, got {layout!r}")
    names = ["x", "y", "tot", *(["chip"] if "chip" in ds else [])]
    if layout == "quad" and "chip" not in ds:
        raise ValueError("calibrate needs the variable 'chip' to find the pixels of a quad; it has " + listed(ds))
    hits = hits_with(ds, names, "calibrate")
    gap = int(ds.attrs.get("gap", 0)) if layout == "quad" else None
    energy_of = partial(_energy_of, calibration=calibration, tick=TOT_TICK if tot_unit == "tick" else 1.0, gap=gap)
    energy = over_blocks(hits, names, energy_of, np.float32, "calibrate")
    result = ds.assign(energy=(ds["x"].dims, energy, TIMEPIX.attrs["energy"]))
    if isinstance(energy, np.ndarray):
        result.attrs["n_uncalibrated"] = int(np.isnan(energy).sum())
        result.attrs["n_negative_energy"] = int((energy < 0).sum())
    return result


def _energy_of(
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    tot: npt.NDArray[Any],
    chip: npt.NDArray[Any] | None = None,
    *,
    calibration: AnyCalibration | Mapping[int, AnyCalibration],
    tick: float,
    gap: int | None,
) -> npt.NDArray[np.float32]:
    chips = np.zeros(len(x), np.uint8) if chip is None else chip
    columns, rows = np.asarray(x, np.int64), np.asarray(y, np.int64)
    if gap is not None:
        columns, rows = pixels_of_quad(columns, rows, chips, gap)
        if chips.max(initial=0) >= QUAD_CHIPS:
            raise ValueError(f"a quad has the chips 0 to 3, got {chips.max()}; check ds.attrs['layout']")
    counts = np.asarray(tot, np.float64) / tick
    energy = np.empty(len(x), np.float32)
    for number in np.unique(chips).tolist():
        if not isinstance(calibration, AnyCalibration) and number not in calibration:
            raise ValueError(
                f"no calibration for chip {number}; there are some for {sorted(calibration)}: give one for each chip, "
                "or leave out its hits"
            )
        own = calibration if isinstance(calibration, AnyCalibration) else calibration[number]
        of_chip, remedy = chips == number, f"check ds.attrs['layout'] ({listed(SIDES)}) and ds.attrs['gap']"
        _check_pixels(columns[of_chip], rows[of_chip], remedy, own.sides, number)
        energy[of_chip] = own.energy(columns[of_chip], rows[of_chip], counts[of_chip])
    return energy


def _check_pixels(
    x: npt.NDArray[np.int64],
    y: npt.NDArray[np.int64],
    remedy: str,
    sides: tuple[int, int],
    chip: int | None = None,
) -> None:
    wrong = (x < 0) | (x >= sides[0]) | (y < 0) | (y >= sides[1])
    if wrong.any():
        k = int(np.argmax(wrong))
        hit = f"hit {k}" if chip is None else f"a hit of chip {chip}"
        most = "0 to 255" if sides == SIDES["chips"] else f"({sides[0]}, {sides[1]})"
        raise ValueError(f"{hit} lies at pixel ({x[k]}, {y[k]}), but a chip has pixels {most}; {remedy}")


def _check_matrix(values: npt.ArrayLike, name: str) -> Floats:
    """Return a matrix of a chip, by [y, x], as float64 in C order."""
    matrix = np.ascontiguousarray(values, np.float64)
    if matrix.shape not in _OF_CHIPS:
        expected = " or ".join(map(str, _OF_CHIPS))
        raise ValueError(f"{name} has shape {matrix.shape}, expected {expected}: one number for each pixel of a chip")
    return matrix


def _read_matrix(path: str) -> Floats:
    """Return the matrix in a file: lines have as many numbers as a Timepix4 has columns, if the first one does."""
    check_file(path)
    with open(path, "rb") as file:
        width = len(file.readline().split())
    return _check_matrix(read_rows(path, width if width == SIDES["timepix4"][0] else SIDES["chips"][0]), path)


def _read_table(path: Path) -> CalibrationTable:
    check_file(os.fspath(path))
    with np.load(path) as arrays:
        missing = [name for name in ("tot", "energies") if name not in arrays]
        if missing:
            raise ValueError(f"{path} has no array {missing[0]!r}; it has {listed(arrays.files)}")
        return CalibrationTable(arrays["tot"], arrays["energies"])


def _find_matrices(folder: Path) -> dict[str, Path]:
    """Return the files of the matrices a, b, c and t (``a.txt`` or ``caliba.txt`` ...) of a folder."""
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
