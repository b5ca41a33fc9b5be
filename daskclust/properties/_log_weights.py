"""Positions of clusters by the logarithm of each point's share of the weight: a second pass, after the sums are known.

It is how the calorimeter of CMS places its layer clusters: with w0 = 2.9, of points within 1.3 cm of the one with the
most energy (``RecoLocalCalo/HGCalRecProducers`` of CMS software).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daskclust.core.data.checks import check_positive
from daskclust.core.device.arrays import HOST
from daskclust.core.merge.labels import NOISE

from ._columns import on_device
from ._moments import moments, sums
from ._summary import Array, Columns, Groups, Summary, grouped


def check_log_weights(w0: Any, within: Any, weight: str | None) -> None:
    """Refuse parameters that are no lengths, and those without a weight."""
    for name, value in (("log_weight", w0), ("log_within", within)):
        if value is not None:
            check_positive(name, value)
    if w0 is None and within is not None:
        raise ValueError(f"log_within = {within!r} is for log_weight; give log_weight too, or leave it out")
    if w0 is not None and weight is None:
        raise ValueError(f"log_weight = {w0!r} needs a weight; name its variable with weight=")


def summarise_again(
    arrays: Mapping[str, Any], start: int, known: Summary, names: tuple[str, ...], w0: float, within: float | None
) -> Summary:
    """Return the summary of one chunk of which the clusters' sums, in all chunks, are `known`."""
    arrays = on_device(HOST, arrays)
    inside = arrays["labels"] != NOISE
    groups = grouped(arrays["labels"][inside].astype(np.int64, copy=False))
    total, peak_at = known.columns["weight"][groups.group], known.columns["peak_at"][:, groups.group]
    x = np.array([arrays[f"[{name}]"][inside] for name in names], np.float64).reshape(len(names), len(total))
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = w0 + np.log(arrays["weight"][inside].astype(np.float64) / total)
    near = True if within is None else ((x - peak_at) ** 2).sum(axis=0) <= within**2
    weight = np.where((weight > 0) & near, weight, 0.0)  # not of points, or clusters, of weight 0
    return replace(known, columns={**known.columns, **_means(groups, weight, x)})


def merge_again(groups: Groups, many: Columns) -> Columns:
    """Return the columns of each cluster, of those of several summaries of the second pass."""
    first = {name: values[..., groups.first] for name, values in many.items()}
    return first | _means(groups, many["log_weight"], many["log_mean"])


def _means(groups: Groups, weight: Array, x: Array) -> dict[str, Array]:
    mean = [moments(groups, weight, each, np.zeros(len(weight)))[0] for each in x]
    return {"log_weight": sums(groups, weight), "log_mean": np.array(mean).reshape(len(x), len(groups.ids))}
