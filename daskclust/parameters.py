"""Parameters as numpydoc describes them: ``ds.clust`` and the terminal have those of estimators from here."""

from __future__ import annotations

import inspect
import re


def described(docstring: str) -> dict[str, tuple[str, str]]:
    """Return of each parameter in a docstring, by name, its kind, such as ``int, default 2``, and its indented text."""
    section = inspect.cleandoc(docstring).partition("\nParameters\n----------\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^(\w+) : (.+)((?:\n    .+)+)", section, flags=re.MULTILINE)
    return {name: (kind, text.strip("\n")) for name, kind, text in entries}
