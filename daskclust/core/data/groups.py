"""One number for the event and the layer of a point."""

from __future__ import annotations

from typing import Any

import numpy as np


def group_number(event: Any, layer: Any) -> Any:
    """Return one int64 number for an event and a layer, each of 32 bits."""
    for name, values in (("event", event), ("layer", layer)):
        if len(values) and not (values.min() >= -(2**31) and values.max() < 2**31):
            raise ValueError(
                f"event and layer must lie within 32 bits where both are given, got {name} {values.min()} to "
                f"{values.max()}; number them again from 0, e.g. by np.unique(..., return_inverse=True)"
            )
    return event.astype(np.int64) * 2**32 + (layer.astype(np.int64) + 2**31)


def group_name(group: int) -> str:
    """Return what a group is called: a layer, or one of an event."""
    if -(2**31) <= group < 2**31:
        return f"layer {group}"
    return f"layer {group % 2**32 - 2**31} of event {group // 2**32}"
