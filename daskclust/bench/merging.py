"""The merge of many chunks, on one worker and on all: what its largest step holds, and the longest way through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dask.callbacks import Callback

from daskclust.bench._report import table
from daskclust.bench._scaling_data import IN_TREES, fitted
from daskclust.core.run.merging import WIDTH

_NEVER = 2**62  # chunks: one step merges all


class _Watched(Callback):
    """Notes for each step of a merge what it is given, and the seconds of the longest way to its end."""

    def __init__(self) -> None:
        super().__init__(pretask=self._before, posttask=self._after)  # type: ignore[no-untyped-call]
        self._begin = 0.0
        self._sizes: dict[Any, int] = {}
        self.given: dict[Any, int] = {}
        self.seconds: dict[Any, float] = {}
        self.way: dict[Any, float] = {}

    def _before(self, key: Any, dsk: Any, state: Any) -> None:
        self._begin = time.perf_counter()

    def _after(self, key: Any, value: Any, dsk: Any, state: Any, worker: Any) -> None:
        seconds = time.perf_counter() - self._begin
        self._sizes[key] = size_of(value)
        if "-merge" not in str(key[0] if isinstance(key, tuple) else key):
            return
        needed = state["dependencies"][key]
        self.given[key] = sum(self._sizes[each] for each in needed)
        self.seconds[key] = seconds
        self.way[key] = seconds + max((self.way.get(each, 0.0) for each in needed), default=0.0)


def bench_merges(
    systems: Sequence[str],
    cases: Sequence[tuple[int, int]],
    *,
    width: int = WIDTH,
    say: Callable[[str], object] = lambda _: None,
) -> list[dict[str, Any]]:
    """Merge points in random order in many chunks, by one step and in a tree, and note what it takes.

    All is computed in this process, one step after another.

    Parameters
    ----------
    systems : sequence of str
        Those among them are run whose frontiers are fragments: CLUE, friends-of-friends, DBSCAN.
    cases : sequence of (int, int)
        Numbers of points, and of chunks.
    width : int, default 64
        Chunks, or nodes of the tree, that one step merges.
    say : callable
        Is given a line before each run.

    Returns
    -------
    list of dict
        For each system and number of chunks ``system``, ``points``, ``chunks`` and ``width``; ``one`` and ``tree`` with
        ``steps``, ``most_bytes`` that one step is given, ``all_s`` of all steps, and ``longest_s``, the longest way
        through them, which many workers cannot shorten.
    """
    rows = []
    for system in (each for each in systems if each in IN_TREES):
        for points, count in cases:
            say(f"{system}: {points:,} points in {count} chunks, merged by one step and in a tree")
            one, tree = (_merged(system, points, points // count, most) for most in (_NEVER, width))
            rows.append({"system": system, "points": points, "chunks": count, "width": width, "one": one, "tree": tree})
    return rows


def _merged(system: str, points: int, block: int, width: int) -> dict[str, float]:
    """Return what a merge takes."""
    import dask

    settings = {"daskclust.task-seconds": 0, "daskclust.merge-width": width, "scheduler": "synchronous"}
    with dask.config.set({**settings, "optimization.fuse.active": False}):
        labels, *_ = fitted(system, points, block)
        with _Watched() as watched:
            labels.map_blocks(_nothing, dtype=bool).compute()
    return {
        "steps": len(watched.seconds),
        "most_bytes": max(watched.given.values()),
        "all_s": sum(watched.seconds.values()),
        "longest_s": max(watched.way.values()),
    }


def _nothing(block: Any) -> Any:
    return np.empty(len(block), bool)


def size_of(value: Any) -> int:
    """Return the bytes of arrays and numbers in a result, and in tuples and lists of it."""
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 8 if isinstance(value, int | np.integer) else 0))


def merges_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return what merges take as a Markdown table."""
    head = ["system", "points", "chunks", "merge", "steps", "most in one (B)", "all (ms)", "longest way (ms)"]
    cells = [
        [row["system"], f"{row['points']:,}", row["chunks"], kind, f"{found['steps']:,}", f"{found['most_bytes']:,}"]
        + [f"{1e3 * found[name]:.1f}" for name in ("all_s", "longest_s")]
        for row in rows
        for kind, found in (("on one worker", row["one"]), ("in a tree", row["tree"]))
    ]
    return table(head, cells, words=1)
