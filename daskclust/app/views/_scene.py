"""What views are given to draw, and what they are to the layout."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.app.look import Look
from daskclust.app.selection import Range, Selection
from daskclust.app.state import Chosen, Outcome
from daskclust.app.worker import Show

Column = Literal["left", "right"]
Choose = Callable[[Selection | None], None]


class Scene(NamedTuple):
    """What views show."""

    outcome: Outcome
    chosen: Chosen
    within: tuple[Range, ...]  # the one layer, or window of time, that is shown
    look: Look

    @property
    def mask(self) -> npt.NDArray[np.bool_] | None:
        """Which points are chosen."""
        return self.chosen.mask


class View:
    """A part of the explorer, seen under its title.

    `prepare` is called in any thread; the others, and what it returns, in the thread of the widgets.
    """

    title: str
    where: Column = "right"  # at first: the column, and the share of its height
    share = 5
    panel: Any  # what is laid out
    caption: Any = None  # words of what is seen, for the bar above it

    def setting(self) -> Hashable:
        """Return the view's own settings, such as its axes."""
        return None

    def follow(self, values: Mapping[str, Any]) -> None:
        """Show changed parameters before their result is there."""

    def dress(self, look: Look) -> None:
        """Apply the colours of a look."""

    def prepare(self, scene: Scene, setting: Any) -> Show:
        """Return the function that shows a scene with these settings."""
        raise NotImplementedError
