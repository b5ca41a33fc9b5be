"""What is told of jumps of global time in Timepix3 files and readouts."""

from __future__ import annotations

import logging
from typing import Any

from daskclust.core.device.timesort import TICK
from daskclust.io.timepix.tpx3.state import Ints

logger = logging.getLogger(__name__)


def check_on_reset(on_reset: Any) -> bool:
    """Return whether times restart where global time jumps: 'restart', or 'continue'."""
    if on_reset not in ("continue", "restart"):
        raise ValueError(f"on_reset must be 'continue' or 'restart', got {on_reset!r}")
    return bool(on_reset == "restart")


def jumps_told(jumps: Ints) -> dict[str, list[float]]:
    """Return where global time jumps, as attributes; none where it does not."""
    if not len(jumps):
        return {}
    hits, before, after = jumps.T
    return {
        "clock_jump_hits": hits.tolist(),
        "clock_jump_from": (before * TICK).tolist(),
        "clock_jump_to": (after * TICK).tolist(),
    }


def tell_jumps(source: str, count: int, jump: Ints, restarts: bool) -> None:
    """Log that global time jumps, with the first jump that is new."""
    logger.warning(
        "%s: global time jumps, %d times so far, from %.9g s to %.9g s after %d hits: the clock was reset, or "
        "nothing came for more than 53 s; %s",
        source, count, jump[1] * TICK / 1e9, jump[2] * TICK / 1e9, jump[0],
        "hits after it may have times of hits before" if restarts
        else "times after it go on from those before, on_reset='restart' gives global time",
    )  # fmt: skip
