"""Colours of the explorer on light and on dark paper; those of clusters are the colours of `daskclust.plot`."""

from __future__ import annotations

from typing import NamedTuple

from daskclust.plot._look import ACCENT, COLORS, NOISE_ALPHA, NOISE_COLOR

_INVERTED = 0.88  # white becomes the colour of the dark page
_ALL = 0.5  # opacity of bars of all clusters, below those of clusters with chosen points


class Look(NamedTuple):
    """What the page is drawn with."""

    name: str
    page: str  # around pictures
    paper: str  # below points
    ink: str  # words and numbers
    line: str  # axes
    title: str  # the name of the system
    pale: str  # points that are not chosen

    @property
    def noise(self) -> str:
        """Points in no cluster."""
        return mixed(NOISE_COLOR, self.paper, 1.0 - NOISE_ALPHA)

    @property
    def bars(self) -> tuple[str, str]:
        """Bars of all clusters, and of those with chosen points."""
        return mixed(ACCENT, self.paper, 1.0 - _ALL), ACCENT

    @property
    def widget_styles(self) -> dict[str, str]:
        """Styles of widgets, which know but one look."""
        inverted = {"filter": f"invert({_INVERTED}) hue-rotate(180deg)", "color-scheme": "light"}
        return {} if self.name == "light" else inverted


def mixed(color: str, other: str, share: float) -> str:
    """Return a colour with a share of another one."""
    pairs = zip(parts(color), parts(other), strict=True)
    return "#" + "".join(f"{round(one + (two - one) * share):02X}" for one, two in pairs)


def parts(color: str) -> list[int]:
    """Return the red, green and blue of a colour."""
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


LIGHT = Look("light", "#FFFFFF", "#FFFFFF", "#333333", "#888888", COLORS[0], "#E4E4E4")
DARK = Look("dark", "#1F1F1F", "#111111", "#D6DADE", "#7A8087", COLORS[4], "#2C3035")
LOOKS = {look.name: look for look in (LIGHT, DARK)}
