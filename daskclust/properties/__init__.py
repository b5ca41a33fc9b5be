"""What clusters look like: one row per cluster with its size, position, extent and more; choosing of rows."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.boxes import box_in, box_sides
from daskclust.core.data.columns import numbers_of
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.inputs import check_one_dimension
from daskclust.core.data.units import common, converted
from daskclust.core.device.arrays import is_cuda, keeping_device, on_device_of

from . import _lazy, _pixels
from ._columns import checked, checked_n_clusters, label_values, table_of, variable
from ._groups import group_columns
from ._halos import halo_table
from ._log_weights import check_log_weights, merge_again, summarise_again
from ._moments import finish, merge, summarise
from ._noisy import mask_noisy_pixels, noisy_pixels
from ._select import select, select_hits, where
from ._spheres import spherical_overdensity
from ._summary import TableSteps

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "cluster_table",
    "halo_table",
    "mask_noisy_pixels",
    "noisy_pixels",
    "select",
    "select_hits",
    "spherical_overdensity",
    "where",
]

_COORDS = ("x", "y", "z")


@keeping_device()
def cluster_table(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike = "label",
    *,
    weight: str | EllipsisType | None = ...,
    coords: Sequence[str] | None = None,
    log_weight: float | None = None,
    log_within: float | None = None,
    n_clusters: int | None = None,
) -> xr.Dataset:
    """Return the properties of every cluster.

    Parameters
    ----------
    ds : xarray.Dataset
        Points along one dimension, numpy, cupy or dask; ``layer`` (integer), ``is_seed`` (boolean), ``time`` and its
        resolution ``time_error`` are used where they are along it. Timepix hits (``attrs["field"]`` is "timepix", or
        there are ``x``, ``y``, ``toa`` and ``tot``) have a table of their own, which uses ``energy``, ``chip`` and
        ``tof`` where they are present.
    labels : str or array_like of int, shape (n,), default "label"
        Cluster numbers, -1 for noise: a variable of `ds`, or an array.
    weight : str or None, optional
        Variable that weighs the points, finite and not negative; None: 1 for each. Default: "energy"; of Timepix hits
        without energy "tot", None where there is neither.
    coords : sequence of str, optional
        Variables with positions, finite; converted to the unit of the first one. Default: those of ``x``, ``y`` and
        ``z`` that `ds` has. Not for angles, whose means are wrong where they wrap, nor Timepix hits.
        Positions are taken as they are: `halo_table` has clusters across the faces of a periodic box.
    log_weight : float, optional
        Weigh positions by max(0, log_weight + ln(w / W)), where w is the weight of the point and W that of its
        cluster, as calorimeters do: 2.9 in CMS software. Not of Timepix hits. Default: by the weight itself.
    log_within : float, optional
        Of these only points so near the one with the largest weight of the cluster, the first of several: 1.3 cm in
        CMS software. Default: all.
    n_clusters : int, optional
        Number of rows. Default: the largest label plus 1; of dask arrays it is computed at once, and labels are kept
        where they were computed, 8 bytes a point, as the table needs them again: compute or write a lazy table before
        its workers end.

    Returns
    -------
    xarray.Dataset
        Lazy where `ds` or labels are. Along ``cluster`` (coordinate 0 to k-1), float64 where nothing else is said; for
        a coordinate ``x`` and the weight ``energy``:

        - ``size`` (int64): number of points; ``energy``: sum of weights, not there if `weight` is None;
        - ``x``, ``x_rms``: weighted mean, and root mean square distance to it along x; ``rms``: over all coordinates;
          NaN where the sum of weights is 0. With `log_weight` it is the position alone that is weighted so;
        - ``x_min``, ``x_max``: extent; NaN for a number without points;
        - ``seed`` (int64), ``x_seed``: index of the first seed in `ds`, -1 without one, and its position; only with
          ``is_seed``;
        - ``layer`` (int64): that of the seed, -1 without one; where `ds` has no ``is_seed``, the common layer, -1 where
          a cluster has several; only with ``layer``;
        - ``time``, ``time_error``: mean weighted by 1 / time_error**2, and its resolution, of points whose
          ``time_error`` is above 0; NaN without one; only where `ds` has both;
        - ``event``, ``frame`` (int64), ``chip``: the number that all its points have, -1 where they have several; only
          where `ds` has them.

        Of Timepix hits:

        - ``size`` (int64): number of hits; ``tot`` (ns), ``energy`` (keV): sums, where `ds` has them;
        - ``x``, ``y`` (float32, pixel): centroid weighted by `weight`, where weights are not all 0; ``x_plain``,
          ``y_plain``: not weighted;
        - ``length``, ``width`` (float32, pixel): along the principal axes, 1 of a single pixel; ``angle`` (float32,
          rad): of the long axis from x towards y, above -pi/2 and up to pi/2, 0 where no axis is longer;
        - ``toa``, ``toa_last`` (ns): of the first and of the last hit; ``tof`` (ns), ``chip``: of the first one;
        - ``x_min``, ``x_max``, ``y_min``, ``y_max`` (type of x and y): bounding box, inclusive;
        - ``seed`` (int64): index in `ds` of the first hit with the largest ToT, of hits without ToT the first one, -1
          without one; ``x_seed``, ``y_seed``, ``tot_max``: its pixel and ToT;
        - ``event``, ``frame`` (int64), ``layer``: as above. Hits with ``frame`` need no ``toa``.

        In the row of a number without hits sums, pixels and chips are 0, the others NaN. Noise has no row: ``attrs``
        has its ``noise_size`` and ``noise_weight``, which are variables without dimension in a lazy table.

    Raises
    ------
    ValueError
        For variables that are missing, of another length or with units that do not fit, and for values that are not
        finite, negative weights, labels below -1 and pixels beyond 65535 (of dask arrays: when they are computed).

    Notes
    -----
    Each chunk gives a summary of its clusters. The table is made in ranges of some 262 144 clusters, which are its
    chunks: the pieces of summaries that are of one range are merged as a tree, on workers, and nothing has all of the
    table. Pieces are exchanged by Dask's P2P shuffle where they are many. Without `n_clusters`, where chunks have
    clusters of few ranges, as those of events in time, ranges begin where chunks do, and only clusters that several
    chunks have are merged. Time is O(n), tasks are in proportion to chunks and ranges. Sums, means and rms depend on
    the chunks by rounding only, all else not at all: of Timepix hits whose ToT is a whole number of ticks only
    ``energy`` and the centroid weighted by it. Squares are taken around each cluster's own mean (Chan et al.), so that
    they do not cancel far from the origin.

    ``length`` and ``width`` are sqrt(12 v + 1), where v is the larger and the smaller eigenvalue of the covariance
    (divided by n, not weighted) of the pixels' centres: the sides of the rectangle with the second moments (Hu) of the
    cluster's pixels, each a unit square with the moment 1/12. A row of n pixels has length n and width 1.

    References
    ----------
    Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983),
    doi:10.1080/00031305.1983.10483115.

    Hu, "Visual pattern recognition by moment invariants", IRE Transactions on Information Theory 8 (1962),
    doi:10.1109/TIT.1962.1057692.

    Examples
    --------
    >>> import xarray as xr
    >>> ds = xr.Dataset({"x": ("hit", [0.0, 4.0, 9.0]), "energy": ("hit", [3.0, 1.0, 5.0])})
    >>> table = cluster_table(ds, [0, 0, -1])
    >>> float(table["x"][0]), float(table["energy"][0]), table.attrs["noise_weight"]
    (1.0, 4.0, 5.0)

    Three pixels of a Timepix detector in a row:

    >>> hits = {"x": [7, 8, 9], "y": [5, 5, 5], "toa": [0.0, 25.0, 50.0], "tot": [100.0, 300.0, 100.0]}
    >>> table = cluster_table(xr.Dataset({name: ("hit", values) for name, values in hits.items()}), [0, 0, 0])
    >>> float(table["x"][0]), float(table["length"][0]), float(table["toa_last"][0]), int(table["seed"][0])
    (8.0, 3.0, 50.0, 1)
    """
    ds = dataset_of(ds)
    n_clusters = checked_n_clusters(n_clusters, max(ds.sizes.values(), default=0))
    if _pixels.are_pixels(ds):
        if log_weight is not None or log_within is not None:
            raise ValueError("log_weight and log_within are not for Timepix hits; leave them out")
        return _pixels.pixel_table(ds, labels, weight, coords, n_clusters)
    weight = "energy" if weight is ... else weight
    check_log_weights(log_weight, log_within, weight)
    names = _coordinate_names(ds, coords)
    unit, ratios = common(
        {name: variable(ds, name, "coords").attrs.get("units") for name in names}, ds.attrs.get("hubble")
    )
    arrays = _inputs(ds, labels, weight, names)
    arrays |= {f"[{name}]": converted(arrays[f"[{name}]"], by) for name, by in ratios.items()}
    arrays, rows = _lazy.counted(arrays, n_clusters)
    finish_all = functools.partial(
        finish, names=names, weight=weight, has_seeds="is_seed" in arrays, has_layers="layer" in arrays
    )
    steps = TableSteps(functools.partial(summarise, names=names), merge, finish_all, ("size", str(weight)))
    if log_weight is not None:
        again = functools.partial(summarise_again, names=names, w0=log_weight, within=log_within)
        first = functools.partial(summarise, names=names, peaks=True)
        steps = replace(steps, summarise=first, again=(again, merge_again))
    columns = _lazy.columns(arrays, steps, rows)
    _warn_of_faces(ds, unit, names, columns)
    if is_cuda(like := arrays[f"[{names[0]}]"]):
        columns = {name: on_device_of(like, column) if column.ndim else column for name, column in columns.items()}
    taken = {*columns, *names, "layer"}
    columns = {**columns, **group_columns(ds, ds[names[0]], arrays["labels"], rows, taken)}
    return table_of(columns, _units(ds, columns, weight, dict.fromkeys(names, unit)))


def _warn_of_faces(ds: xr.Dataset, unit: str | None, names: tuple[str, ...], columns: Mapping[str, Any]) -> None:
    """Warn of clusters that are so wide that they may be across a face of the periodic box; lazy ones are not known."""
    axes = [name for name in names if name in _COORDS]
    if ds.attrs.get("boxsize") is None or _lazy.is_lazy(columns):
        return
    for axis, side in zip(axes, box_sides(box_in(ds, unit), axes), strict=True):
        wide = np.flatnonzero(columns[f"{axis}_max"] - columns[f"{axis}_min"] > (side or np.inf) / 2)
        if len(wide):
            warnings.warn(
                f"cluster {wide[0]} has more than half of the box along {axis}: if it is across a face, its means are "
                "wrong; properties.halo_table takes periodic boxes",
                stacklevel=4,
            )
            return


def _coordinate_names(ds: xr.Dataset, coords: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(coords, str):
        raise ValueError(f"coords must be a sequence of names, got {coords!r}; write ({coords!r},)")
    names = tuple(name for name in _COORDS if name in ds) if coords is None else tuple(coords)
    if not names:
        raise ValueError(f"the Dataset has none of {', '.join(_COORDS)}; name the positions with coords=")
    return names


def _inputs(ds: xr.Dataset, labels: Any, weight: str | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Return checked arrays by role; a coordinate's role is its name in brackets."""
    first = variable(ds, names[0], "coords")
    arrays = {"labels": label_values(ds, labels)}
    if weight is not None:
        arrays["weight"] = variable(ds, weight, "weight").data
    times = () if {"time", "time_error"} & {*names, weight} else ("time", "time_error")
    along = {name for name, each in ds.variables.items() if each.dims == first.dims}
    for role in ("layer", "is_seed", *(times if along.issuperset(times) else ())):
        if role in along:
            arrays[role] = ds[role].data
    arrays |= {f"[{name}]": variable(ds, name, "coords").data for name in names}
    every = [*names, *([] if weight is None else [weight])]
    check_one_dimension({name: ds[name].dims for name in every}, every)
    return checked(arrays, first.shape, {"layer": numbers_of})


def _units(
    ds: xr.Dataset, columns: Mapping[str, Any], weight: str | None, given: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the units of columns by their names; `given` are those of coordinates."""
    units: dict[str, Any] = {name: "1" for name, column in columns.items() if column.dtype.kind == "i"}
    units |= {name + part: unit for name, unit in given.items() for part in ("", "_rms", "_min", "_max", "_seed")}
    if weight is not None:
        units[weight] = units["noise_weight"] = ds[weight].attrs.get("units")
    if "time_error" in columns:
        units |= {name: ds[name].attrs.get("units") for name in ("time", "time_error")}
    units["rms"] = next(iter(given.values()))
    return units
