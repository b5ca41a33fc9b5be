"""Each block of the gallery runs by itself, and is a picture that both backends draw."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import holoviews as hv
import pytest
from cases.elements import save_all

from daskclust import plot

PAGE = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1:]  # after hv.extension
LONGEST = 8  # lines


def shown(block: str) -> Any:
    """Return what the last line of a block shows, which runs among its own names alone."""
    names: dict[str, Any] = {}
    *lines, last = ast.parse(block).body
    exec(compile(ast.Module(lines, []), "<gallery>", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "<gallery>", "eval"), names)


def test_everything_is_in_the_gallery() -> None:
    assert {name for block in BLOCKS for name in re.findall(r"\bplot\.(\w+)", block)} == set(plot.__all__)


def test_blocks_are_short() -> None:
    assert max(len(block.strip().splitlines()) for block in BLOCKS[:-1]) <= LONGEST


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[-1] for block in BLOCKS])
def test_blocks(block: str, tmp_path: Path) -> None:
    picture = shown(block)
    if picture is None:
        assert "plot.save" in block
        return
    assert isinstance(picture, hv.core.Dimensioned)
    save_all([picture], tmp_path)
