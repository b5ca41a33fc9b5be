"""Colours of the explorer on light and on dark paper; those of clusters are the colours of `daskclust.plot`."""

from __future__ import annotations

from typing import NamedTuple

from daskclust.plot._look import ACCENT, COLORS, NOISE_ALPHA, NOISE_COLOR

_ALL = 0.5  # opacity of bars of all clusters, below those of clusters with chosen points


class Look(NamedTuple):
    """Colours of the page."""

    name: str
    ground: str  # behind panels
    page: str  # around pictures
    paper: str  # below points
    field: str  # of buttons and boxes for numbers
    edge: str  # of panels
    ink: str  # words and numbers
    soft: str  # words of less weight
    line: str  # axes
    title: str  # the name of the system, what has the keyboard
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
    def variables(self) -> dict[str, str]:
        """Styles of the whole page; those that begin with ``--design`` are Panel's."""
        own = {f"--{name}": getattr(self, name) for name in ("ground", "page", "field", "edge", "ink", "soft", "title")}
        panel = {"background": self.page, "background-text": self.ink, "surface": self.field, "surface-text": self.ink}
        design = {f"--design-{name}-color": color for name, color in panel.items()}
        return own | design | {"background": self.ground, "color": self.ink, "color-scheme": self.name}


def mixed(color: str, other: str, share: float) -> str:
    """Return a colour with a share of another one."""
    pairs = zip(parts(color), parts(other), strict=True)
    return "#" + "".join(f"{round(one + (two - one) * share):02X}" for one, two in pairs)


def parts(color: str) -> list[int]:
    """Return the red, green and blue of a colour."""
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


LIGHT = Look(
    name="light", ground="#EEF0F3", page="#FFFFFF", paper="#FFFFFF", field="#F4F5F7", edge="#D5D9DF",
    ink="#22272E", soft="#59616B", line="#888888", title=COLORS[0], pale="#E4E4E4",
)  # fmt: skip
DARK = Look(
    name="dark", ground="#16181B", page="#1F2226", paper="#111111", field="#2A2E33", edge="#373C43",
    ink="#D6DADE", soft="#A3ABB4", line="#7A8087", title=COLORS[4], pale="#2C3035",
)  # fmt: skip
LOOKS = {look.name: look for look in (LIGHT, DARK)}
