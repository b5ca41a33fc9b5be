"""Options that are parameters of an estimator: their types, defaults, choices and words are those of its docstring.

The docstring is read from the source: an import of the estimator, and so of NumPy, would make help and completion slow.
"""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import suppress
from importlib import resources
from typing import Annotated, Any, Literal

import typer

from daskclust.parameters import described

_TYPES = {"float": float, "int": int, "bool": bool}


class ParametersOf:
    """Makes options of a command's argument: ``Annotated[dict[str, Any], ParametersOf("clue:CLUE", "dc", ...)]``.

    Those in `required` have a default in Python, and none in the terminal.
    """

    def __init__(self, estimator: str, *names: str, required: tuple[str, ...] = ()) -> None:
        module, name = estimator.split(":")
        source = resources.files("daskclust").joinpath(module, "estimator.py").read_text(encoding="utf-8")
        docstring = source.partition(f"\nclass {name}(")[2].split('"""')[1]
        entries = described(docstring).items()
        known = {name: _option(name, kind, " ".join(words.split()), required) for name, (kind, words) in entries}
        self.options = {name: known[name] for name in names}


def _option(name: str, kind: str, words: str, required: tuple[str, ...]) -> inspect.Parameter:
    """Return the option for a parameter that numpydoc describes as ``name : kind`` and, below it, `words`."""
    kind, _, default_words = kind.partition(", default ")
    words = words.replace("`", "")
    help = re.split(r"[.:;] ", words.rstrip("."), maxsplit=1)[0]
    how: dict[str, Any] = {}
    type_: Any = _TYPES.get(kind.removesuffix(", optional"))
    if kind.startswith("{"):
        choices = ast.literal_eval(kind[: kind.index("}") + 1].replace("{", "[").replace("}", "]"))
        type_ = Literal[tuple(choices)]
        if isinstance(choices[0], int):  # typer knows choices of texts alone
            type_, help = int, f"{help}: {', '.join(map(str, choices))}"
    elif type_ is None:  # a number, or a name
        type_, how["parser"] = str, number_or_text
        how["metavar"] = "N|NAME" if "str" in kind else "N"
    default: Any = ast.literal_eval(default_words) if default_words else None
    if name in required or not (default_words or kind.endswith(", optional")):
        default = inspect.Parameter.empty
    elif default is None:
        how["show_default"] = words.rpartition("Default: ")[2].rstrip(".").replace("_", "-")
        type_ |= None
    names = [f"--{name.replace('_', '-')}"] if type_ is bool else []
    option = typer.Option(*names, help=f"{help}.", rich_help_panel="Clustering", **how)
    kinds = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kinds, default=default, annotation=Annotated[type_, option])


def number_or_text(text: str) -> int | float | str:
    """Return the number that a text is, whole or not, or the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
