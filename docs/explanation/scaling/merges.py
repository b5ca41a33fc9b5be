"""The merge of many chunks, on one worker and in a tree: what its largest step holds, and its longest way."""

import time

import dask
import numpy as np
from dask.callbacks import Callback
from points import IN_TREES, fitted

from daskclust.core.merge.steps import WIDTH

_NEVER = 2**62  # chunks: one step merges all


class _Watched(Callback):
    """Notes for each step of a merge what it is given, and the seconds of the longest way to its end."""

    def __init__(self):
        super().__init__(pretask=self._before, posttask=self._after)
        self._begin, self._sizes = 0.0, {}
        self.given, self.seconds, self.way = {}, {}, {}

    def _before(self, key, dsk, state):
        self._begin = time.perf_counter()

    def _after(self, key, value, dsk, state, worker):
        seconds = time.perf_counter() - self._begin
        self._sizes[key] = size_of(value)
        if "-merge" not in str(key[0] if isinstance(key, tuple) else key):
            return
        needed = state["dependencies"][key]
        self.given[key] = sum(self._sizes[each] for each in needed)
        self.seconds[key] = seconds
        self.way[key] = seconds + max((self.way.get(each, 0.0) for each in needed), default=0.0)


def run_merges(cases, amounts, *, width=WIDTH, say=lambda _: None):
    """Merge points in random order, all in this process, by one step and in a tree of `width` at a time.

    `amounts` are pairs of points and chunks. Returns for each case and pair, ``one`` and ``tree``: ``steps``,
    ``most_bytes`` that one step is given, ``all_s`` of all steps, and ``longest_s``, the longest way through them,
    which many workers cannot shorten.
    """
    rows = []
    for case in (each for each in cases if each in IN_TREES):
        for points, count in amounts:
            say(f"{case}: {points:,} points in {count} chunks, merged by one step and in a tree")
            one, tree = (_merged(case, points, points // count, most) for most in (_NEVER, width))
            rows.append({"system": case, "points": points, "chunks": count, "width": width, "one": one, "tree": tree})
    return rows


def _merged(case, points, block, width):
    settings = {"daskclust.task-seconds": 0, "daskclust.merge-width": width, "scheduler": "synchronous"}
    with dask.config.set({**settings, "optimization.fuse.active": False}):
        labels, *_ = fitted(case, points, block)
        with _Watched() as watched:
            labels.map_blocks(lambda block: np.empty(len(block), bool), dtype=bool).compute()
    return {
        "steps": len(watched.seconds),
        "most_bytes": max(watched.given.values()),
        "all_s": sum(watched.seconds.values()),
        "longest_s": max(watched.way.values()),
    }


def size_of(value):
    """Return the bytes of arrays and numbers in a result, and in tuples and lists of it."""
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 8 if isinstance(value, int | np.integer) else 0))
