"""What clusters look like: one row per cluster with its size, weight, position, extent and seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.labels import NOISE

from ._moments import Partial, merge, summarise
from ._select import select

__all__ = ["cluster_table", "select"]

Array = npt.NDArray[Any]

_COORDS = ("x", "y", "z")

# More rows than this for each hit means that the labels are no cluster numbers, but some other ids.
_MOST_ROWS_PER_HIT = 100


def cluster_table(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike = "label",
    *,
    weight: str | None = "energy",
    coords: Sequence[str] | None = None,
    n_clusters: int | None = None,
) -> xr.Dataset:
    """Return the properties of every cluster.

    Parameters
    ----------
    ds : xarray.Dataset
        Points along one dimension, numpy or dask. Variables ``layer`` (integer) and ``is_seed`` (boolean) are used
        where they are present.
    labels : str or array_like of int, shape (n,), default "label"
        Cluster numbers, 0 or larger, and -1 for noise: a variable of `ds`, or an array.
    weight : str or None, default "energy"
        Variable that weighs the points, finite and not negative; None weighs all by 1.
    coords : sequence of str, optional
        Variables with positions, finite. By default those of ``x``, ``y`` and ``z`` that `ds` has. Do not give an angle
        such as ``phi``: means of angles that wrap are wrong.
    n_clusters : int, optional
        Number of rows, at least the largest label plus 1. It is the default, and must be given for a lazy result.

    Returns
    -------
    xarray.Dataset
        Along ``cluster`` (coordinate 0 to k-1), for a coordinate ``x`` and the weight ``energy``:

        - ``size`` (int64): number of points;
        - ``energy`` (float64): sum of weights; not there if `weight` is None;
        - ``x`` (float64): weighted mean; NaN where the sum of weights is 0;
        - ``x_rms`` (float64): weighted root mean square distance to the mean along x; ``rms``: over all coordinates;
        - ``x_min``, ``x_max`` (float64): extent; NaN for a number without points;
        - ``seed`` (int64), ``x_seed`` (float64): index of the seed in `ds` (the smallest, if there are several), -1 if
          there is none, and its position; only with ``is_seed``;
        - ``layer`` (int64): that of the seed, -1 without one; where `ds` has no ``is_seed``, the common layer, -1 where
          a cluster has several; only with ``layer``.

        Units are those of the variables. Noise has no row: ``attrs`` has its ``noise_size`` and ``noise_weight``.

    Raises
    ------
    ValueError
        For missing variables, labels that are no integers, below -1, or not below `n_clusters`, unequal lengths,
        unknown chunk sizes, and values that are not finite or weights that are negative (of dask arrays: when they are
        computed).

    Notes
    -----
    A table of dask arrays is lazy if `n_clusters` is given: nothing is computed before it is used, and as ``attrs``
    cannot be lazy, ``noise_size`` and ``noise_weight`` are variables without dimension then. Otherwise the number of
    clusters has to be known, and the table is computed in one pass over the data and held in memory.

    Each chunk gives a summary of the clusters in it, and summaries are merged as a tree: memory is one chunk and the
    summaries, time is O(n). Sizes, extents, seeds and layers are the same for any chunking. Sums, means and rms are
    equal to rounding only, and repeat exactly for the same chunks. Squares are taken around each cluster's own mean
    (Chan et al.), so that they do not cancel far from the origin.

    References
    ----------
    Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983),
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> ds = xr.Dataset({"x": ("hit", [0.0, 4.0, 9.0]), "energy": ("hit", [3.0, 1.0, 5.0])})
    >>> table = cluster_table(ds, np.array([0, 0, -1]))
    >>> float(table["x"][0]), float(table["energy"][0]), table.attrs["noise_weight"]
    (1.0, 4.0, 5.0)
    """
    if n_clusters is not None and (isinstance(n_clusters, bool) or n_clusters < 0):
        raise ValueError(f"n_clusters must be a number of clusters or None, got {n_clusters!r}")
    names = _coordinate_names(ds, coords)
    arrays, attrs = _inputs(ds, labels, weight, names)
    outputs = _output_names(arrays, weight, names)
    lazy = any(hasattr(array, "__dask_graph__") for array in arrays.values())
    if not lazy:
        partial = summarise(arrays, names, 0)
    else:
        blocks = _lazy_partials(arrays, names)
        if n_clusters is not None:
            return _lazy_dataset(blocks, outputs, n_clusters, attrs)
        partial = _merged(blocks, _combine).compute()[0]
    columns = _finish(partial, outputs, n_clusters)
    noise = {"noise_size": int(columns.pop("noise_size")), "noise_weight": float(columns.pop("noise_weight"))}
    return _dataset(columns, len(columns["size"]), attrs).assign_attrs(noise)


def _coordinate_names(ds: xr.Dataset, coords: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the coordinates to use."""
    if isinstance(coords, str):
        raise ValueError(f"coords must be a sequence of names, got {coords!r}; write ({coords!r},)")
    names = tuple(name for name in _COORDS if name in ds) if coords is None else tuple(coords)
    if not names:
        raise ValueError(f"the Dataset has none of {', '.join(_COORDS)}; name the positions with coords=")
    return names


def _inputs(
    ds: xr.Dataset, labels: Any, weight: str | None, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return checked arrays by role (a coordinate's role is its name in brackets), and attributes by variable."""
    first = _variable(ds, names[0], "coords")
    if isinstance(labels, str):
        labels = _variable(ds, labels, "labels")
    values = labels.data if isinstance(labels, xr.DataArray) else labels
    arrays = {"labels": values if hasattr(values, "__dask_graph__") else np.asarray(values)}
    if weight is not None:
        arrays["weight"] = _variable(ds, weight, "weight").data
    for role in ("layer", "is_seed"):
        if role in ds:
            arrays[role] = ds[role].data
    arrays |= {f"[{name}]": _variable(ds, name, "coords").data for name in names}
    for role, array in arrays.items():
        _check_array(array, role, first.shape)
    attrs = {name: {k: v for k, v in ds[name].attrs.items() if k == "units"} for name in names}
    if weight is not None:
        attrs[weight] = {k: v for k, v in ds[weight].attrs.items() if k == "units"}
    return arrays, attrs


def _variable(ds: xr.Dataset, name: str, argument: str) -> xr.DataArray:
    """Return a variable of the Dataset, or say which it has."""
    if name not in ds:
        remedy = "; use weight=None for equal weights" if argument == "weight" else ""
        raise ValueError(f"{argument}: the Dataset has no variable {name!r}; it has {', '.join(map(str, ds))}{remedy}")
    return ds[name]


def _check_array(array: Any, role: str, shape: tuple[int, ...]) -> None:
    """Raise for arrays of another shape or kind than their role has."""
    if any(np.isnan(size) for size in array.shape):
        raise ValueError(f"{role} has unknown chunk sizes; call .compute_chunk_sizes() first")
    if array.shape != shape or array.ndim != 1:
        raise ValueError(f"{role} must have one dimension and the length of the coordinates {shape}, got {array.shape}")
    wanted = {"labels": "iu", "layer": "iu", "is_seed": "b"}.get(role, "fiub")
    if array.dtype.kind not in wanted and array.shape[0]:
        kind = {"iu": "integers", "b": "boolean"}.get(wanted, "numeric")
        raise ValueError(f"{role} must be {kind}, got dtype {array.dtype}; convert it with .astype")


def _output_names(arrays: Mapping[str, Any], weight: str | None, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return where each variable of the table comes from: attribute of a `Partial`, and coordinate or ''."""
    outputs = [("size", ("size", ""))]
    if weight is not None:
        outputs.append((weight, ("weight", "")))
    for name in names:
        outputs += [(name, ("mean", name)), (f"{name}_rms", ("rms", name))]
        outputs += [(f"{name}_min", ("low", name)), (f"{name}_max", ("high", name))]
    outputs.append(("rms", ("rms", "")))
    if "is_seed" in arrays:
        outputs.append(("seed", ("seed", "")))
        outputs += [(f"{name}_seed", ("seed_at", name)) for name in names]
    if "layer" in arrays:
        outputs.append(("layer", ("layer", "")))
    twice = sorted({name for name, _ in outputs if [other for other, _ in outputs].count(name) > 1})
    if twice:
        raise ValueError(
            f"the table would have {twice} twice; choose other coords or weight, or rename variables of ds"
        )
    return dict(outputs)


def _finish(partial: Partial, outputs: Mapping[str, tuple[str, str]], n_clusters: int | None) -> dict[str, Array]:
    """Return the columns of the table, and the two numbers of noise."""
    largest = int(partial.ids.max(initial=-1))
    n_points = int(partial.size.sum()) + partial.noise_size
    rows = largest + 1 if n_clusters is None else int(n_clusters)
    if largest >= rows:
        raise ValueError(f"labels go up to {largest}, but n_clusters is {rows}; give at least {largest + 1}")
    if n_clusters is None and rows > max(1_000_000, _MOST_ROWS_PER_HIT * n_points):
        raise ValueError(
            f"labels go up to {largest} for {n_points} points; number clusters from 0 first, "
            "with np.unique(labels, return_inverse=True)"
        )
    noise = {"noise_size": np.asarray(partial.noise_size), "noise_weight": np.asarray(partial.noise_weight)}
    columns: dict[str, Array] = {}
    for name, (kind, coordinate) in outputs.items():
        values = partial.column(kind, coordinate)
        empty: Any = {"size": 0, "weight": 0.0}.get(kind, NOISE if values.dtype.kind == "i" else np.nan)
        columns[name] = np.full(rows, empty, dtype=values.dtype)
        columns[name][partial.ids] = values
    return columns | noise


def _dataset(columns: Mapping[str, Any], rows: int, attrs: Mapping[str, dict[str, Any]]) -> xr.Dataset:
    """Return columns along ``cluster`` with their units."""
    units: dict[str, dict[str, Any]] = dict(attrs)
    for name in attrs:
        units |= {f"{name}_{part}": attrs[name] for part in ("rms", "min", "max", "seed")}
    common = {str(entry) for name, entry in attrs.items() if f"{name}_rms" in columns}
    if len(common) == 1:
        units["rms"] = next(entry for name, entry in attrs.items() if f"{name}_rms" in columns)
    variables = {
        name: ("cluster" if v.ndim else (), v, dict(units.get(name, {"units": "1"} if v.dtype.kind == "i" else {})))
        for name, v in columns.items()
    }
    return xr.Dataset(variables, coords={"cluster": np.arange(rows)})


# Dask. Blocks are summarised to one object each; objects travel in arrays of length 1, which are public API.


def _lazy_partials(arrays: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return a dask array of objects: the `Partial` of every chunk."""
    import dask.array as da

    chunks = next(array.chunks for array in arrays.values() if hasattr(array, "__dask_graph__"))
    same = [
        array.rechunk(chunks) if hasattr(array, "__dask_graph__") else da.from_array(array, chunks=chunks)  # type: ignore[no-untyped-call,unused-ignore]
        for array in arrays.values()
    ]
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _summarise_block,
        *same,
        roles=tuple(arrays),
        names=names,
        dtype=object,
        chunks=((1,) * len(chunks[0]),),
        meta=np.empty(0, dtype=object),
        token="daskclust-properties-summary",
    )


def _summarise_block(
    *blocks: Array,
    roles: tuple[str, ...],
    names: tuple[str, ...],
    block_info: Mapping[Any, Any] | None = None,
) -> Array:
    """Return the `Partial` of one chunk in an array of length 1; dask tells where the chunk begins."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start = block_info[0]["array-location"][0][0]
    return _boxed(summarise(dict(zip(roles, blocks, strict=True)), names, start))


def _boxed(value: Any) -> Array:
    """Return an array of length 1 that holds any object."""
    box = np.empty(1, dtype=object)
    box[0] = value
    return box


def _merged(blocks: Any, aggregate: Callable[..., Array]) -> Any:
    """Return a lazy array of length 1: all summaries merged as a tree, and what `aggregate` makes of them."""
    import dask.array as da

    return da.reduction(  # type: ignore[no-untyped-call,unused-ignore]
        blocks,
        chunk=_unchanged,
        combine=_combine,
        aggregate=aggregate,
        axis=0,
        keepdims=True,
        concatenate=False,
        dtype=object,
        meta=np.empty(0, dtype=object),
        name="daskclust-properties-merge",
    )


def _combine(parts: Any, axis: Any, keepdims: Any) -> Array:
    """Return one summary of several, each in an array of length 1."""
    return _boxed(merge([part[0] for part in (parts if isinstance(parts, list) else [parts])]))


def _finish_block(parts: Any, axis: Any, keepdims: Any, *, outputs: Mapping[str, tuple[str, str]], rows: int) -> Array:
    """Return the columns of the table of several summaries, in an array of length 1."""
    return _boxed(_finish(_combine(parts, axis, keepdims)[0], outputs, rows))


def _lazy_dataset(
    blocks: Any, outputs: Mapping[str, tuple[str, str]], rows: int, attrs: Mapping[str, dict[str, Any]]
) -> xr.Dataset:
    """Return the lazy table: merge summaries as a tree, then take its columns out."""
    import dask.array as da

    total = _merged(blocks, functools.partial(_finish_block, outputs=outputs, rows=rows))
    # The types of the columns are those of a table of nothing.
    nothing = _finish(Partial.nothing(tuple(c for kind, c in outputs.values() if kind == "mean")), outputs, 0)
    columns = {}
    for name, like in nothing.items():
        box = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _take,
            total,
            column=name,
            chunks=((rows if like.ndim else 1,),),
            dtype=like.dtype,
            meta=np.empty(0, dtype=like.dtype),
            token="daskclust-properties-column",
        )
        columns[name] = box if like.ndim else box[0]
    return _dataset(columns, rows, attrs)


def _unchanged(part: Array, axis: Any, keepdims: Any) -> Array:
    """Return a block as it is."""
    return part


def _take(box: Array, column: str) -> Array:
    """Return one column of the finished table."""
    return np.atleast_1d(box[0][column])
