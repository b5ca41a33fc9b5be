"""How widgets look: compact, in the colours of `daskclust.app.look`, which are variables of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import panel as pn
from panel.theme.base import Inherit
from panel.theme.native import Native
from panel.viewable import Viewable

PHONE = 700  # pixels: a narrower page shows the picture alone
NO_PHONE = f"@media (max-width: {PHONE}px) {{ :host {{ display: none !important }} }}"
NARROW = f"@media (max-width: {PHONE}px) {{ :host {{ min-width: 0 !important; overflow: hidden }} }}"
_ALL = ":host { font-size: 12px } :focus-visible { outline: 2px solid var(--title); outline-offset: 1px }"
_WIDGET = """
label, .bk-slider-title { font-size: 11px; color: var(--soft) }
.bk-input { height: 26px; min-height: 26px; padding: 2px 6px; font-size: 12px; border-radius: 4px; color: var(--ink);
            border: 1px solid var(--edge); background-color: var(--field) }
select.bk-input { appearance: auto !important; background-image: none !important; padding-right: 2px }
.bk-spin-btn-up, .bk-spin-btn-down { display: none !important }
.bk-input-group.bk-inline { flex-wrap: wrap }
:host(.beside) .bk-input-group { display: grid; grid-template-columns: 72px 1fr; align-items: center }
"""
_BUTTON = """
.bk-btn { font-size: 12px; line-height: 18px; padding: 3px 4px; border-radius: 4px; color: var(--ink);
          border: 1px solid var(--edge); background-color: var(--field) }
.bk-btn:hover { border-color: var(--soft) }
.bk-btn a { display: block; padding: 3px 4px !important; line-height: 18px }
"""
_SLIDER = """
.noUi-target { height: 4px; border: none; box-shadow: none; border-radius: 2px; background: var(--edge) }
.noUi-connect { background: var(--title) !important }
.noUi-horizontal .noUi-handle { width: 14px; height: 14px; right: -7px; top: -5px; border-radius: 7px; box-shadow: none;
                                border: 2px solid var(--title); background: var(--page) }
.noUi-handle::before, .noUi-handle::after { display: none }
"""
_PLAYER = """
button { color: var(--ink); background: var(--field); border: 1px solid var(--edge); border-radius: 4px }
input[type=range] { accent-color: var(--title) }
"""
_TABLE = """ /* the theme of the table comes later, with colours of its own */
.tabulator { font-size: 12px !important; border: none; background-color: var(--page); color: var(--ink) }
.tabulator .tabulator-header, .tabulator .tabulator-header .tabulator-col, .tabulator .tabulator-footer,
.tabulator .tabulator-row, .tabulator .tabulator-row.tabulator-row-even, .tabulator .tabulator-tableholder,
.tabulator .tabulator-tableholder .tabulator-table
    { background-color: var(--page) !important; color: var(--ink) !important; border-color: var(--edge) !important }
.tabulator .tabulator-tableholder
    { overflow-x: scroll; scrollbar-width: thin; scrollbar-color: var(--soft) var(--page) }
.tabulator .tabulator-row .tabulator-cell { border-color: var(--edge); padding: 2px 6px; height: 22px }
.tabulator .tabulator-header .tabulator-col .tabulator-col-content { padding: 2px 6px }
.tabulator .tabulator-row.tabulator-selectable:hover, .tabulator .tabulator-row.tabulator-selected,
.tabulator .tabulator-footer .tabulator-page
    { background-color: var(--field) !important; color: var(--ink) !important; border-color: var(--edge) !important }
.tabulator .tabulator-footer .tabulator-page.active { color: var(--title) !important }
"""


def forget_sheets(state: Any) -> None:
    """Make Panel send its style sheets again: it may take some as sent that never were."""
    if state.curdoc is not None:
        getattr(state, "_stylesheets", {}).pop(state.curdoc, None)


def styled(objects: Sequence[Any]) -> list[Any]:
    """Apply the compact theme to components and all their children, which Panel does not do."""
    for each in objects:
        whole: Any = pn.panel(each)
        for part in whole.select():
            if isinstance(part, Viewable) and not isinstance(part, pn.pane.Bokeh):  # which would hand it to its figure
                part.design = Compact
    return [*objects]


class Compact(Native):  # type: ignore[misc,unused-ignore]
    """Panel's native design, smaller, in colours that are CSS variables of the page."""

    modifiers: ClassVar[dict[Any, dict[str, Any]]] = {
        Viewable: {"stylesheets": [Inherit, _ALL]},
        pn.widgets.Widget: {"stylesheets": [Inherit, _WIDGET]},
        pn.widgets.Button: {"stylesheets": [Inherit, _BUTTON]},
        pn.widgets.FileDownload: {"stylesheets": [Inherit, _BUTTON]},
        pn.widgets.FloatSlider: {"stylesheets": [Inherit, _SLIDER]},
        pn.widgets.IntSlider: {"stylesheets": [Inherit, _SLIDER]},
        pn.widgets.Player: {"stylesheets": [Inherit, _PLAYER]},
        pn.widgets.Tabulator: {"stylesheets": [Inherit, _TABLE]},
    }
