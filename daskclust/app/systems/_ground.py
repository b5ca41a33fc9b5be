"""What thresholds go through, and the plots in which they are dragged draw; it stays while thresholds move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy.typing as npt


class Ground(Protocol):
    """What the view of a system's thresholds draws."""

    @property
    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """What points can be chosen by in the view, beside the variables of the result."""
        ...

    def expressions(self, source: str) -> dict[str, str]:
        """Return Python expressions for `columns`; `source` is what the lines call the result."""
        ...
