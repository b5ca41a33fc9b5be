"""What benchmarks share beside their timing: kinds of points, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def check_kinds(kinds: Sequence[str], known: Sequence[str]) -> None:
    """Refuse kinds of points that a benchmark does not have."""
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise ValueError(f"kinds of points are {', '.join(known)}, got {unknown[0]!r}")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, words: int = 1) -> str:
    """Return a table in Markdown: so many columns of words, then numbers, which are aligned to the right."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *rows))


def floor_columns(runs: Sequence[dict[str, Any]]) -> dict[str, Callable[[dict[str, Any]], str]]:
    """Return the columns of a table that tell of floors, and what they say of a run; none for runs without."""
    if not all("floor_ms" in run for run in runs):
        return {}
    return {
        "floor (ms)": lambda run: f"{run['floor_ms']:.3g}",
        "of roofline": lambda run: f"{run['of_roofline']:.2%}",
    }
