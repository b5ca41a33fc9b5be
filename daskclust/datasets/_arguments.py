"""Checks of what generators are given, and the data set of hits that they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_number, check_positive, check_whole
from daskclust.core.data.quote import quoted

Array = npt.NDArray[Any]
Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
RNG = int | np.random.Generator | None

_UNITS = {"x": "cm", "y": "cm", "z": "cm", "layer": "1", "energy": "GeV", "eta": "1", "phi": "rad", "truth": "1"}


def fraction(name: str, value: Any) -> None:
    """Raise for what is not in 0 to 1."""
    if not 0 <= check_number(name, value) <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {quoted(value)}")


count = partial(check_whole, least=0)
at_least_1 = partial(check_whole, least=1)
not_negative = partial(check_positive, zero=True)

_RULES: dict[str, Callable[[str, Any], object]] = (
    dict.fromkeys(("n", "n_hits", "n_showers", "n_noise", "points_per_layer", "groups"), count)
    | dict.fromkeys(("n_layers", "points_per_cluster", "smallest", "d", "per_spot", "channels"), at_least_1)
    | dict.fromkeys(("size", "cell_size", "elongation", "rate", "separation", "slope", "concentration"), check_positive)
    | dict.fromkeys(("vicinity", "rarest", "spread"), check_positive)
    | dict.fromkeys(("sigma", "threshold", "drift", "timewalk", "start", "extent"), not_negative)
    | dict.fromkeys(("noise", "hadronic", "background", "largest", "filaments", "web"), fraction)
)
"""What most generators ask of an argument of this name."""


def given(generator: str, arguments: Mapping[str, Any], **rules: Callable[[str, Any], object]) -> dict[str, Any]:
    """Return the arguments of a generator as attributes of its data set, checked by its own rules or the usual ones."""
    for name, rule in (_RULES | rules).items():
        if name in arguments:
            rule(name, arguments[name])
    kept = {name: value for name, value in arguments.items() if name not in ("chunks", "rng")}
    kept |= {name: int(value) for name, value in kept.items() if isinstance(value, bool)}
    return {"generator": generator, **kept}


def dataset(columns: Mapping[str, npt.NDArray[Any]], attrs: Mapping[str, Any]) -> xr.Dataset:
    """Return columns along ``hit`` with their units."""
    return xr.Dataset({name: ("hit", v, {"units": _UNITS[name]}) for name, v in columns.items()}, attrs=attrs)
