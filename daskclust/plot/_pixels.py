"""The matrix of pixels: what was hit in a window of time, and how often each pixel was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from daskclust.core.data.fields import SIDES
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import dimension, hits_in_memory, in_time_units, source_of
from daskclust.plot._look import BLANK, COLORS, NOISE_COLOR, Array, amounts, finished, hv, panel, side_by_side, styled

_MARGIN = 3  # pixels around chosen clusters
_MOST_PIXELS = 1 << 24  # of one picture


class _Frame(NamedTuple):
    """A rectangle of pixels: the first column and row, and how many there are."""

    left: int
    low: int
    width: int
    height: int


def event_display(
    data: Any,
    labels: Any = None,
    *,
    window: tuple[float, float] | None = None,
    clusters: Sequence[int] | None = None,
    color: Literal["label", "tot"] | None = None,
    chip: int | None = None,
) -> hv.Image | hv.NdLayout:
    """Draw the matrix of pixels with the hits of a window of time, or of some clusters.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, 3) or (n, 4)
        Timepix hits: ``x``, ``y``, ``toa``, and ``tot`` and ``label`` where they are used; times in ns, or in the unit
        that they name. The columns of an array are ``x``, ``y``, ``toa`` and ``chip``.
    labels : array_like of int, shape (n_hits,), str or fitted estimator, optional
        As for `daskclust.plot.clusters`. Default: ``label`` if `data` has it.
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
        Chips that are detectors of their own (``attrs["layout"]`` is not ``"quad"``) have a picture each, by number.

    Raises
    ------
    ValueError
        For labels of another length, a window that ends before it begins, and pictures of over 16 million pixels.
    """
    loaded = _hits(data, labels, color, chip)
    hits = _table(loaded)
    color = color or ("label" if "label" in hits else "tot")
    hits = _chosen(hits, window, clusters, chip)
    frame = _frame(hits, loaded, tight=clusters is not None)
    source = source_of(data, labels)
    return _by_chip(hits, loaded, chip, lambda mine: _matrix(mine, frame, color, loaded, source))


def hit_map(data: Any, *, log: bool = True, chip: int | None = None) -> hv.Image | hv.NdLayout:
    """Draw how often each pixel was hit.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping or array
        Timepix hits, as for `event_display`: ``x``, ``y``, ``chip``.
    log : bool, default True
        Colours by the logarithm of the number: noisy pixels do not hide the others.
    chip : int, optional
        Draw this chip only.

    Returns
    -------
    holoviews.Image or holoviews.NdLayout
        As of `event_display`; pixels without hits are blank.
    """
    loaded = hits_in_memory(data, ("x", "y", *["chip"] * (chip is not None)), ("chip",))
    hits = _table(loaded)
    frame = _frame(hits, loaded, tight=False)

    def draw(mine: pd.DataFrame) -> hv.Image:
        number = np.bincount(_pixel(mine, frame), minlength=frame.width * frame.height).astype(np.float64)
        title = f"{len(mine):,} hits on {np.count_nonzero(number):,} pixels"
        number[number == 0] = np.nan
        return _image({"hits": number}, frame, [hv.Dimension("hits")], amounts(number, log), title)

    return _by_chip(hits, loaded, chip, draw)


def _table(loaded: xr.Dataset) -> pd.DataFrame:
    return pd.DataFrame({str(name): loaded[name].values for name in loaded})


def _hits(data: Any, labels: Any, color: str | None, chip: int | None) -> xr.Dataset:
    """Return what is drawn, in memory."""
    if color not in (None, "label", "tot"):
        raise ValueError(f"color must be 'label', 'tot' or None, got {color!r}")
    needed = ["x", "y", "toa", *["tot"] * (color == "tot"), *["chip"] * (chip is not None)]
    loaded = hits_in_memory(data, needed, ("tot", "chip", "label"), labels=labels)
    if color == "label" and "label" not in loaded:
        raise ValueError("color='label' needs labels; give labels=, or cluster the hits first")
    return loaded


def _chosen(
    hits: pd.DataFrame, window: tuple[float, float] | None, clusters: Sequence[int] | None, chip: int | None
) -> pd.DataFrame:
    if window is not None:
        begin, end = window
        if not begin <= end:
            raise ValueError(f"window must be the first and the last time in ns, got {window!r}")
        hits = hits[hits["toa"].between(begin, end)]
    if clusters is not None:
        if "label" not in hits:
            raise ValueError("clusters= needs labels; give labels=, or cluster the hits first")
        hits = hits[hits["label"].isin(clusters)]
    return hits if chip is None else hits[hits["chip"] == chip]


def _frame(hits: pd.DataFrame, ds: xr.Dataset, *, tight: bool) -> _Frame:
    """Return the pixels to draw: whole chips from 0, or hits and some pixels around them."""
    sides = SIDES["timepix4" if ds.attrs.get("layout") == "timepix4" else "chips"]
    if not len(hits):
        return _Frame(0, 0, *sides)
    corners = [(int(hits[axis].min()), int(hits[axis].max())) for axis in ("x", "y")]
    if tight:
        (left, right), (low, high) = ((max(0, a - _MARGIN), b + _MARGIN) for a, b in corners)
        frame = _Frame(left, low, right - left + 1, high - low + 1)
    else:
        frame = _Frame(0, 0, *(side * (b // side + 1) for side, (_, b) in zip(sides, corners, strict=True)))
    if frame.width * frame.height > _MOST_PIXELS:
        raise ValueError(
            f"a picture of {frame.width} x {frame.height} pixels is too large; are x and y pixel numbers? "
            "Draw fewer clusters, or a part of the detector"
        )
    return frame


def _by_chip(hits: pd.DataFrame, ds: xr.Dataset, chip: int | None, draw: Callable[[pd.DataFrame], Any]) -> Any:
    """Return a picture of all hits, or by number of the chip where chips are detectors of their own."""
    if chip is not None:
        return draw(hits[hits["chip"] == chip])
    if "chip" not in hits or hits["chip"].nunique() < 2 or ds.attrs.get("layout") == "quad":
        return draw(hits)
    pictures = {number: draw(mine) for number, mine in hits.groupby("chip")}
    # the same colours for the same amounts
    limits = [hv.Store.lookup_options("bokeh", picture, "plot").kwargs["clim"] for picture in pictures.values()]
    low, high = zip(*limits, strict=True)
    same = (min(low), max(high))
    panels = {number: styled(panel(each, f"chip {number}"), clim=same) for number, each in pictures.items()}
    return side_by_side(hv.NdLayout(panels, kdims=["chip"]), 2)


def _pixel(hits: pd.DataFrame, frame: _Frame) -> npt.NDArray[np.int64]:
    """Return the place of each hit in the picture."""
    x, y = (hits[name].to_numpy().astype(np.int64) for name in ("x", "y"))
    place: npt.NDArray[np.int64] = (y - frame.low) * frame.width + (x - frame.left)
    return place


def _matrix(hits: pd.DataFrame, frame: _Frame, color: str, units: xr.Dataset, source: str) -> hv.Image:
    """Return the picture of one chip or detector; the first layer gives the colour."""
    hits = hits.assign(pixel=_pixel(hits, frame)).sort_values("toa", kind="stable")
    last = hits.drop_duplicates("pixel", keep="last").set_index("pixel")
    found = {"label": last["label"]} if "label" in hits else {}
    count = hits["pixel"].value_counts()
    if "tot" in hits:  # where one is NaN the sum is
        found["tot"] = pd.Series(np.bincount(hits["pixel"], hits["tot"], frame.width * frame.height))[count.index]
    found |= {"toa": last["toa"], "hits": count}
    everywhere = range(frame.width * frame.height)
    layers = {name: values.reindex(everywhere).to_numpy(np.float64) for name, values in found.items()}
    vdims = {"label": hv.Dimension("label"), "hits": hv.Dimension("hits")}
    vdims |= {name: dimension(units[name], words) for name, words in (("tot", "ToT"), ("toa", "ToA")) if name in units}
    if color == "label":  # nine colours in turn, and one more for noise
        number = layers["label"]
        layers = {"color": np.where(number == NOISE, len(COLORS), number % len(COLORS)), **layers}
        vdims["color"] = hv.Dimension("color", label="colour")
        options: dict[str, Any] = {"cmap": [*COLORS, NOISE_COLOR], "clim": (-0.5, len(COLORS) + 0.5)}
    else:
        layers = {"tot": layers.pop("tot"), **layers}
        options = amounts(layers["tot"], log=True)
    return _image(layers, frame, [vdims[name] for name in layers], options, _title(hits) + source)


def _title(hits: pd.DataFrame) -> str:
    """Return how many hits and clusters there are, and when."""
    words = [f"{len(hits):,} hits"]
    if "label" in hits:
        words.append(f"{hits['label'][hits['label'] != NOISE].nunique():,} clusters")
    if len(hits):
        (span,), unit = in_time_units(np.array([float(hits["toa"].max() - hits["toa"].min())]))
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
