"""The table of pixel clusters of hits in memory, on the CPU or a CUDA device. Formulas are in `kernels`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.threads import in_threads, thread_count
from daskclust.properties.kernels import chains as chain_kernels
from daskclust.properties.kernels.clusters import Columns, Hits, Totals

from ._columns import explain, on_device
from ._summary import row_count

OPTIONAL = ("energy", "chip", "tof")
CHECKED = ("toa", "tot", "energy"), ("tot", "energy")  # finite, and not negative
BLOCK = 4096  # hits of which the range of labels is known
_CUDA_BLOCK = 256  # there each block is one thread's
_PIECE = 1 << 15  # hits and rows of a piece, about: both fit the second-level cache

# Columns are float32 where nothing else is said. Centroids and axes are good to 1e-4 of a pixel then, and writing fresh
# memory is half the time of a table of small clusters.
FLOATS = ("tot", "energy", "toa", "toa_last", "tof")
_TYPES: dict[str, Any] = {"size": np.int64, "seed": np.int64, **dict.fromkeys(FLOATS, np.float64)}


class Pieces(NamedTuple):
    """Rows of the table in pieces, about the size of a cache, and where the hits of each may be."""

    first: Any  # int64, (pieces + 1,): first row of each piece, and the number of rows
    first_block: Any  # int64, (pieces,): its hits are from this block on,
    end_block: Any  # and before this one


class HitBlocks(NamedTuple):
    """What is known of every `width` hits: arrays of shape (blocks,)."""

    width: int
    lowest: Any  # int64: range of the cluster numbers
    highest: Any
    noise_size: Any  # int64
    noise_weight: Any  # float64


def hits_of(device: Host | Cuda, arrays: Mapping[str, Any]) -> Hits:
    """Return the columns of hits; one that is not there is empty."""
    empty = {name: device.empty(0, np.uint8 if name == "chip" else np.float64) for name in OPTIONAL}
    return Hits(**{name: arrays.get(name, empty.get(name)) for name in Hits._fields})


def tabulate(device: Host | Cuda, arrays: Mapping[str, Any], by: int, n_clusters: int | None) -> dict[str, Any]:
    """Return the columns of the table of hits in memory."""
    ready = on_device(device, arrays)
    hits, labels, n = hits_of(device, ready), ready["labels"], len(arrays["labels"])
    bad = device.full(1, 0, np.int64)
    blocks = survey(device, labels, hits, by, bad)
    rows = row_count(int(device.to_host(blocks.highest).max(initial=-1)), n, n_clusters)
    columns = empty_columns(device, hits, rows, tuple(arrays))
    if device is HOST:
        pieces = divided(rows, n, blocks)
        span, following = int(np.diff(pieces.first).max()), HOST.scratch("pixel chains", n, np.int32)

        def tabulate_some(begin: int, end: int) -> None:
            head = HOST.scratch("pixel heads", span, np.int32)  # this thread's, as are the numbers of axes
            room = tuple(HOST.scratch(f"pixel axes {k}", span, np.float64) for k in range(3))
            chain_kernels.tabulate_piece.run(
                end - begin, begin, pieces, labels, blocks, head, room, following, hits, by, columns, bad,
                grain=end - begin + 1,
            )  # fmt: skip

        many, threads = len(pieces.first_block), thread_count()
        tasks = 1 if threads == 1 else min(many, 8 * threads)
        in_threads(lambda k: tabulate_some(many * k // tasks, many * (k + 1) // tasks), tasks, threads)
    else:
        ends, order, following = _chain_on_cuda(device, labels, rows)
        device.run(chain_kernels.tabulate_row, rows, ends, order, following, hits, by, columns, bad)
    if device.to_host(bad)[0]:
        explain(arrays, 0, *CHECKED)
    result = {name: column for name, column in columns._asdict().items() if is_there(name, arrays)}
    size, total = device.to_host(blocks.noise_size).sum(), np.sum(device.to_host(blocks.noise_weight))
    return result | {"noise_size": size, "noise_weight": total}


def is_there(name: str, has: Collection[str]) -> bool:
    """Return whether the table has a column."""
    return name not in OPTIONAL or name in has


def survey(device: Host | Cuda, labels: Any, hits: Hits, by: int, bad: Any) -> HitBlocks:
    """Return, of each block, the lowest and highest cluster number, and the size and weight of its noise."""
    width = BLOCK if device is HOST else _CUDA_BLOCK
    blocks = -(-len(labels) // width)
    found = [device.empty(blocks, dtype) for dtype in (np.int64, np.int64, np.int64, np.float64)]
    device.run(chain_kernels.survey_labels, blocks, width, labels, hits, by, *found, bad, grain=32)
    return HitBlocks(width, *found)


def empty_columns(device: Host | Cuda, like: Hits | Totals, rows: int, has: Collection[str]) -> Columns:
    """Return columns to be filled, in the types of the table."""
    if isinstance(like, Hits):
        pixel_x, pixel_y, tot = like.x.dtype, like.y.dtype, like.tot.dtype
    else:
        pixel_x, pixel_y, tot = like.x_seed.dtype, like.y_seed.dtype, like.tot_max.dtype
    types = _TYPES | dict.fromkeys(("x_min", "x_max", "x_seed"), pixel_x) | {"tot_max": tot, "chip": like.chip.dtype}
    types |= dict.fromkeys(("y_min", "y_max", "y_seed"), pixel_y)
    columns = {
        name: device.empty(rows if is_there(name, has) else 0, types.get(name, np.float32)) for name in Columns._fields
    }
    return Columns(**columns)


def divided(rows: int, n: int, blocks: HitBlocks) -> Pieces:
    """Return rows in pieces, and the blocks in which the hits of each may be; O(blocks log(pieces)).

    Pieces fit the cache, and hits in time order have the clusters of a piece in few blocks. Where labels are in no
    order every piece has to look at all hits, so there are as many pieces as threads. Before a piece's first block all
    labels are lower, from its end on all are higher: both are found in running extremes, which are in order.
    """
    number = max(1, n // _PIECE, rows // _PIECE)
    first = np.arange(number + 1) * rows // number
    met = np.searchsorted(first[:-1], blocks.highest, "right") - np.searchsorted(first[1:], blocks.lowest, "right")
    if met.clip(min=0).sum() > 2 * (len(met) + number):
        first = np.arange(max(1, min(thread_count(), rows)) + 1)
        first = first * rows // first[-1]
    highest_before = np.maximum.accumulate(blocks.highest)
    lowest_after = np.minimum.accumulate(blocks.lowest[::-1])[::-1]
    return Pieces(first, np.searchsorted(highest_before, first[:-1]), np.searchsorted(lowest_after, first[1:]))


def _chain_on_cuda(device: Host | Cuda, labels: Any, rows: int) -> tuple[Any, Any, Any]:
    """Return where each cluster's hits begin among those in order, the order, and the hit that follows each."""
    n = len(labels)
    first = device.scratch("pixel first", rows + 1, np.int32)
    cursor = device.scratch("pixel cursor", rows + 1, np.int32)
    slots, order, following = (device.scratch(f"pixel {name}", n, np.int32) for name in ("slots", "order", "following"))
    device.run(fill, rows + 1, first, np.int32(0))
    device.run(chain_kernels.count_hits, n, labels, first)
    device.running_sum(first, cursor)
    device.running_sum(first, first)
    device.run(chain_kernels.take_slot, n, labels, cursor, slots)
    inside = int(device.to_host(first)[-1])
    device.run(chain_kernels.order_slots, inside, slots, labels, first, order)
    device.run(chain_kernels.chain_hit, inside, order, labels, first, following)
    return first, order, following
