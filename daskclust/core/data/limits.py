"""What is asked of a file before the work: an absurd one would take minutes, or all memory, before an error."""

from __future__ import annotations

import math
import resource

MOST_COLUMNS, LONGEST_LINE = 10_000, 1 << 22  # characters
_SMALL = 1 << 28  # bytes that nobody is asked for


def check_columns(count: int, source: str) -> None:
    """Refuse a table that has too many columns for one of points."""
    if count > MOST_COLUMNS:
        raise ValueError(
            f"{source} has {count} columns, and at most {MOST_COLUMNS} are read; write those that are needed to a file"
        )


def check_memory(size: int, source: str) -> None:
    """Refuse to read numbers that have so many bytes once they are unpacked, where memory has no room for them."""
    if size > _SMALL and 2 * size > (free := free_memory()):  # twice, as no work can do without a copy
        raise MemoryError(
            f"the numbers of {source} take {size / 2**30:.3g} GiB unpacked, and to work with them twice as much, and "
            f"{free / 2**30:.3g} GiB are free; choose fewer columns, or write fewer points to a file"
        )


def free_memory() -> float:
    """Return the bytes of memory that this process may still take."""
    import psutil
    from distributed.system import MEMORY_LIMIT

    most, _ = resource.getrlimit(resource.RLIMIT_AS)  # of `ulimit -v`
    left = math.inf if most == resource.RLIM_INFINITY else most - psutil.Process().memory_info().vms
    return float(min(psutil.virtual_memory().available, MEMORY_LIMIT, left))
