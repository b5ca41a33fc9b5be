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
    """What is to be seen."""

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
        """Return what the view itself lets the user choose."""
        return None

    def follow(self, values: Mapping[str, Any]) -> None:
        """Show parameters that were changed, before there are clusters of them."""

    def dress(self, look: Look) -> None:
        """Draw what is no data in other colours."""

    def prepare(self, scene: Scene, setting: Any) -> Show:
        """Return what shows a scene, by what the user had chosen in the view itself."""
        raise NotImplementedError
