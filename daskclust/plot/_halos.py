"""Particles and their halos: where they are, and how many halos have which mass."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import dask
import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from daskclust.core.data.boxes import AXES, box_in, box_sides
from daskclust.core.data.checks import check_whole
from daskclust.core.data.columns import column, reals
from daskclust.core.data.units import BOX, ratio
from daskclust.core.device.arrays import is_dask
from daskclust.plot._data import counted, dimension, finite, in_memory, opened, unit_of
from daskclust.plot._elements import overlay, spanned
from daskclust.plot._look import ACCENT, BLANK, INK, MARK, Float, amounts, finished, hv, log_ticks, styled
from daskclust.plot._spectra import log_edges

_CORNERS = 32  # of what is drawn as a circle
_ONE_SIGMA = 0.15865525393145707  # of a normal distribution is below its mean by more than its deviation
_POWERS = {1: "", 2: "²", 3: "³"}


def projected_density(
    data: Any, axes: tuple[str, str] = ("x", "y"), *, weight: str | None = None, pixels: int = 512
) -> hv.Image:
    """Draw how many particles, or how much mass, there is by area, along a line of sight.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, d)
        Particles, numpy, cupy or dask; datashader adds up dask arrays chunk by chunk. With ``attrs["boxsize"]`` the
        picture is the box, else what holds all particles.
    axes : tuple of str, default ("x", "y")
        Variables across and up.
    weight : str, optional
        Variable to add up, such as "mass". Default: particles are counted.
    pixels : int, default 512
        Pixels along the longer axis.

    Returns
    -------
    holoviews.Image
        Number or sum by area, with colours by its logarithm; pixels without particles are blank. Make an overlay with
        circles as ``projected_density(data) * halo_circles(table)``.

    Examples
    --------
    >>> ds = xr.Dataset({"x": ("particle", [1.0, 1.1, 9.0]), "y": ("particle", [2.0, 2.1, 7.0])}, {}, {"boxsize": 10.0})
    >>> picture = projected_density(ds, pixels=5)  # of 2 x 2 each
    >>> float(np.nansum(picture.dimension_values("density"))) * 2 * 2
    3.0
    """
    import datashader

    pixels, names = check_whole("pixels", pixels, 1), [*axes] if weight is None else [*axes, weight]
    ds = opened(data, names, ("x",), dim="particle")
    ds = ds.assign({name: ds[name].copy(data=column(name, ds[name].data, reals)) for name in names})
    frame = _frame(ds, names)
    sides = _sides(ds, axes)
    for name, side in zip(axes, sides, strict=True):
        if side:
            frame[name] = frame[name] % side
    limits = [(0.0, side) for side in sides]
    if not all(sides):
        ends = dask.compute(*((frame[name].min(), frame[name].max()) for name in axes))  # in one pass
        limits = [whole if whole[1] else spanned(*each) for whole, each in zip(limits, ends, strict=True)]
    spans = [high - low for low, high in limits]
    width, height = (max(1, round(pixels * span / max(spans))) for span in spans)
    canvas = datashader.Canvas(width, height, x_range=limits[0], y_range=limits[1])
    total = canvas.points(frame, *axes, agg=datashader.sum(weight) if weight is not None else datashader.count())
    density = total.values.astype(np.float64) / (spans[0] / width * spans[1] / height)
    density[~(density > 0)] = np.nan
    options = amounts(density, log=True)
    if not np.isfinite(density).any():  # HoloViews warns of pictures of nothing
        density, options = np.zeros(density.shape), BLANK
    what = counted(ds[axes[0]]) if weight is None else f"{unit_of(ds[weight])} of {weight}".removeprefix(" of ")
    vdim = hv.Dimension("density", label=f"{what} per {_power(unit_of(ds[axes[0]]), 2)}")
    bounds = (limits[0][0], limits[1][0], limits[0][1], limits[1][1])
    image = hv.Image(density[::-1], bounds=bounds, kdims=[dimension(ds[name], name) for name in axes], vdims=[vdim])
    title = f"{ds[axes[0]].size:,} {counted(ds[axes[0]])}"
    return finished(image, title, aspect=spans[1] / spans[0], bokeh={"tools": ["hover"]}, **options)


def halo_circles(
    table: Any, axes: tuple[str, str] = ("x", "y"), *, radius: str = "r_max", most: int = 1000, color: str = MARK
) -> hv.Contours:
    """Draw halos as circles.

    Parameters
    ----------
    table : xarray.Dataset, DataFrame or mapping
        As of `daskclust.properties.halo_table`, or `select`.
    axes : tuple of str, default ("x", "y")
        Columns across and up.
    radius : str, default "r_max"
        Column with the radius, in the unit of the axes.
    most : int, default 1000
        Draw so many at most: those with the most mass, or particles where there is no column ``mass``.
    color : str
        Of the lines.

    Returns
    -------
    holoviews.Contours
        A line for each, with its number, size and mass under the mouse. In a periodic box a circle that crosses a face
        is there on the other side, too. Rows without a centre or a radius are left out.
    """
    most = check_whole("most", most, 0)
    table = loaded = in_memory(table, (*axes, radius), ("mass", "size", "cluster", "x"), dim="cluster")
    columns = {str(name): loaded[name].values for name in loaded.variables}
    columns.setdefault("cluster", np.arange(len(columns[axes[0]])))
    there = np.flatnonzero(np.isfinite([columns[name] for name in (*axes, radius)]).all(axis=0))
    largest = columns.get("mass", columns.get("size", columns[radius]))[there]
    chosen = there[np.argsort(-largest, kind="stable")[:most]]
    columns = {name: values[chosen] for name, values in columns.items()}
    angle = 2 * np.pi * np.arange(_CORNERS + 1) / _CORNERS
    circle = np.stack([np.cos(angle), np.sin(angle)])
    hovered = [name for name in ("cluster", "size", "mass", radius) if name in columns]
    sides = _sides(table, axes)
    paths = [
        dict(zip(axes, (centre[:, None] + columns[radius][row] * circle).tolist(), strict=True))
        | {name: columns[name][row].item() for name in hovered}
        for centre, row in _images(columns, axes, radius, sides)
    ]
    lines = hv.Contours(paths, kdims=[dimension(table[name], name) for name in axes], vdims=hovered, label="halos")
    options: dict[str, Any] = {"bokeh": {"color": color, "line_width": 1.4, "tools": ["hover"]}}
    options |= {"matplotlib": {"color": color, "linewidth": 1.0}, "show_legend": False}
    options |= {f"{side}lim": (0.0, length) for side, length in zip("xy", sides, strict=True) if length}
    return finished(lines, f"{len(chosen):,} halos", aspect=1.0, **options)


def mass_function(
    table: Any,
    *,
    mass: str = "mass",
    bins: int = 20,
    boxsize: float | Sequence[float] | Literal["auto"] | None = "auto",
) -> hv.Overlay:
    """Draw how many halos there are of each mass, on logarithmic axes.

    Parameters
    ----------
    table : xarray.Dataset, DataFrame or mapping
        As of `daskclust.properties.halo_table`.
    mass : str, default "mass"
        The column.
    bins : int, default 20
        Number of bins of equal width in the logarithm.
    boxsize : float, sequence of float, "auto" or None, default "auto"
        Length of the box, or one for each axis: numbers are by its volume. ``"auto"``: ``table.attrs["boxsize"]``. Not
        by volume without it, where an axis is open, or for None.

    Returns
    -------
    holoviews.Overlay
        `holoviews.ErrorBars` and `holoviews.Scatter`: the number of halos for each factor of ten in mass (dex), by
        volume. Bars are the central 68 % interval of a Poisson distribution, as from a chi-squared one. Bins without
        halos are left out, and so are rows without mass, counted in the title.

    Raises
    ------
    ValueError
        For box sizes that are negative, or not one for each axis.

    References
    ----------
    Gehrels, "Confidence limits for small numbers of events in astrophysical data", The Astrophysical Journal 303
    (1986), doi:10.1086/164079.

    Examples
    --------
    >>> table = xr.Dataset({"mass": ("cluster", [1.0, 1.0, 1.0, 100.0])})
    >>> mass_function(table, bins=2).get(1).dimension_values("number").tolist()  # of 1 dex each
    [3.0, 1.0]
    """
    from scipy.special import gammaincinv

    bins = check_whole("bins", bins, 1)
    table = in_memory(table, (mass,), AXES, dim="cluster")
    values, note = finite(table[mass], mass)
    positive = values[values > 0]
    note += f", {values.size - positive.size:,} of no mass" if positive.size < values.size else ""
    axes = [name for name in AXES if name in table]
    unit = table[axes[0]].attrs.get("units") if axes else None
    sides = box_sides(box_in(table, unit, boxsize if axes else None), axes)
    by_volume = bool(axes) and all(sides)
    edges = log_edges(positive, bins) if positive.size else np.array([1.0, 10.0])
    number = np.histogram(np.clip(positive, edges[0], edges[-1]), edges)[0]
    middle = np.sqrt(edges[1:] * edges[:-1])[number > 0]
    per = (np.diff(np.log10(edges)) * (np.prod(sides) if by_volume else 1.0))[number > 0]
    number = number[number > 0]
    height = number / per
    # the ends of the central 68 % interval of means of Poisson distributions, by the numbers they gave
    low, high = gammaincinv(number, _ONE_SIGMA) / per, gammaincinv(number + 1.0, 1.0 - _ONE_SIGMA) / per
    words = "halos per dex" + (f" per {_power(unit_of(table[axes[0]]), len(axes))}" if by_volume else "")
    kdims = [dimension(table[mass], mass), hv.Dimension("number", label=words)]
    bars = hv.ErrorBars((middle, height, height - low, high - height), kdims[0], [kdims[1], "below", "above"])
    bars = styled(bars, {"line_color": INK, "lower_head": None, "upper_head": None}, {"edgecolor": INK})
    dots = styled(hv.Scatter((middle, height), *kdims), {"size": 6}, {"s": 30}, color=ACCENT)
    both: dict[str, Any] = {}
    if number.size:
        both = {"logx": True, "logy": True, "ylim": (0.5 * float(low.min()), 2.0 * float(high.max()))}
        both |= {"xlim": (float(edges[0]), float(edges[-1])), "xticks": log_ticks(float(edges[0]), float(edges[-1]))}
    return overlay([bars, dots], kdims, f"{positive.size:,} halos{note}", **both)


def _frame(ds: xr.Dataset, names: list[str]) -> Any:
    """Return variables as a pandas DataFrame, or a dask one where they are lazy."""
    names = list(dict.fromkeys(names))
    if any(is_dask(ds[name].data) for name in names):
        return ds[names].reset_coords().unify_chunks().to_dask_dataframe()[names]
    loaded = in_memory(ds, names)
    return pd.DataFrame({name: loaded[name].values for name in names})


def _sides(ds: xr.Dataset, axes: Sequence[str]) -> list[float]:
    """Return the length of the Dataset's box along each axis in the unit of the axis, 0 where there is none."""
    box_unit = ds.attrs.get(BOX, ds["x"].attrs.get("units") if "x" in ds.variables else None)
    sides = []
    for place, name in enumerate(axes):
        unit = ds[name].attrs.get("units")
        is_length = unit == box_unit or (None not in (unit, box_unit) and ratio(str(unit), str(box_unit)) is not None)
        sides.append(box_sides(box_in(ds, unit), axes)[place] if name in AXES or is_length else 0.0)
    return sides


def _images(
    columns: dict[str, npt.NDArray[Any]], axes: Sequence[str], radius: str, sides: list[float]
) -> list[tuple[Float, int]]:
    """Return centres of circles with their rows, those of images that reach into the box, too."""
    centres, reach = np.stack([columns[name] for name in axes], axis=1), columns[radius]
    found = []
    for turns in itertools.product(*((-1, 0, 1) if side else (0,) for side in sides)):
        moved = centres + np.multiply(turns, sides)
        inside = [(x + reach > 0) & (x - reach < side) for x, side in zip(moved.T, sides, strict=True) if side]
        rows = np.flatnonzero(np.logical_and.reduce(inside)) if any(turns) else np.arange(len(moved))
        found += [(moved[row], int(row)) for row in rows]
    return found


def _power(unit: str, power: int) -> str:
    """Return words for a unit of length, area or volume."""
    plain = unit if unit.isalpha() else f"({unit})"
    return plain + _POWERS[power] if unit else {1: "length", 2: "area", 3: "volume"}[power]
