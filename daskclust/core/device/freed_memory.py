"""How much of the memory that is freed a process keeps: parameters of glibc's malloc, see mallopt(3)."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 32 << 20  # bytes of an array that goes back at once: the most that can be asked for


def keep_freed(most: int = -1, *, one_arena: bool = False) -> None:
    """Keep up to so many bytes for the next arrays, all by default: to clear new pages takes longer than much else."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_TRIM_THRESHOLD, most)
        mallopt(_MMAP_THRESHOLD, _LARGE)
        if one_arena:
            mallopt(_ARENA_MAX, 1)
