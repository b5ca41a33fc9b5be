"""The explorer as it is laid out: what the user does goes to the state, what becomes of it to the views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import panel as pn

from daskclust.app.design import NARROW, NO_PHONE, PHONE, forget_sheets, styled
from daskclust.app.live import Live
from daskclust.app.look import DARK, LIGHT, LOOKS, Look
from daskclust.app.page.address import Address, written
from daskclust.app.selection import ChosenBox, Lasso, Range, Selection
from daskclust.app.state import State
from daskclust.app.systems import SYSTEMS, Condensed, Decision, Hierarchy
from daskclust.app.tools.comparing import Changes, Kept, KeptPicture
from daskclust.app.tools.export import Exporting, Seen
from daskclust.app.tools.suggesting import Suggesting
from daskclust.app.tools.whole import Clustering
from daskclust.app.views._scene import View
from daskclust.app.views.condensed import CondensedView
from daskclust.app.views.decision import DecisionPlot
from daskclust.app.views.dendrogram import Dendrogram
from daskclust.app.views.histogram import Histogram
from daskclust.app.views.picture import SECOND, Picture
from daskclust.app.views.table import TableView
from daskclust.app.widgets import BESIDE, Control, Keys, Player, button
from daskclust.core.data.quote import in_html

_SIDE = 260
_HALF = _SIDE // 2 - 20
_OF_GROUND: dict[type, type[DecisionPlot] | type[Dendrogram] | type[CondensedView]] = {
    Decision: DecisionPlot,
    Hierarchy: Dendrogram,
    Condensed: CondensedView,
}
_SIDE_STYLE = f":host {{ background: var(--page); border-right: 1px solid var(--edge) }} {NO_PHONE}"
_PAGE_STYLE = f"""
@media (min-width: {PHONE + 1}px) {{ :host {{ min-width: 960px !important; min-height: 560px }} }}
{NARROW}
"""
_HEAD_STYLE = """
h1 { display: inline; font-size: 17px; margin: 0 14px 0 0; color: var(--title) }
.counts { font-size: 13px } .now { color: var(--soft) }
"""
_NO_AXES = ("label", "is_seed", "nearest_higher", "is_core", "is_noisy")


class Explorer(Live):
    """The explorer of a data set: sliders on the left, pictures, table and histograms beside them."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._keys = Keys()  # type: ignore[no-untyped-call]
        self._address = Address(pn.state.location if _is_served() else None)
        look = self._address.take("look", LOOKS)
        self._chosen_look = None if look is None else LOOKS[look]  # otherwise as the browser is
        self.head.stylesheets = [_HEAD_STYLE]
        self.ignored = pn.pane.Alert("", alert_type="warning", visible=False, width=_SIDE - 20)
        self.tools = pn.Column(margin=0)  # in the side bar, below the parameters
        how: dict[str, Any] = {"scroll": "y-auto", "css_classes": ["explorer-side"], "stylesheets": [_SIDE_STYLE]}
        self.side = pn.Column(width=_SIDE, sizing_mode="stretch_height", margin=0, **how)
        paper = button("Light or dark", self._on_paper, width=110, margin=(2, 6), stylesheets=[NO_PHONE])
        clear = button("Clear selection", self.clear, width=100, margin=(2, 0), stylesheets=[NO_PHONE])
        head = pn.Row(self.head, clear, paper, sizing_mode="stretch_width", margin=0, stylesheets=[NARROW])
        main = pn.Column(
            head, self.work, self.board, sizing_mode="stretch_both", margin=0, css_classes=["explorer-main"]
        )
        main.param.update(styles={"position": "relative"}, stylesheets=[NARROW])
        self._panel = pn.Row(self.side, main, sizing_mode="stretch_width", height=720, margin=0)
        styled([self._panel])
        self._panel.styles = LIGHT.variables
        self._address.set(state)  # there is something to show from the beginning
        self._open()
        if _is_served():
            self._panel.styles |= {"height": "100vh"}
            self._panel.stylesheets = [_PAGE_STYLE]
            self._follow_browser()
            pn.state.on_session_destroyed(lambda _: self.close())
        elif pn.config.theme == "dark":
            self._use_look(DARK)

    def __panel__(self) -> Any:
        return self._panel

    # ---------------------------------------------------------------------------------------------------------- layout
    def _open(self) -> None:
        """Show the view that the address names, and report the parts of it that are not understood."""
        address, state = self._address, self.state
        self._system, axes = state.system.name, state.system.axes
        names = [name for name in state.present.columns if name not in _NO_AXES]
        self._slice = address.part("slice", state.slices, self._slice)
        self._chip = address.part("chip", state.chips, self._chip)
        self._build((address.take("x", names) or axes[0], address.take("y", names) or axes[1]))
        self.board.arrange(address.arrangement())
        slices = [name for name, each in (("slice", state.slices), ("chip", state.chips)) if each is not None]
        address.check_names([*slices, *(each.name for system in SYSTEMS for each in state.parameters_of(system))])
        self._update_address()
        if address.faults:
            words = "; ".join(address.faults)
            self.ignored.param.update(object=in_html(f"Ignored in the address: {words}."), visible=True)
        if state.present.request != state.request():  # what takes long
            pn.state.onload(self._request_update)

    def _update_address(self) -> None:
        """Write the present view to the page's address."""
        state, seen = self.state, self.state.present.request
        values = {each.name: each.written(seen.values[each.name]) for each in seen.system.parameters}
        known = {"system": seen.system.name, **values, "x": self._axes[0], "y": self._axes[1]}
        for name, slices, part in (("slice", state.slices, self._slice), ("chip", state.chips, self._chip)):
            if slices is not None:
                known[name] = "all" if part is None else slices.key(part)
        if self._chosen_look is not None:
            known["look"] = self._chosen_look.name
        arrangement = self.board.arrangement
        if self._kept is not None:  # which the address does not keep
            arrangement = replace(arrangement, hidden=arrangement.hidden - {SECOND})
        self._address.keep(known | written(arrangement))
        self.ignored.visible = bool(self._address.faults)

    def _build(self, axes: tuple[str, str] | None = None) -> None:
        state = self.state
        self._built = state.system
        known, axes = state.values, axes or state.system.axes
        self.controls = {each.name: Control(each, known, self.change) for each in state.system.parameters}
        controls = [each.panel for each in self.controls.values()]
        self.draw(axes)
        keep = button("Keep as A", lambda: self.compare(Kept(self.state.present)), width=102, margin=(3, 4))
        suggesting, self.exporting = Suggesting(state, self.set_values, self._later, keep), Exporting(state, self.seen)
        whole = [] if state.part is None else [Clustering(state, state.part, self._later).panel]
        self.tools.objects = [suggesting.panel, *whole, self.exporting.panel]
        parts = [self.ignored, *self._choices(axes), *controls, self.note, self.tools]
        self.side.objects = styled([*parts, self.board.tools, self._keys])

    def draw(self, axes: tuple[str, str]) -> None:
        """Make views, and lay them out with their content: a page that is still loading them takes no changes."""
        state, look = self.state, self._look
        self._axes = axes
        picture = Picture(state, axes, self.choose_drawn, self._request_update)
        self._pictures: list[View] = [picture]
        if kind := _OF_GROUND.get(type(state.present.ground)):
            self._pictures.append(kind(state, self.choose, self._request_update, self._on_drag))
        if second := state.system.side_axes:
            self._pictures.append(Picture(state, second, self.choose_drawn, self._request_update, is_second=True))
        others: list[View]
        if self._kept is None:
            columns = ["size", *[each for each in ("energy", "mass", "tot", "rms") if each in state.present.table][:1]]
            others = [Histogram(state, column, self.choose) for column in columns]
        else:  # what is compared has the room of histograms
            self._pictures.append(KeptPicture(self._kept, state, picture, self.choose_drawn, self._request_update))
            others = [Changes(self._kept, self.choose, lambda: self.compare(None))]
        self.views = [picture, TableView(self._on_rows), *self._pictures[1:], *others]
        self._shown, self._took, self._drawn_kept = {}, "", self._kept
        self._follow_slice()
        scene = self._scene()
        for view in self.views:
            view.dress(look)
            setting = view.setting()
            view.prepare(scene, setting)()
            self._shown[view] = self._key(view, scene, setting)
        self.board.replace(self.views)
        self._show_warning()
        self._write_header(kind="now rest")

    def _choices(self, axes: tuple[str, str]) -> list[Any]:
        """Return the widgets that choose the system, the axes and the slice."""
        state = self.state
        titles = {SYSTEMS[name].title: name for name in state.names}
        self.chooser = _choice("system", self.show_system, options=titles, value=state.system.name, **BESIDE)
        names = [name for name in state.present.columns if name not in _NO_AXES]

        def draw(_: str) -> None:
            self.draw((x.value, y.value))

        x = _choice("across", draw, options=names, value=axes[0], width=_HALF, margin=(0, 10))
        y = _choice("up", draw, options=names, value=axes[1], width=_HALF, margin=(0, 10))
        widgets = [self.chooser, pn.Row(x, y, margin=0)]
        if state.slices is not None:
            self.player = Player(state.slices, self._slice, self.show_slice)
            widgets.append(self.player.panel)
        if chips := state.chips:
            options: dict[str, Any] = {"all chips": None}
            options |= {chips.words(part): part for part in (chips.at(k, 1.0) for k in range(chips.count(1.0)))}
            self.chip_chooser = _choice("chip", self.show_chip, options=options, value=self._chip, **BESIDE)
            widgets.append(self.chip_chooser)
        return widgets

    # ----------------------------------------------------------------------------------------------------------- looks
    def _use_look(self, look: Look) -> None:
        if look is self._look:
            return
        self._look = look
        self._panel.styles = self._panel.styles | look.variables
        for view in self.views:
            view.dress(look)
        self._request_update()

    def _follow_browser(self) -> None:
        """Be light or dark as the browser prefers, when the page has loaded and when that changes."""
        info: Any = pn.state.browser_info

        def follow(*_: Any) -> None:
            self._use_look(self._chosen_look or (DARK if info.dark_mode else LIGHT))

        def begin() -> None:  # a page that is not loaded takes no styles
            follow()
            info.param.watch(follow, "dark_mode")

        if info is not None:
            pn.state.onload(begin)

    # ---------------------------------------------------------------------------------------------- what the user does
    def change(self, name: str, value: Any) -> None:
        """Change a parameter, and those that follow from it."""
        state = self.state
        self.set_values(state.system.implied(state.values, name, value))

    def _on_drag(self, name: str, value: float) -> None:
        """Set the threshold of a line that was dragged, and the choice that makes it effective."""
        parameter = self.controls[name].parameter
        self.set_values({name: parameter.short(value)} | (dict([parameter.when]) if parameter.when else {}))

    def set_values(self, values: dict[str, Any]) -> None:
        """Set values of parameters, or show why they are refused."""
        try:
            self.state.set(**values)
        except ValueError as error:
            self._show_error(error)
            self._is_refused = True
            return
        self._clear_error()
        if self.state.system.hides in values:
            self._picked = None, self.state.present
        known = self.state.values
        for control in self.controls.values():
            control.follow(known, values)
        for view in self.views:
            view.follow(known)
        self._request_update()

    def show_system(self, name: str) -> None:
        """Show the clusters of another system."""
        if name != self._system:
            self._system = name
            self._clear_error()
            self._request_update()

    def show_slice(self, part: Range | None) -> None:
        """Show one slice, or all of them."""
        self._slice = part
        self._follow_slice()
        self._request_update()

    def show_chip(self, part: Range | None) -> None:
        """Show one chip, or all of them."""
        self._chip = part
        self._request_update()

    def _go_to_chip(self, number: float) -> None:
        chips = self.state.chips
        if chips is not None:
            self.chip_chooser.value = chips.at(chips.position(number, 1.0), 1.0)

    def _follow_slice(self) -> None:
        for view in self._pictures:
            if isinstance(view, Picture):
                view.show_times(self.state.present, self.within)

    def choose_drawn(self, selection: Selection | None) -> None:
        """Choose the points within a box or a lasso, of the slice that is shown."""
        self.choose(replace(selection, within=self.within) if isinstance(selection, ChosenBox | Lasso) else selection)

    def _on_rows(self, selection: Selection | None) -> None:
        """Choose the clusters of rows, and zoom pictures to them."""
        self.choose(selection)
        if selection is None:
            return
        outcome = self.state.present
        mask = selection.mask(outcome.columns)
        for part in self.within:
            if not (mask & part.mask(outcome.columns)).any():
                first = float(outcome.columns[part.name][mask].min())
                self._go_to_chip(first) if part is self._chip else self.player.go_to(first)
        for view in self._pictures:
            if isinstance(view, Picture):
                view.zoom(outcome, mask)

    def choose(self, selection: Selection | None) -> None:
        """Choose points, or none."""
        self._picked = selection, self.state.present
        self._request_update()

    def clear(self) -> None:
        """Choose nothing, and go back to whole pictures and the first page of the table."""
        self.choose(None)
        for view in self.views:
            if isinstance(view, Picture | DecisionPlot | Dendrogram | CondensedView):
                view.canvas.zoom(view.canvas.whole)
            elif isinstance(view, TableView):
                view.panel.page = 1

    def _on_paper(self) -> None:
        self._chosen_look = LIGHT if self._look is DARK else DARK
        self._use_look(self._chosen_look)

    def compare(self, kept: Kept | None) -> None:
        """Compare further clusterings with one that was kept, or no longer."""
        self._kept = kept
        arrangement = self.board.arrangement  # the second picture makes room, and comes back
        hidden = arrangement.hidden | {SECOND} if kept is not None else arrangement.hidden - {SECOND}
        self.board.arrange(replace(arrangement, hidden=hidden))
        forget_sheets(pn.state)
        self._request_update()

    def seen(self) -> Seen:
        """Return what figures show: the axes as they are now."""
        of_plot = {each.title: each.setting()[0] for each in self._pictures if isinstance(each, DecisionPlot)}
        picture = next(each for each in self._pictures if isinstance(each, Picture))
        return Seen(picture.axes, {"picture": picture.setting()[0], **of_plot}, self.within)


def _choice(words: str, chosen: Any, **options: Any) -> Any:
    """Return a selector that calls a function with the new value."""
    widget = pn.widgets.Select(label=words, **options)
    widget.param.watch(lambda event: chosen(event.new), "value")
    return widget


def _is_served() -> bool:
    return pn.state.curdoc is not None and pn.state.curdoc.session_context is not None
