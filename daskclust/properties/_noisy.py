"""Noisy pixels of a Timepix detector: those with far more hits than others, and hits without theirs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.data.columns import integers
from daskclust.core.data.datasets import dataset_of, variable_of
from daskclust.core.data.inputs import check_one_dimension
from daskclust.core.device.arrays import is_dask, to_host

from ._columns import checked, pixels
from ._lazy import in_same_chunks, mapped, reduced_objects
from ._select import rows_of

if TYPE_CHECKING:
    import xarray as xr

Counts = npt.NDArray[np.int64]

_TIMES_MEDIAN = 100
_MOST_PIXELS = 1 << 26
_AXES = ("chip", "y", "x")


def noisy_pixels(hits: xr.Dataset, max_pixel_hits: int | None = None) -> xr.Dataset:
    """Return the pixels that have far more hits than the others.

    Parameters
    ----------
    hits : xarray.Dataset, DataFrame or mapping
        Timepix hits, numpy, cupy or dask: ``x``, ``y``, and ``chip`` where there are several.
    max_pixel_hits : int, optional
        Pixels with more hits are noisy. Default: 100 times the median of the pixels that have hits.

    Returns
    -------
    xarray.Dataset
        Along ``pixel``, those with the most hits first: ``chip`` (0 where `hits` have none), ``x``, ``y`` and ``hits``
        (int64). ``attrs`` have ``max_pixel_hits``, and ``noisy_hits``, the sum of ``hits``.

    Raises
    ------
    ValueError
        For coordinates that are no pixel numbers.

    See Also
    --------
    mask_noisy_pixels : The hits of the other pixels.

    Notes
    -----
    Dask arrays are counted at once, in one pass.

    Examples
    --------
    >>> import xarray as xr
    >>> hits = xr.Dataset({"x": ("hit", [5, 5, 5, 6]), "y": ("hit", [7, 7, 7, 7])})
    >>> noisy = noisy_pixels(hits, 2)
    >>> noisy["x"].values, noisy["hits"].values
    (array([5]), array([3]))
    """
    return pixels_above(count_pixels(hits), max_pixel_hits)


def mask_noisy_pixels(hits: xr.Dataset, max_pixel_hits: int | None = None, *, pixels: Any = None) -> xr.Dataset:
    """Return hits without those of noisy pixels, which would be one cluster without end.

    Parameters
    ----------
    hits, max_pixel_hits
        As of `noisy_pixels`.
    pixels : xarray.Dataset, DataFrame or mapping, optional
        The pixels to leave out, ``x``, ``y``, and ``chip`` where there are several, such as `noisy_pixels` of another
        run. By default those with more than `max_pixel_hits` hits.

    Returns
    -------
    xarray.Dataset
        The hits of the other pixels, in their order; lazy where `hits` are. ``attrs`` have ``noisy_pixels`` and
        ``noisy_hits``, how many were left out, and ``max_pixel_hits``, unless `pixels` are given.

    Raises
    ------
    ValueError
        For coordinates that are no pixel numbers, and for both `max_pixel_hits` and `pixels`.

    Notes
    -----
    Dask arrays are counted at once: one pass counts the hits of pixels, and a second those that are kept of each chunk.
    With `pixels` there is the second one only.

    Examples
    --------
    >>> import xarray as xr
    >>> hits = xr.Dataset({"x": ("hit", [5, 5, 5, 6]), "y": ("hit", [7, 7, 7, 7])})
    >>> kept = mask_noisy_pixels(hits, 2)
    >>> kept["x"].values, kept.attrs["noisy_hits"]
    (array([6]), 3)
    """
    if pixels is None:
        return without_noisy(hits, count_pixels(hits), max_pixel_hits)
    if max_pixel_hits is not None:
        raise ValueError(f"max_pixel_hits={max_pixel_hits!r} finds pixels, and pixels= names them; give one of them")
    return without_pixels(hits, count_pixels(pixels) > 0)


def without_noisy(hits: Any, counts: Counts, max_pixel_hits: int | None) -> xr.Dataset:
    """Return some of the hits, or all, that were counted, without those of noisy pixels."""
    noisy = pixels_above(counts, max_pixel_hits)
    return without_pixels(hits, counts > noisy.attrs["max_pixel_hits"], has_all=True).assign_attrs(noisy.attrs)


def without_pixels(hits: Any, is_noisy: npt.NDArray[np.bool_], *, has_all: bool = False) -> xr.Dataset:
    """Return hits without those of pixels that a table of chips, rows and columns tells; others are not noisy."""
    places, ds = _places(hits)
    look, is_quiet = (_at_pixels, ~is_noisy) if has_all else (_at_any_pixels, ~np.pad(is_noisy, (0, 1)))
    if any(map(is_dask, places)):
        chosen = mapped("quiet", look, *in_same_chunks(places), table=is_quiet, dtype=bool)
    else:
        chosen = look(*places, table=is_quiet)
    dim = ds["x"].dims[0]
    rows = rows_of(ds, dim, chosen)
    return rows.assign_attrs(noisy_pixels=int(is_noisy.sum()), noisy_hits=ds.sizes[dim] - rows.sizes[dim])


def pixels_above(counts: Counts, max_pixel_hits: int | None) -> xr.Dataset:
    """Return the pixels with more hits, of the counts of all: the table of `noisy_pixels`."""
    import xarray as xr

    if max_pixel_hits is None:
        there = counts[counts > 0]
        max_pixel_hits = int(_TIMES_MEDIAN * np.median(there)) if there.size else _TIMES_MEDIAN
    most = check_whole("max_pixel_hits", max_pixel_hits, 0)
    places = np.argwhere(counts > most)
    hits = counts[tuple(places.T)]
    order = np.argsort(-hits, kind="stable")
    found = dict(zip(_AXES, places[order].T, strict=True))
    columns = {name: found[name] for name in ("chip", "x", "y")} | {"hits": hits[order]}
    variables = {name: variable_of("pixel", values) for name, values in columns.items()}
    return xr.Dataset(variables, attrs={"max_pixel_hits": most, "noisy_hits": int(hits.sum())})


def count_pixels(hits: Any) -> Counts:
    """Return the number of hits of each pixel, shape (chips, rows, columns); of dask arrays it is computed now."""
    places, _ = _places(hits)
    if not any(map(is_dask, places)):
        return _count(*places)
    counts: Counts = reduced_objects("count", _count, added, *in_same_chunks(places))
    return counts


def hits_of_pixels(hits: Any) -> Counts:
    """Return for each hit in memory how many hits its pixel has; x and y may be any whole numbers."""
    places = [to_host(each).astype(np.int64) for each in _places(hits)[0]]
    shape = [int(each.max(initial=0)) + 1 for each in places]
    number = np.ravel_multi_index(tuple(places), shape)
    if math.prod(shape) > _MOST_PIXELS:
        number = np.unique(number, return_inverse=True)[1]
    found: Counts = np.bincount(number)[number]
    return found


def added(counts: list[Counts]) -> Counts:
    """Return the sum of counts, each of a part of the hits, of any shapes."""
    total = np.zeros(np.max([each.shape for each in counts], axis=0), np.int64)
    for each in counts:
        total[tuple(map(slice, each.shape))] += each
    return total


def _places(hits: Any) -> tuple[list[Any], xr.Dataset]:
    """Return chip, row and column of each hit, checked, and the hits as a Dataset."""
    ds = dataset_of(hits, dim="hit")
    if missing := [name for name in ("x", "y") if name not in ds.variables]:
        raise ValueError(
            f"hits have no variable {missing[0]!r}; they have {', '.join(map(str, ds.variables)) or 'none'}"
        )
    names = [name for name in _AXES if name in ds.variables]
    check_one_dimension({name: ds[name].dims for name in names}, names)
    found = checked({name: ds[name].data for name in names}, ds["x"].shape, dict.fromkeys(names, _whole_pixels))
    return [found["chip"] if "chip" in found else found["x"] * 0, found["y"], found["x"]], ds


def _whole_pixels(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers of pixels, a kind of columns: as whole floats, too, as events take them."""
    return pixels(name, integers(name, values, first), first)


def _count(*places: Any) -> Counts:
    """Return the number of hits of each pixel, of chips, rows and columns in memory."""
    places = tuple(to_host(each) for each in places)
    shape = [int(each.max(initial=0)) + 1 for each in places]
    if math.prod(shape) > _MOST_PIXELS:
        raise ValueError(
            f"hits reach chip {shape[0] - 1}, x = {shape[2] - 1} and y = {shape[1] - 1}, more than 2**26 pixels; are x "
            "and y pixel numbers?"
        )
    chip, row, column = places
    number = (chip.astype(np.int64) * shape[1] + row) * shape[2] + column
    return np.bincount(number, minlength=math.prod(shape)).reshape(shape)


def _at_pixels(*places: Any, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what a table of chips, rows and columns has for the pixel of each hit."""
    found: npt.NDArray[Any] = table[tuple(to_host(each) for each in places)]
    return found


def _at_any_pixels(*places: Any, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`_at_pixels` of hits that may be beyond the table: its end is for these."""
    there = (to_host(each).astype(np.intp) for each in places)
    return _at_pixels(*(np.minimum(each, most - 1) for each, most in zip(there, table.shape, strict=True)), table=table)
