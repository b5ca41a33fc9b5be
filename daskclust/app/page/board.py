"""Panels in two columns of a grid that fills the page: each is enlarged, hidden, and exchanged with the next one."""

from __future__ import annotations

import itertools
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import panel as pn
from panel.viewable import Viewer

from daskclust.app.design import NO_PHONE, PHONE, styled
from daskclust.app.views._scene import Column, View
from daskclust.app.widgets import button, heading
from daskclust.core.data.quote import in_html

COLUMNS: tuple[Column, Column] = ("left", "right")

_ROWS = 120  # of the grid
SPLITS = 30, 75  # per cent of the width that the left column may have
_SPLIT = 58
_ICONS = {
    "move": "M2 5.5h11M10 2.5l3 3-3 3M14 11.5H3M6 8.5l-3 3 3 3",
    "hide": "M3.5 3.5l9 9M12.5 3.5l-9 9",
    "enlarge": "M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5L9 7M2.5 13.5L7 9",
}
_SVG = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='black' stroke-width='1.5'>"
_CARD = """
:host { position: relative; overflow: hidden; border: 1px solid var(--edge); border-radius: 6px;
        background: var(--page) }
"""
_UNTOUCHED = {"pointer-events": "none"}  # tools of pictures are below
_TOOLS = 142  # pixels that the tools of a picture take
_BAR = {"position": "absolute", "top": "0", "width": "100%", "height": "28px", "z-index": "3", **_UNTOUCHED}
_WORDS = """
:host { font-size: 12px; line-height: 28px;white-space: nowrap; overflow: hidden; color: var(--soft) }
div { overflow: hidden; text-overflow: ellipsis }
h2 { font-size: 12px; margin: 0; color: var(--ink) }
"""
_BUTTON = """
:host { pointer-events: auto; margin: 3px 1px; width: 22px; height: 22px }
.bk-btn { font-size: 0; padding: 4px; width: 22px; height: 22px; border: none; background: none;
          color: var(--soft) }
.bk-btn::before { content: ""; display: block; width: 14px; height: 14px; background: currentColor;
                  mask: var(--icon) center / 14px no-repeat }
.bk-btn:hover, .bk-btn:focus-visible { background: var(--field); color: var(--ink) }
"""


_GRID = f"""
:host(.former) {{ opacity: 0.5; transition: opacity 0.2s }} /* pictures of former values */
@media (max-width: {PHONE}px) {{ :host {{ grid-template-columns: 1fr !important }} }}
"""
_ON_PHONE = f"@media (max-width: {PHONE}px) {{ :host {{ grid-area: 1 / 1 / {_ROWS + 1} / 2 !important }} }}"


@dataclass(frozen=True)
class Arrangement:
    """The order of panels in columns, those that are hidden, the one that fills the grid, the left column's width."""

    order: Mapping[Column, tuple[str, ...]] = field(default_factory=lambda: dict.fromkeys(COLUMNS, ()))
    hidden: frozenset[str] = frozenset()
    enlarged: str | None = None
    split: int = _SPLIT

    def seen(self, column: Column) -> list[str]:
        """Return the visible panels of a column."""
        return [name for name in self.order[column] if name not in self.hidden]

    def exchanged(self, name: str) -> Arrangement:
        """Return the arrangement with a panel and the next visible one exchanged."""
        seen = [each for column in COLUMNS for each in self.seen(column)]
        other = seen[(seen.index(name) + 1) % len(seen)]
        new = {name: other, other: name}
        return replace(self, order={key: tuple(new.get(each, each) for each in self.order[key]) for key in COLUMNS})

    def holding(self, views: Sequence[View]) -> Arrangement:
        """Return the arrangement with the panels of exactly these views."""
        titles, known = [each.title for each in views], {name for names in self.order.values() for name in names}
        order = {key: tuple(name for name in self.order[key] if name in titles) for key in COLUMNS}
        for each in views:
            if each.title not in known:
                order[each.where] = (*order[each.where], each.title)
        return replace(self, order=order, enlarged=self.enlarged if self.enlarged in titles else None)


class Board(Viewer):
    """Panels in a grid; `tools` bring hidden ones back. `changed` is called after each new arrangement."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.arrangement, self._changed = Arrangement(), changed
        self.views: list[View] = []
        self.cards: dict[str, Any] = {}
        self._grid = pn.Column(sizing_mode="stretch_both", margin=0, stylesheets=[_GRID])
        self._list = pn.widgets.CheckBoxGroup(label="panels", inline=True, sizing_mode="stretch_width", margin=(2, 5))
        self._list.param.watch(lambda event: self._arrange(hidden=frozenset(self.cards) - {*event.new}), "value")
        self._split = pn.widgets.IntSlider(label="width of the left column (%)", start=SPLITS[0], end=SPLITS[1])
        self._split.param.update(value=_SPLIT, sizing_mode="stretch_width", margin=(0, 10))
        self._split.param.watch(lambda event: self._arrange(split=event.new), "value")
        how: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (3, 10)}
        again = button("Arrange as at first", lambda: self.arrange(Arrangement()), **how)
        self.tools = pn.Column(heading("Panels"), self._list, self._split, again, margin=0)  # for the side bar

    def __panel__(self) -> Any:
        return self._grid

    def replace(self, views: Sequence[View]) -> None:
        """Replace all panels by those of views."""
        self.views = list(views)
        self.cards = {each.title: self._card(each) for each in views}
        self.arrangement = self.arrangement.holding(views)
        self._slots = {key: [each.share for each in views if each.where == key] for key in COLUMNS}
        self._place()
        self._grid.objects = styled(list(self.cards.values()))

    # ------------------------------------------------------------------------------------------------------ arrangement
    def arrange(self, arrangement: Arrangement) -> None:
        """Apply an arrangement: unknown panels are left out, missing ones get their default place."""
        new = arrangement.holding(self.views)
        self._arrange(order=new.order, hidden=new.hidden, enlarged=new.enlarged, split=new.split)

    def _arrange(self, **changes: Any) -> None:
        new = replace(self.arrangement, **changes)
        if new != self.arrangement:
            self.arrangement = new
            self._place()
            self._changed()

    def _place(self) -> None:
        """Apply the arrangement to the grid."""
        now = self.arrangement
        names = list(self.cards)
        self._list.param.update(options=names, value=[name for name in names if name not in now.hidden])
        self._split.value = now.split
        widths = [now.split if now.seen("left") else 0, 100 - now.split if now.seen("right") else 0]
        columns = " ".join(f"minmax(0, {width}fr)" for width in widths)
        rows = f"repeat({_ROWS}, minmax(0, 1fr))"
        self._grid.styles = {"display": "grid", "grid-template-columns": columns, "grid-template-rows": rows}
        areas = _areas(now, self._slots)
        for name, card in self.cards.items():
            shown = name in areas if now.enlarged is None else name == now.enlarged
            area = f"1 / 1 / {_ROWS + 1} / 3" if name == now.enlarged else areas.get(name, "auto")
            card.param.update(styles={"grid-area": area}, visible=shown)

    def _card(self, view: View) -> Any:
        """Return the component of a panel: its bar above its content."""
        title = view.title
        acts: dict[str, Callable[[], None]] = {
            "move": lambda: self._arrange(order=self.arrangement.exchanged(title).order),
            "enlarge": lambda: self._arrange(enlarged=None if self.arrangement.enlarged else title),
            "hide": lambda: self._arrange(hidden=self.arrangement.hidden | {title}, enlarged=None),
        }
        words = pn.pane.HTML(
            f"<h2>{in_html(title)}</h2>", stylesheets=[_WORDS], styles=_UNTOUCHED, margin=(0, 8, 0, 10)
        )
        caption = view.caption or pn.pane.HTML("")
        caption.param.update(
            sizing_mode="stretch_width", stylesheets=[_WORDS], styles=_UNTOUCHED, margin=(0, _TOOLS, 0, 0)
        )
        buttons = [_button(name, title, act) for name, act in acts.items()]
        bar = pn.Row(words, caption, *buttons, styles=_BAR, sizing_mode="stretch_width", margin=0)
        on_phone = _ON_PHONE if view is self.views[0] else NO_PHONE
        how: dict[str, Any] = {"stylesheets": [_CARD, on_phone], "css_classes": ["explorer-panel"], "margin": 3}
        return pn.Column(bar, view.panel, sizing_mode="stretch_both", **how)


def _button(name: str, title: str, act: Callable[[], None]) -> Any:
    icon = urllib.parse.quote(f"{_SVG}<path d='{_ICONS[name]}'/></svg>")
    return pn.widgets.Button(
        label=f"{name.capitalize()} {title}",
        on_click=lambda _: act(),
        stylesheets=[_BUTTON],
        styles={"--icon": f'url("data:image/svg+xml,{icon}")'},
        css_classes=[f"panel-{name}"],
    )


def _areas(arrangement: Arrangement, slots: Mapping[Column, Sequence[int]]) -> dict[str, str]:
    """Return the grid area of each visible panel."""
    found = {}
    for number, column in enumerate(COLUMNS, 1):
        shares = dict(zip(arrangement.order[column], itertools.chain(slots[column], itertools.repeat(2)), strict=False))
        seen = arrangement.seen(column)
        total, first = sum(shares[name] for name in seen), 0
        for name in seen:
            start, first = first, first + shares[name]
            found[name] = f"{1 + _ROWS * start // total} / {number} / {1 + _ROWS * first // total} / {number + 1}"
    return found
