"""Compensation and the arcsinh transformation of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_positive
from daskclust.core.data.inputs import NOT_CLUSTERED
from daskclust.core.device.arrays import is_dask
from daskclust.io.cytometry.rows import check_patterns, choose_channels, long_name, matching
from daskclust.io.cytometry.spillover import unmixing
from daskclust.io.devices import check_on_host
from daskclust.io.rows import by_blocks

LINEAR = (
    "time", "time[!a-z]*", "timestamp*", "*[ _-]time", "clock*", "hdr-*", "fsc*", "ssc*", "fs", "ss", "[fs]s[ -]*",
    "event*length", "event*number", "event #", "center", "offset", "residual", "width",
)  # fmt: skip
"""Channels that stay linear, in lower case: clocks, scatter, and what a mass cytometer tells of the pulse."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is done to the values of each cell: columns are compensated, then become arcsinh(x / cofactor)."""

    mixed: tuple[int, ...] = ()
    inverse: tuple[tuple[float, ...], ...] = ()
    curved: tuple[int, ...] = ()
    cofactor: float = 1.0

    @np.errstate(over="ignore", invalid="ignore")  # inf and NaN of a file stay such, or become NaN
    def apply(self, columns: npt.NDArray[np.float64]) -> None:
        """Change columns, of shape (d, n), in place."""
        if self.mixed:
            observed = columns[list(self.mixed)]
            for j, column in enumerate(self.mixed):
                # A loop, as the order of the sums of a matrix product depends on the number of rows.
                total = np.zeros(columns.shape[1])
                for i in range(len(self.mixed)):
                    if self.inverse[i][j]:
                        total += self.inverse[i][j] * observed[i]
                columns[column] = total
        for column in self.curved:
            columns[column] = np.arcsinh(columns[column] / self.cofactor)


def curved_channels(
    transform: Any, cofactor: Any, linear: Any, names: Sequence[Sequence[str]], source: str
) -> tuple[int, ...]:
    """Return the channels that a transformation changes: all but `linear`, or but `LINEAR` where that is None."""
    if transform is None:
        return ()
    if transform != "arcsinh":
        raise ValueError(f"transform must be 'auto', 'arcsinh' or None, got {transform!r}")
    check_positive("cofactor", cofactor)
    if linear is not None:
        kept = set(choose_channels(linear, names, source)) if check_patterns(linear, "linear") else set()
    else:
        lower = [[name.lower() for name in own] for own in names]
        kept = {k for pattern in LINEAR for k in matching(pattern, lower)}
    return tuple(k for k in range(len(names)) if k not in kept)


def check_untransformed(attrs: Mapping[str, Any], source: str, step: str) -> None:
    """Refuse values that were transformed before."""
    if attrs.get("transform", "none") != "none":
        raise ValueError(
            f"{source} is transformed already (transform {attrs['transform']!r}, cofactor {attrs.get('cofactor')!r}), "
            f"and {step} would give wrong values; "
            + ("give transform=None" if step == "transforming them again" else "compensate before the transformation")
        )


def compensate(ds: xr.Dataset, spillover: Any) -> xr.Dataset:
    """Take the light of other dyes out of each channel.

    Parameters
    ----------
    ds : xarray.Dataset
        Cells that are not transformed, with ``X`` (cell, channel), numpy or dask.
    spillover : pandas.DataFrame, xarray.DataArray or array_like, shape (k, k)
        A row for each dye: the share of its light in each detector, 1 in its own, as FCS files have it. Columns have
        the names of channels or detectors; without names they are all channels but time and scatter.

    Returns
    -------
    xarray.Dataset
        `ds` with another ``X`` of the same type, lazy where `ds` is; ``attrs["compensation"]`` is ``"given"``.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU; for transformed values, and matrices of other shapes, without inverse, of unknown channels.

    References
    ----------
    Bagwell and Adams, "Fluorescence spectral overlap compensation for any number of flow cytometry parameters", Ann. N.
    Y. Acad. Sci. 677 (1993), doi:10.1111/j.1749-6632.1993.tb38775.x.

    Examples
    --------
    >>> ds = xr.Dataset({"X": (("cell", "channel"), [[100.0, 30.0]])}, coords={"channel": ["CD3", "CD4"]})
    >>> compensate(ds, [[1.0, 0.25], [0.0, 1.0]])["X"].values
    array([[100.,   5.]])
    """
    names = check_cells(ds, "compensate")
    check_untransformed(ds.attrs, "the Dataset", "compensation")
    default = curved_channels("arcsinh", 1.0, None, names, "the Dataset")
    mixed, inverse = unmixing(spillover, names, default, "the Dataset")
    return _prepared(ds, Preparation(mixed, inverse), {"compensation": "given"})


def arcsinh_transform(data: Any, cofactor: float = 150.0, *, linear: str | Sequence[str] | None = None) -> Any:
    """Transform intensities to arcsinh(x / cofactor).

    Parameters
    ----------
    data : xarray.Dataset, or array of numpy or dask
        Cells with ``X`` (cell, channel), or values, all of which are transformed.
    cofactor : float, default 150.0
        Where the scale turns from linear to logarithmic: 150 is usual for fluorescence, 5 for mass cytometry.
    linear : str or sequence of str, optional
        Names, or patterns such as ``"FSC*"``, of channels that stay as they are. By default time, scatter, and length
        and shape of the pulses of mass cytometers; ``()`` for none.

    Returns
    -------
    xarray.Dataset, or array
        As `data`, lazy where it is. Floats keep their type, others become float64. Of a Dataset,
        ``attrs["transform"]``, ``"cofactor"`` and ``"linear"`` tell what was done.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU; for a cofactor that is not positive, patterns that no channel matches, transformed cells.

    References
    ----------
    Bendall et al., "Single-cell mass cytometry of differential immune and drug responses across a human hematopoietic
    continuum", Science 332 (2011), doi:10.1126/science.1198704.

    Examples
    --------
    >>> arcsinh_transform(np.array([0.0, 150.0 * np.sinh(2.0)]))
    array([0., 2.])
    """
    if not isinstance(data, xr.Dataset):
        values = data if hasattr(data, "dtype") else np.asarray(data)
        check_on_host("arcsinh_transform", {"data": values})
        check_positive("cofactor", cofactor)
        return np.arcsinh(values.astype(np.float64) / cofactor).astype(_float_type(values.dtype))
    names = check_cells(data, "arcsinh_transform")
    check_untransformed(data.attrs, "the Dataset", "transforming them again")
    curved = curved_channels("arcsinh", cofactor, linear, names, "the Dataset")
    return _prepared(data, Preparation(curved=curved, cofactor=float(cofactor)), told(curved, cofactor, names))


def aside(chosen: Sequence[int], names: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Return the attribute of which channels are not clustered: those of `LINEAR`, unless there are no others."""
    curved = curved_channels("arcsinh", 1.0, None, names, "")
    left_out = [names[k][0] for k in chosen if k not in curved]
    return {NOT_CLUSTERED: left_out} if 0 < len(left_out) < len(chosen) else {}


def told(curved: Sequence[int], cofactor: float, names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the attributes that tell of a transformation."""
    linear = [own[0] for k, own in enumerate(names) if k not in curved]
    if not curved:
        return {"transform": "none", "linear": linear}
    return {"transform": "arcsinh", "cofactor": float(cofactor), "linear": linear}


def check_cells(ds: xr.Dataset, step: str) -> list[tuple[str, ...]]:
    """Return all names of each channel, of the data set and of the detectors, if the data set is one of cells."""
    if "X" not in ds or ds["X"].ndim != 2 or "channel" not in ds["X"].coords or ds["X"].dims[1] != "channel":
        found = dict(ds["X"].sizes) if "X" in ds else f"variables {', '.join(map(repr, ds)) or 'none'}"
        raise ValueError(
            f"{step} needs X along (cell, channel) with names of channels; the Dataset has {found}: name them with "
            "ds.assign_coords(channel=[...]), and bring X into this order with ds.transpose(..., 'channel')"
        )
    check_on_host(step, {"X": ds["X"].data})
    channels = [str(name) for name in ds["channel"].values]
    if "detector" not in ds.coords:
        return [(name,) for name in channels]
    return list(zip(channels, map(str, ds["detector"].values), strict=True))


def _float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=") if dtype.kind == "f" and dtype.itemsize >= 4 else np.dtype(np.float64)


def _prepared(ds: xr.Dataset, preparation: Preparation, attrs: Mapping[str, Any]) -> xr.Dataset:
    X = ds["X"].data
    dtype = _float_type(X.dtype)
    X = X.rechunk({1: -1}) if is_dask(X) else X
    out = by_blocks(_prepared_block, X, dtype, "prepare", preparation=preparation, kind=dtype)
    result = ds.assign(X=(ds["X"].dims, out, ds["X"].attrs)).assign_attrs(attrs)
    result["X"].attrs = {**ds["X"].attrs, "units": "1", "long_name": long_name(result.attrs)}
    return result


def _prepared_block(X: npt.NDArray[Any], first_row: int, preparation: Preparation, kind: Any) -> npt.NDArray[Any]:
    columns = np.array(X.T, np.float64, order="C")
    preparation.apply(columns)
    return np.ascontiguousarray(columns.T, kind)
