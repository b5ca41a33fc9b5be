"""Colours of the explorer on light and on dark paper; those of clusters are the colours of `daskclust.plot`."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from daskclust.plot._elements import COLORS, NOISE_COLOR

_INVERTED = 0.88  # white becomes the colour of the dark page
_LEAST_CONTRAST = 3.0  # of marks to dark paper, as WCAG 2 asks of what must be told apart


class Look(NamedTuple):
    """What the page is drawn with."""

    name: str
    page: str
    """Around pictures."""
    paper: str
    """Below points."""
    ink: str
    """Words and numbers."""
    line: str
    """Axes."""
    title: str
    """The name of the system."""
    pale: str
    """Points that are not chosen."""
    noise: str
    bars: tuple[str, str]
    """Of all clusters, and of those with chosen points."""

    @property
    def clusters(self) -> tuple[str, ...]:
        """Colours of clusters, by label modulo their number."""
        return tuple(map(self.tone, COLORS))

    @property
    def page_styles(self) -> dict[str, str]:
        """Styles of what everything is on."""
        return {"background": self.page, "color": self.ink, "color-scheme": self.name}

    @property
    def widget_styles(self) -> dict[str, str]:
        """Styles of widgets, which know but one look."""
        inverted = {"filter": f"invert({_INVERTED}) hue-rotate(180deg)", "color-scheme": "light"}
        return {} if self.name == "light" else inverted

    def tone(self, color: str) -> str:
        """Return a colour of `daskclust.plot` as it is seen on this paper."""
        return color if self.name == "light" else _seen_on(color, self.paper)


def _mixed(color: str, other: str, share: float) -> str:
    """Return a colour with a share of another one."""
    pairs = zip(_parts(color), _parts(other), strict=True)
    return "#" + "".join(f"{round(one + (two - one) * share):02X}" for one, two in pairs)


@cache
def _seen_on(color: str, paper: str) -> str:
    """Return the colour itself, or with as little white as makes it stand out from dark paper."""
    tones = (_mixed(color, "#FFFFFF", step / 20) for step in range(21))
    return next(tone for tone in tones if _luminance(tone) + 0.05 >= _LEAST_CONTRAST * (_luminance(paper) + 0.05))


def _luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    linear = [(part / 255 / 12.92) if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in _parts(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(color: str) -> list[int]:
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


LIGHT = Look(
    "light", "#FFFFFF", "#FFFFFF", "#333333", "#888888", COLORS[0], "#E4E4E4", NOISE_COLOR, (COLORS[1], COLORS[0])
)
DARK = Look(
    "dark", "#1F1F1F", "#111111", "#D6DADE", "#7A8087", COLORS[1], "#2C3035", _mixed(NOISE_COLOR, "#111111", 0.6),
    (_mixed(COLORS[1], "#111111", 0.5), COLORS[1]),
)  # fmt: skip
LOOKS = {look.name: look for look in (LIGHT, DARK)}
