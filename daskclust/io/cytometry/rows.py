"""Cells in files: their channels, and the data set that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_length
from daskclust.core.data.columns import label_numbers, plain
from daskclust.core.data.inputs import NOT_CLUSTERED
from daskclust.core.data.quote import listed, meant, quoted
from daskclust.core.device.arrays import is_dask, to_host
from daskclust.io.rows import by_blocks

AUTO_CELLS = 100_000
"""Cells of a chunk where none are asked for."""

FIELD = "cytometry"
VARIABLES = {
    "apriori": "apriori cluster", "population": "true population", "label": "cluster number, noise -1",
    "source": "number of the file, from 0", "is_core": "whether the cell is a core point",
    "point_height": "sum of the heights of the merges above the cell",
    "probability": "density at which the cell leaves its cluster, by that at which the cluster ends",
    "outlier_score": "GLOSH outlier score",
}  # fmt: skip
"""What a cell has beside its channels: whole numbers, but for `FLOATS`."""

FLOATS = ("point_height", "probability", "outlier_score")


def labels_of(labels: Any, n: int) -> npt.NDArray[np.int64]:
    """Return the clusters of n cells, of any container, in memory."""
    values = plain("labels", labels)
    numbers: npt.NDArray[np.int64] = label_numbers("labels", to_host(values.compute() if is_dask(values) else values))
    check_length("labels", numbers, n)
    return numbers


def column_beside(values: Any, name: str, source: str) -> Any:
    """Return a column (n,), of numpy or dask, as the whole numbers that it must hold, or one of `FLOATS`."""
    if name in FLOATS:
        return values.astype(np.float64)
    return by_blocks(_whole_numbers, values, np.int64, "whole", name=name, source=source)


def _whole_numbers(values: npt.NDArray[Any], first_row: int, name: str, source: str) -> npt.NDArray[np.int64]:
    """Return values as int64, if they are whole numbers that a float64 tells apart."""
    if values.dtype.kind in "fu":
        good = np.abs(values) < (2.0**53 if values.dtype.kind == "f" else 2**63)  # NaN compares false
        good[good] = values[good] == np.floor(values[good])
        if not good.all():
            k = int(np.argmin(good))
            raise ValueError(
                f"column {quoted(name)} of {source} must hold whole numbers, got {values[k]!s} in row {first_row + k} "
                "(counted from 0); choose columns without it with channels="
            )
    return values.astype(np.int64)


def check_patterns(value: Any, name: str) -> tuple[str, ...]:
    """Return names or patterns as a tuple; `value` may be one of them."""
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(entry, str) and entry for entry in given):
        raise ValueError(f"{name} must be a name or pattern such as 'CD*', or a list of these, got {quoted(value)}")
    return tuple(given)


def matching(pattern: str, names: Sequence[Sequence[str]]) -> list[int]:
    """Return which channels have a name that is the pattern, or else that it matches as ``*``, ``?`` and ``[]`` do."""
    exact = [k for k, own in enumerate(names) if pattern in own]
    return exact or [k for k, own in enumerate(names) if any(fnmatchcase(name, pattern) for name in own)]


def choose_channels(patterns: Any, names: Sequence[Sequence[str]], source: str) -> list[int]:
    """Return the channels that names or patterns choose, each once and in their order; None chooses all."""
    if patterns is None:
        return list(range(len(names)))
    chosen: dict[int, None] = {}
    for pattern in check_patterns(patterns, "channels"):
        found = matching(pattern, names)
        if not found:
            known = [own[0] for own in names]
            raise ValueError(
                f"{source} has no channel {quoted(pattern)}{meant(pattern, known)}; it has {listed(known)}"
            )
        chosen.update(dict.fromkeys(found))
    if not chosen:
        raise ValueError(f"channels chooses none of {source}, got {quoted(patterns)}; leave it out for all of them")
    return list(chosen)


def cells_dataset(
    X: Any,
    channels: Sequence[str],
    attrs: Mapping[str, Any],
    variables: Mapping[str, Any],
    detectors: Sequence[str] | None = None,
) -> xr.Dataset:
    """Return the data set of cells: values (n, d), names of the d channels, and whole numbers of cells beside them."""
    coords: dict[str, Any] = {"channel": list(channels)}
    if detectors is not None and list(detectors) != list(channels):
        coords["detector"] = ("channel", list(detectors))
    columns = {
        name: ("cell", values, {"units": "1", "long_name": VARIABLES[name]}) for name, values in variables.items()
    }
    about = {"units": "1", "long_name": long_name(attrs)}
    return xr.Dataset({"X": (("cell", "channel"), X, about), **columns}, coords=coords, attrs=dict(attrs))


def long_name(attrs: Mapping[str, Any]) -> str:
    """Return what the values are, by the attributes of their data set."""
    if attrs.get("transform") != "arcsinh":
        return "intensity"
    return f"intensity, arcsinh(x / {attrs['cofactor']:g})" if "cofactor" in attrs else "intensity, arcsinh"


def prepared_in_words(attrs: Mapping[str, Any]) -> str:
    """Return what was done to the values of cells, and which channels are not clustered; "" where nothing tells it."""
    if "fcs_version" not in attrs and NOT_CLUSTERED not in attrs:
        return ""
    how = {"file": "compensated by the file's matrix", "given": "compensated", "before": "compensated before"}
    scale = long_name(attrs).removeprefix("intensity, ") if attrs.get("transform") == "arcsinh" else "not transformed"
    left_out = ", ".join(attrs.get(NOT_CLUSTERED, ()))
    told = [how.get(attrs.get("compensation", ""), "not compensated"), scale]
    return "; ".join([*told, *([f"not clustered: {left_out}"] if left_out else [])])
