"""Texts of data, files and addresses are shown as they are: no part of them is a mark of HTML, code or a formula."""

from __future__ import annotations

import ast
import html
import json
from html.parser import HTMLParser
from keyword import iskeyword
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import panel as pn
import pytest
import xarray as xr
from cases.explorer import DATA
from cases.lanes import quick_first
from cases.texts import ADDRESS, NAME, hostile, opened_with
from hypothesis import given
from hypothesis import strategies as st
from panel.pane.markup import HTMLBasePane

from daskclust import io
from daskclust.app import layout
from daskclust.app.code import code
from daskclust.app.layout import Explorer
from daskclust.app.page.address import Address
from daskclust.app.state import State
from daskclust.app.tools.comparing import Kept
from daskclust.app.tools.export import notebook
from daskclust.core.data.quote import argument, in_html, in_sheet, printable

OURS = {"h1", "h2", "b", "br", "span", "progress", "div", "p"}  # marks that the explorer writes


class _Marks(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.shown = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs if name.startswith("on"))}

    def handle_data(self, data: str) -> None:
        self.shown += data


@given(st.text())
def test_html_shows_a_text_as_it_is(text: str) -> None:
    marks = _Marks(in_html(text))
    assert not marks.found
    assert html.unescape(in_html(text)) == text
    assert not set("<>\"'[\\`*") & set(in_html(text))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers())
def test_an_argument_of_any_name_is_one_argument(name: str, value: int) -> None:
    call = ast.parse(f"f({argument(name, value)})", mode="eval").body if not iskeyword(name) else None
    if call is not None:
        assert isinstance(call, ast.Call)
        (keyword,) = call.keywords
        names = [keyword.arg] if keyword.arg else [ast.literal_eval(key) for key in keyword.value.keys]
        assert names == [name] or name.isidentifier()  # which Python writes in one form of Unicode


@given(st.text())
def test_a_spreadsheet_computes_no_text(text: str) -> None:
    assert in_sheet(text)[:1] not in ("=", "+", "-", "@")
    assert in_sheet(text).removeprefix("'") == text.removeprefix("'")


@given(st.text())
def test_a_terminal_obeys_no_text(text: str) -> None:
    shown = printable(text)
    assert all(each.isprintable() or each.isspace() for each in shown)
    assert not set(shown) & {chr(k) for k in (*range(9), *range(11, 32), *range(127, 160))}
    assert shown == text or not text.isprintable()


# --------------------------------------------------------------------------------------------------------- the explorer
def texts(explorer: Explorer) -> list[str]:
    """Return all that the page takes for HTML: panes, and titles of tables."""
    parts = [part for whole in (explorer.__panel__(), explorer.side) for part in whole.select()]
    found = [str(part.object) for part in parts if isinstance(part, HTMLBasePane)]
    tables = [part for part in parts if isinstance(part, pn.widgets.Tabulator)]
    return found + [title for table in tables for title in table.titles.values()]


@pytest.mark.parametrize("name", quick_first(["hca", *(each for each in DATA if each != "hca")], 2))
def test_no_mark_on_the_page_is_of_the_data(name: str, monkeypatch: Any) -> None:
    """Nor of the address, of an error, or of what is compared; the data's text is there, as it is."""
    search = opened_with(ADDRESS)
    monkeypatch.setattr(layout, "Address", lambda _: Address(SimpleNamespace(search=search)))
    state = State(hostile(name), name)
    explorer = Explorer(state)
    found = texts(explorer)
    explorer.latest.fail(ValueError(NAME))
    found += texts(explorer)
    explorer.compare(Kept(state.present))
    found += texts(explorer)
    assert set().union(*(_Marks(text).found for text in found)) <= OURS
    shown = [_Marks(text).shown for text in found]
    expected = [NAME, f"{NAME}0_rms"] if name == "hca" else [NAME]
    if name != "events":  # which asks for its windows at once: who sees no page is told nothing
        expected += ["Ignored in the address: look must be one of ", "; system must be one of "]
    for text in expected:
        assert any(text in each for each in shown), text


@pytest.mark.parametrize("name", quick_first(["hca", *(each for each in DATA if each != "hca")], 2))
def test_names_in_python_lines_are_no_code(name: str) -> None:
    """Nor in the notebook: of dimensions, which are names of arguments, and of columns."""
    ds = hostile(name)
    dims = {dim: f"x=print(1) or {dim}" for dim in ds.dims if dim != "channel"}
    state = State(ds.rename_dims(dims), name)
    explorer = Explorer(state)
    x = state.present.columns[state.system.axes[0]]
    explorer.choose(layout.ChosenBox(state.system.axes, (float(x.min()), float(np.median(x))), (-1e9, 1e9)))
    book = json.loads(notebook(state, explorer.seen()))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    for text in (code(state), *cells):
        called = {
            node.func.id
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and hasattr(node.func, "id")
        }
        assert "print" not in called


# --------------------------------------------------------------------------------------------------------------- tables
@pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
def test_names_that_begin_a_formula_are_read_back_from_csv(begin: str, tmp_path: Path) -> None:
    name = f"{begin}HYPERLINK(1)"
    ds = xr.Dataset({"x": ("hit", [-1.5, 2.0]), "y": ("hit", [0.0, 1.0]), name: ("hit", [-3.0, 4.0])})
    io.write_hits(ds, tmp_path / "hits.csv")
    lines = (tmp_path / "hits.csv").read_text().splitlines()
    assert lines == [f"x,y,'{name}", "-1.5,0.0,-3.0", "2.0,1.0,4.0"]  # numbers are numbers
    assert io.read_hits(tmp_path / "hits.csv")[name].values.tolist() == [-3.0, 4.0]
    cells = xr.Dataset({"X": (("cell", "channel"), [[1.0, 2.0], [3.0, 4.0]])}, {"channel": [name, "b"]})
    explorer_table = Explorer(State(cells, "hca")).exporting.table("csv").decode()
    heads = explorer_table.splitlines()[0].split(",")
    assert f"'{name}" in heads
    assert not [head for head in heads if head.startswith(("=", "+", "-", "@"))]
    io.write_cells(cells, tmp_path / "cells.csv")
    assert (tmp_path / "cells.csv").read_text().splitlines()[0] == f"'{name},b"
    assert io.read_cells(tmp_path / "cells.csv")["channel"].values.tolist() == [name, "b"]
