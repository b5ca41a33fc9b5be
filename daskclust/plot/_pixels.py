"""The matrix of pixels: what was hit in a window of time, and how often each pixel was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.inputs import dataset_of
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import dimension, hits_in_memory, in_memory, in_time_units, on_host
from daskclust.plot._look import BLANK, COLORS, NOISE_COLOR, amounts, finished, hv, panel, side_by_side, styled

Array = npt.NDArray[Any]

_SIDE = 256  # pixels of a chip
_MARGIN = 3  # pixels around chosen clusters
_MOST_PIXELS = 1 << 24  # of one picture


class _Frame(NamedTuple):
    """A rectangle of pixels: the first column and row, and how many there are."""

    left: int
    low: int
    width: int
    height: int


def event_display(
    ds: xr.Dataset,
    labels: str | npt.ArrayLike | None = None,
    *,
    window: tuple[float, float] | None = None,
    clusters: Sequence[int] | None = None,
    color: Literal["label", "tot"] | None = None,
    chip: int | None = None,
) -> hv.Image | hv.NdLayout:
    """Draw the matrix of pixels with the hits of a window of time, or of some clusters.

    Parameters
    ----------
    ds : xarray.Dataset
        Timepix hits: ``x``, ``y``, ``toa``, and ``tot`` and ``label`` where they are used; times in ns, or in the unit
        that they name.
    labels : str or array_like of int, shape (n_hits,), optional
        Cluster numbers: a variable of `ds`, or an array; noise is -1. Default: ``label`` if `ds` has it.
    window : tuple of float, optional
        First and last time in ns, both included. Default: all.
    clusters : sequence of int, optional
        Draw only these, and no more pixels than they need.
    color : {"label", "tot"}, optional
        Colour pixels by their cluster, noise in grey, or by their time over threshold. Default: by cluster where there
        are labels.
    chip : int, optional
        Draw this chip only.

    Returns
    -------
    holoviews.Image or holoviews.NdLayout
        A picture of the detector, with all that is known of a pixel under the mouse: its cluster, ToT, ToA and number
        of hits. A pixel that was hit several times has the sum of its ToT, and the cluster and ToA of its last hit.
        Chips that are detectors of their own (``attrs["layout"] == "chips"``) have a picture each, by number.

    Examples
    --------
    >>> from daskclust.datasets import timepix
    >>> ds = timepix(10_000, kind="lead", rng=0)
    >>> picture = event_display(ds, "truth", window=(0.0, 20_000.0))
    >>> int(np.nansum(picture.dimension_values("hits"))) == int((ds["toa"] <= 20_000.0).sum())
    True
    """
    ds = dataset_of(ds)
    columns, units = _columns(ds, labels, color, chip)
    color = color or ("label" if "label" in columns else "tot")
    chosen = _chosen(columns, window, clusters, chip)
    columns = {name: values[chosen] for name, values in columns.items()}
    frame = _frame(columns["x"], columns["y"], tight=clusters is not None)
    return _by_chip(columns, ds, chip, lambda mine: _matrix(mine, frame, color, units))


def hit_map(ds: xr.Dataset, *, log: bool = True, chip: int | None = None) -> hv.Image | hv.NdLayout:
    """Draw how often each pixel was hit.

    Parameters
    ----------
    ds : xarray.Dataset
        Timepix hits: ``x``, ``y``, ``chip``.
    log : bool, default True
        Colours by the logarithm of the number: noisy pixels do not hide the others.
    chip : int, optional
        Draw this chip only.

    Returns
    -------
    holoviews.Image or holoviews.NdLayout
        As of `event_display`; pixels without hits are blank.

    Examples
    --------
    >>> from daskclust.datasets import timepix
    >>> picture = hit_map(timepix(10_000, rng=0))
    >>> int(np.nansum(picture.dimension_values("hits")))
    10000
    """
    ds = dataset_of(ds)
    loaded = in_memory(ds, ("x", "y", *["chip"] * (chip is not None)), ("chip",))
    columns = {str(name): loaded[name].values for name in loaded}
    frame = _frame(columns["x"], columns["y"], tight=False)

    def draw(mine: dict[str, Array]) -> hv.Image:
        pixel = _pixel(mine["x"], mine["y"], frame)
        number = np.bincount(pixel, minlength=frame.width * frame.height).astype(np.float64)
        title = f"{pixel.size:,} hits on {np.count_nonzero(number):,} pixels"
        number[number == 0] = np.nan
        return _image({"hits": number}, frame, [hv.Dimension("hits")], amounts(number, log), title)

    return _by_chip(columns, ds, chip, draw)


def _columns(ds: xr.Dataset, labels: Any, color: str | None, chip: int | None) -> tuple[dict[str, Array], xr.Dataset]:
    """Return what is drawn, and the Dataset of it for its units."""
    if color not in (None, "label", "tot"):
        raise ValueError(f"color must be 'label', 'tot' or None, got {color!r}")
    if labels is None and "label" in ds.variables:
        labels = "label"
    needed = ["x", "y", "toa"]
    needed += ["tot"] * (color == "tot" or labels is None) + ["chip"] * (chip is not None)
    needed += [labels] * isinstance(labels, str)
    loaded = hits_in_memory(ds, needed, ("tot", "chip"))
    columns = {str(name): loaded[name].values for name in loaded}
    if isinstance(labels, str):
        columns["label"] = columns[labels]
    elif labels is not None:
        columns["label"] = on_host(labels)
        if columns["label"].shape != columns["x"].shape:
            raise ValueError(
                f"labels have shape {columns['label'].shape}, the hits {columns['x'].shape}; give one for each hit"
            )
    if color == "label" and "label" not in columns:
        raise ValueError("color='label' needs labels; give labels=, or cluster the hits first")
    return columns, loaded


def _chosen(
    columns: dict[str, Array], window: tuple[float, float] | None, clusters: Sequence[int] | None, chip: int | None
) -> npt.NDArray[np.bool_]:
    """Return which hits are drawn."""
    chosen = np.ones(columns["x"].shape, dtype=bool)
    if window is not None:
        begin, end = window
        if not begin <= end:
            raise ValueError(f"window must be the first and the last time in ns, got {window!r}")
        chosen &= (columns["toa"] >= begin) & (columns["toa"] <= end)
    if clusters is not None:
        if "label" not in columns:
            raise ValueError("clusters= needs labels; give labels=, or cluster the hits first")
        chosen &= np.isin(columns["label"], np.asarray(clusters))
    if chip is not None:
        chosen &= columns["chip"] == chip
    return chosen


def _frame(x: Array, y: Array, *, tight: bool) -> _Frame:
    """Return the pixels to draw: whole chips from 0, or hits and some pixels around them."""
    if not x.size:
        return _Frame(0, 0, _SIDE, _SIDE)
    corners = [(int(axis.min()), int(axis.max())) for axis in (x, y)]
    if tight:
        (left, right), (low, high) = ((max(0, a - _MARGIN), b + _MARGIN) for a, b in corners)
        frame = _Frame(left, low, right - left + 1, high - low + 1)
    else:
        frame = _Frame(0, 0, *(_SIDE * (b // _SIDE + 1) for _, b in corners))
    if frame.width * frame.height > _MOST_PIXELS:
        raise ValueError(
            f"a picture of {frame.width} x {frame.height} pixels is too large; are x and y pixel numbers? "
            "Draw fewer clusters, or a part of the detector"
        )
    return frame


def _by_chip(
    columns: dict[str, Array], ds: xr.Dataset, chip: int | None, draw: Callable[[dict[str, Array]], Any]
) -> Any:
    """Return a picture of all hits, or by number of the chip where chips are detectors of their own."""
    numbers = columns.get("chip", np.empty(0, int))
    there = [chip] if chip is not None else np.unique(numbers).tolist()
    if len(there) < 2 or ds.attrs.get("layout", "chips") != "chips":
        only = slice(None) if chip is None else numbers == chip
        return draw({name: values[only] for name, values in columns.items()})
    pictures = {each: draw({name: values[numbers == each] for name, values in columns.items()}) for each in there}
    # the same colours for the same amounts
    limits = [hv.Store.lookup_options("bokeh", picture, "plot").kwargs["clim"] for picture in pictures.values()]
    low, high = zip(*limits, strict=True)
    same = (min(low), max(high))
    panels = {number: styled(panel(each, f"chip {number}"), clim=same) for number, each in pictures.items()}
    return side_by_side(hv.NdLayout(panels, kdims=["chip"]), 2)


def _pixel(x: Array, y: Array, frame: _Frame) -> npt.NDArray[np.int64]:
    """Return the place of each hit in the picture."""
    place: npt.NDArray[np.int64] = (y.astype(np.int64) - frame.low) * frame.width + (x.astype(np.int64) - frame.left)
    return place


def _matrix(columns: dict[str, Array], frame: _Frame, color: str, units: xr.Dataset) -> hv.Image:
    """Return the picture of one chip or detector; the first layer gives the colour."""
    cells, toa = frame.width * frame.height, columns["toa"]
    pixel = _pixel(columns["x"], columns["y"], frame)
    hits = np.bincount(pixel, minlength=cells)
    layers: dict[str, Array] = {}
    vdims = {"label": hv.Dimension("label"), "hits": hv.Dimension("hits")}
    vdims |= {name: dimension(units[name], words) for name, words in (("tot", "ToT"), ("toa", "ToA")) if name in units}
    if "label" in columns:
        layers["label"] = _last(columns["label"], pixel, toa, cells)
    if "tot" in columns:
        layers["tot"] = np.bincount(pixel, weights=columns["tot"].astype(np.float64), minlength=cells)
    layers |= {"toa": _last(toa, pixel, toa, cells), "hits": hits}
    layers = {name: np.where(hits > 0, layer, np.nan) for name, layer in layers.items()}
    if color == "label":  # nine colours in turn, and one more for noise
        number = layers["label"]
        layers = {"color": np.where(number == NOISE, len(COLORS), number % len(COLORS)), **layers}
        vdims["color"] = hv.Dimension("color", label="colour")
        options: dict[str, Any] = {"cmap": [*COLORS, NOISE_COLOR], "clim": (-0.5, len(COLORS) + 0.5)}
    else:
        layers = {"tot": layers.pop("tot"), **layers}
        options = amounts(layers["tot"], log=True)
    return _image(layers, frame, [vdims[name] for name in layers], options, _title(columns))


def _last(values: Array, pixel: npt.NDArray[np.int64], toa: Array, cells: int) -> npt.NDArray[np.float64]:
    """Return for each pixel the value of its last hit."""
    order = np.argsort(toa, kind="stable")
    last = np.full(cells, np.nan)
    last[pixel[order]] = values[order]  # of several to one place, the last one stays
    return last


def _title(columns: dict[str, Array]) -> str:
    """Return how many hits and clusters there are, and when."""
    words = [f"{columns['x'].size:,} hits"]
    if "label" in columns:
        words.append(f"{np.unique(columns['label'][columns['label'] != NOISE]).size:,} clusters")
    if columns["toa"].size:
        first, last = float(columns["toa"].min()), float(columns["toa"].max())
        (span,), unit = in_time_units(np.array([last - first]))
        words.append(f"{span:.4g} {unit}")
    return ", ".join(words)


def _image(
    layers: dict[str, Array], frame: _Frame, vdims: list[hv.Dimension], options: dict[str, Any], title: str
) -> hv.Image:
    """Return layers as a picture whose pixels are those of the detector, the first row below."""
    left, low, width, height = frame
    if not any(np.isfinite(layer).any() for layer in layers.values()):  # HoloViews warns of pictures of nothing
        layers = {name: np.zeros(layer.shape) for name, layer in layers.items()}
        options = BLANK
    bounds = (left - 0.5, low - 0.5, left + width - 0.5, low + height - 0.5)
    stack = [layer.reshape(height, width)[::-1] for layer in layers.values()]
    kdims = [hv.Dimension("x", unit="pixel"), hv.Dimension("y", unit="pixel")]
    image = hv.Image(np.dstack(stack) if len(stack) > 1 else stack[0], bounds=bounds, kdims=kdims, vdims=vdims)
    return finished(image, title, aspect=height / width, bokeh={"tools": ["hover"]}, **options)
