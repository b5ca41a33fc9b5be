"""The results of CLUE as variables of a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import Points
from daskclust.core.data.units import words

from ._points import LABEL, dim_of

if TYPE_CHECKING:
    from daskclust.clue.estimator import CLUE

RESULTS = {
    "label": ("labels_", LABEL["long_name"]),
    "density": ("density_", "local density"),
    "delta": ("delta_", "distance to the nearest higher point"),
    "nearest_higher": ("nearest_higher_", "index of the nearest higher point, none -1"),
    "is_seed": ("is_seed_", "whether the point is the seed of a cluster"),
}
"""Name of the variable: attribute of the estimator, long_name."""


def results_of(estimator: CLUE) -> dict[str, Any]:
    """Return the results of a fit by the names of variables."""
    return {name: plain(name, getattr(estimator, attribute)) for name, (attribute, _) in RESULTS.items()}


def with_results(
    ds: xr.Dataset,
    results: Mapping[str, Any],
    estimator: CLUE,
    points: Points,
    used: Mapping[str, str | None],
    rhoc: Any,
) -> xr.Dataset:
    """Return the Dataset with results as variables."""
    attrs, dim = _attrs(estimator, points, used["weight"], rhoc), dim_of(ds, points)
    ds = ds.assign({name: (dim, values, attrs[name]) for name, values in results.items()})
    return ds.assign_attrs(clue=_description(estimator, points, used, rhoc))


def weight_unit(points: Points, weight: str | None) -> str | None:
    """Return the unit of densities."""
    return "1" if weight is None else points.units.get(weight)


def _attrs(estimator: CLUE, points: Points, weight: str | None, rhoc: Any) -> dict[str, dict[str, Any]]:
    """Return attributes of each result; nothing that a netCDF file could not hold."""
    axes = points.axes
    length, density_unit = points.units.get(axes[0]), weight_unit(points, weight)
    attrs: dict[str, dict[str, Any]] = {name: {"long_name": meaning} for name, (_, meaning) in RESULTS.items()}
    for name in ("label", "nearest_higher", "is_seed"):
        attrs[name]["units"] = "1"
    if density_unit is not None:
        attrs["density"]["units"] = density_unit
    if length is not None:
        attrs["delta"]["units"] = attrs["density"]["dc_units"] = length
    attrs["density"]["dc"] = float(estimator.dc)
    if isinstance(rhoc, str):
        attrs["density"]["rhoc_variable"] = rhoc
    elif np.ndim(rhoc) == 0:
        attrs["density"]["rhoc"] = float(rhoc)
    delta_c, delta_o = _deltas(estimator)
    periods = by_number(estimator.wrap, axes) or {}
    attrs["delta"] |= {"delta_c": delta_c, "delta_o": delta_o, "axes": " ".join(map(str, axes))}
    attrs["delta"]["periods"] = [float(periods.get(k, 0.0)) for k in range(len(axes))]
    return attrs


def _deltas(estimator: CLUE) -> tuple[float, float]:
    delta_c = float(estimator.dc if estimator.delta_c is None else estimator.delta_c)
    return delta_c, delta_c if estimator.delta_o is None else float(estimator.delta_o)


def by_number(wrap: Mapping[Any, float] | None, axes: Sequence[Hashable]) -> dict[int, float] | None:
    """Return periods by the number of the axis."""
    if not isinstance(wrap, Mapping):  # none, or what the estimator refuses
        return wrap
    unknown = [axis for axis in wrap if axis not in axes and not isinstance(axis, int | np.integer)]
    if unknown:
        raise ValueError(f"wrap names the axis {unknown[0]!r}; the coordinates are {list(axes)}")
    return {list(axes).index(axis) if axis in axes else int(axis): period for axis, period in wrap.items()}


def of_nothing(estimator: CLUE, X: Any) -> dict[str, Any]:
    """Return the results for no points, of X's class; parameters are checked by clustering one point."""
    one = estimator.rhoc if np.ndim(estimator.rhoc) == 0 else 0.0
    real = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    checked = type(estimator)(**{**estimator.get_params(), "rhoc": one}).fit(np.zeros((1, X.shape[1]), real))
    dtypes = {name: getattr(checked, attribute).dtype for name, (attribute, _) in RESULTS.items()}
    return {name: X[:, 0].astype(dtype) for name, dtype in dtypes.items()}


def _description(estimator: CLUE, points: Points, used: Mapping[str, str | None], rhoc: Any) -> str:
    """Return all parameters in words."""
    axes, delta_c, delta_o = points.axes, *_deltas(estimator)
    length, density = words(points.units.get(axes[0])), words(weight_unit(points, used["weight"]))
    kernel = getattr(estimator.kernel, "__name__", None) or repr(estimator.kernel)
    periods = by_number(estimator.wrap, axes)
    wrap = None if periods is None else {str(axes[axis]): float(period) for axis, period in periods.items()}
    threshold = "one for each point" if np.ndim(rhoc) else repr(rhoc)
    if np.ndim(rhoc) == 0 and not isinstance(rhoc, str):
        threshold = f"{float(rhoc):g}{density}"
    roles = ", ".join(f"{role}={name!r}" for role, name in used.items())
    return (
        f"dc={estimator.dc:g}{length}, rhoc={threshold}, delta_c={delta_c:g}{length}, delta_o={delta_o:g}{length}, "
        f"kernel={kernel}, neighbor_weight={estimator.neighbor_weight:g}, wrap={wrap}{length if wrap else ''}, "
        f"coordinates={tuple(map(str, axes))}, {roles}"
    )
