"""The results of CLUE as variables of a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from daskclust.core.data.inputs import Points
from daskclust.core.data.units import words

from ._points import LABEL, described, dim_of

if TYPE_CHECKING:
    from daskclust.clue.estimator import CLUE

ATTRIBUTES = {name: f"{name}_" for name in ("density", "delta", "nearest_higher", "is_seed")} | {"label": "labels_"}
_NAMES = {
    "label": LABEL["long_name"],
    "density": "local density",
    "delta": "distance to the nearest higher point",
    "nearest_higher": "index of the nearest higher point, none -1",
    "is_seed": "whether the point is the seed of a cluster",
}


def with_results(
    ds: xr.Dataset,
    results: Mapping[str, Any],
    estimator: CLUE,
    points: Points,
    used: Mapping[str, str | None],
    rhoc: Any,
) -> xr.Dataset:
    """Return the Dataset with results as variables; nothing in attributes that a netCDF file could not hold."""
    axes, dim = points.axes, dim_of(ds, points)
    length = points.units.get(axes[0])
    density = "1" if used["weight"] is None else points.units.get(used["weight"])
    delta_c = float(estimator.dc if estimator.delta_c is None else estimator.delta_c)
    delta_o = delta_c if estimator.delta_o is None else float(estimator.delta_o)
    periods = by_number(estimator.wrap, axes) or {}

    attrs: dict[str, dict[str, Any]] = {name: {"long_name": meaning, "units": "1"} for name, meaning in _NAMES.items()}
    attrs["density"] |= {"units": density, "dc": float(estimator.dc), "dc_units": length}
    threshold = "one for each point"
    if isinstance(rhoc, str):
        threshold, attrs["density"]["rhoc_variable"] = repr(rhoc), rhoc
    elif np.ndim(rhoc) == 0:
        threshold, attrs["density"]["rhoc"] = f"{float(rhoc):g}{words(density)}", float(rhoc)
    attrs["delta"] |= {"units": length, "delta_c": delta_c, "delta_o": delta_o, "axes": " ".join(map(str, axes))}
    attrs["delta"]["periods"] = [float(periods.get(k, 0.0)) for k in range(len(axes))]
    attrs = {name: {key: value for key, value in of.items() if value is not None} for name, of in attrs.items()}

    unit = words(length)
    wrap = {str(axes[axis]): float(period) for axis, period in periods.items()}
    told = {
        "dc": f"{estimator.dc:g}{unit}",
        "rhoc": threshold,
        "delta_c": f"{delta_c:g}{unit}",
        "delta_o": f"{delta_o:g}{unit}",
        "kernel": getattr(estimator.kernel, "__name__", None) or repr(estimator.kernel),
        "neighbor_weight": f"{estimator.neighbor_weight:g}",
        "wrap": f"{wrap}{unit}" if wrap else None,
        "coordinates": tuple(map(str, axes)),
        **{role: repr(name) for role, name in used.items()},
    }
    ds = ds.assign({name: (dim, values, attrs[name]) for name, values in results.items()})
    return ds.assign_attrs(clue=described(told))


def by_number(wrap: Mapping[Any, float] | None, axes: Sequence[Hashable]) -> dict[int, float] | None:
    """Return periods by the number of the axis."""
    if not isinstance(wrap, Mapping):  # none, or what the estimator refuses
        return wrap
    unknown = [axis for axis in wrap if axis not in axes and not isinstance(axis, int | np.integer)]
    if unknown:
        raise ValueError(f"wrap names the axis {unknown[0]!r}; the coordinates are {list(axes)}")
    return {list(axes).index(axis) if axis in axes else int(axis): period for axis, period in wrap.items()}
