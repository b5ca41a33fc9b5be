"""Layouts of chips: which there are, and where the pixels of a quad's four chips lie in its common coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.data.fields import SIDES
from daskclust.core.device.kernels import body

PIXELS = SIDES["chips"][0]
"""Pixels in a row, and in a column, of a chip."""
LAYOUTS = ("chips", "quad")
"""Those of raw words of Timepix3."""
QUAD_CHIPS = 4
_FAR = 2 * PIXELS - 1


def check_layout(layout: str, gap: int) -> None:
    """Raise an error for a layout that is not known, and for a gap that is no number of pixels."""
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; known: {', '.join(LAYOUTS)}")
    check_whole("gap", gap, 0, 65535 - _FAR)


@body
def on_quad(column, row, chip, gap):
    """Return the common coordinates of a pixel of one of four chips."""
    right = chip <= 1
    upper = chip == 1 or chip == 2
    across = column + np.int32(PIXELS) + gap if right else column
    if upper:
        across = np.int32(_FAR) + gap - column if right else np.int32(PIXELS - 1) - column
        row = np.int32(_FAR) + gap - row
    return across, row


def pixels_of_quad(
    x: npt.NDArray[np.int64], y: npt.NDArray[np.int64], chip: npt.NDArray[Any], gap: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pixels of the chips from common coordinates: `on_quad` the other way."""
    far = _FAR + gap
    columns = np.select([chip == 0, chip == 1, chip == 2], [x - PIXELS - gap, far - x, PIXELS - 1 - x], x)
    return columns, np.where((chip == 1) | (chip == 2), far - y, y)
