"""Times of arrival corrected for timewalk: small signals are late."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.device.timesort import order_of_times
from daskclust.io.timepix.hitwise import hits_with, over_blocks

Floats = npt.NDArray[np.float64]


def correct_timewalk(
    ds: xr.Dataset, correction: npt.ArrayLike | Mapping[str, float], *, by: Literal["energy", "tot"] = "energy"
) -> xr.Dataset:
    """Subtract from the time of arrival the delay that small signals have.

    Parameters
    ----------
    ds : xarray.Dataset
        With ``toa`` (ns) and the variable that `by` names, numpy or dask. Other units are converted.
    correction : array_like of shape (k, 2), or mapping of str to float
        A table of energy (keV) or ToT (ns), ascending, and delay (ns): interpolated linearly, and held constant beyond
        its ends. Or the parameters ``a``, ``e0``, ``b`` (default 1) and ``c`` (default 0) of
        delay = a / (E - e0)^b + c.
    by : {"energy", "tot"}, default "energy"
        What the delay depends on.

    Returns
    -------
    xarray.Dataset
        `ds` with ``toa`` corrected, no multiples of 1.5625 ns any more. In memory all variables are sorted anew by
        (toa, order before), and ``attrs["n_uncorrected"]`` counts hits that have no delay (NaN, or not above e0): their
        time is kept. On dask the hits stay where they are, out of order by up to the difference of delays: EventBuilder
        sorts them.

    Raises
    ------
    TypeError, ValueError
        For arrays on a GPU, missing variables, and a table or parameters that are not as above.

    References
    ----------
    F. Pitters et al., "Time resolution studies of Timepix3 assemblies with thin silicon pixel sensors", JINST 14 (2019)
    P05022, where b = 1. DOI: 10.1088/1748-0221/14/05/P05022

    Examples
    --------
    >>> ds = xr.Dataset({"toa": ("hit", [100.0, 110.0]), "energy": ("hit", [50.0, 5.0])})
    >>> correct_timewalk(ds, [[5.0, 20.0], [50.0, 1.0]])["toa"].values
    array([90., 99.])
    """
    if by not in ("energy", "tot"):
        raise ValueError(f"by must be 'energy' or 'tot', got {by!r}")
    delay_of = partial(_delay, correction=_check_correction(correction))
    ds = hits_with(ds, ["toa", by], "correct_timewalk")
    delay = over_blocks(ds, [by], delay_of, np.float64, "correct_timewalk")
    toa = ds["toa"].astype(np.float64) - xr.DataArray(delay, dims=ds["toa"].dims).fillna(0.0)
    result = ds.assign(toa=toa.assign_attrs(ds["toa"].attrs))
    if result["toa"].chunks:
        return result
    result.attrs["n_uncorrected"] = int(np.isnan(delay).sum())
    return result.isel({toa.dims[0]: order_of_times(toa.values)})


def _check_correction(correction: Any) -> Floats | dict[str, float]:
    """Return a table of float64, or all parameters."""
    if isinstance(correction, Mapping):
        parameters = {"b": 1.0, "c": 0.0, **correction}
        if set(parameters) != {"a", "e0", "b", "c"} or not all(np.isfinite(v) for v in parameters.values()):
            raise ValueError(
                "correction must have finite numbers a and e0, and b and c where they are not 1 and 0, got "
                f"{correction!r}"
            )
        return {name: float(value) for name, value in parameters.items()}
    table = np.asarray(correction, np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or not len(table):
        raise ValueError(f"correction must be a table of shape (k, 2), or a mapping of a, e0, b, c; got {table.shape}")
    if not np.isfinite(table).all() or (np.diff(table[:, 0]) <= 0).any():
        raise ValueError("the first column of correction must ascend and all be finite; sort it, and join equal rows")
    return table


def _delay(values: npt.NDArray[Any], correction: Floats | dict[str, float]) -> Floats:
    """Return delays in ns, NaN where there is none."""
    value = np.asarray(values, np.float64)
    if isinstance(correction, dict):
        above = value - correction["e0"]
        above = np.where(above > 0, above, np.nan)
        with np.errstate(over="ignore", divide="ignore"):
            delay = correction["a"] / above ** correction["b"] + correction["c"]
        delay[~np.isfinite(delay)] = np.nan
        return delay
    return np.where(np.isnan(value), np.nan, np.interp(value, correction[:, 0], correction[:, 1]))
