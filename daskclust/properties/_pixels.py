"""The table of pixel clusters, in memory, on the CPU or a CUDA device, and in chunks. Formulas are in `kernels`."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import doubles
from daskclust.core.device.arrays import HOST, Cuda, Host, fill, to_host
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.core.merge.labels import NOISE
from daskclust.properties.kernels import chains as chain_kernels
from daskclust.properties.kernels.chains import total_piece
from daskclust.properties.kernels.clusters import BY_ENERGY, BY_NOTHING, BY_TOT, Hits, Totals, finish_row
from daskclust.properties.kernels.clusters import Columns as RowColumns

from . import _lazy
from ._columns import checked, explain, label_values, on_device, pixels, table_of, variable
from ._groups import group_columns
from ._summary import Columns, Groups, Summary, TableSteps, numbered, row_count

if TYPE_CHECKING:
    import xarray as xr

_NEEDED = ("x", "y", "toa")
_OPTIONAL = ("energy", "chip", "tof")
_CHECKED = ("toa", "tot", "energy"), ("tot", "energy")  # finite, and not negative
_WEIGHTS: dict[str | None, int] = {None: BY_NOTHING, "tot": BY_TOT, "energy": BY_ENERGY}
_KINDS = {"x": pixels, "y": pixels, "chip": pixels, "toa": doubles, "tof": doubles}

# Of which variable a column has its units.
_SOURCES = {
    "toa": "toa", "toa_last": "toa", "tof": "tof", "tot": "tot", "tot_max": "tot", "energy": "energy", "chip": "chip",
    "x": "x", "x_plain": "x", "x_min": "x", "x_max": "x", "x_seed": "x", "length": "x", "width": "x",
    "y": "y", "y_plain": "y", "y_min": "y", "y_max": "y", "y_seed": "y",
}  # fmt: skip

_OPERATIONS = dict.fromkeys(("x_min", "y_min"), np.minimum) | dict.fromkeys(("x_max", "y_max", "toa_last"), np.maximum)
_OF_FIRST_HIT, _OF_SEED = ("toa", "tof", "chip"), ("seed", "tot_max", "x_seed", "y_seed")

_BLOCK = 4096  # hits of which the range of labels is known
_CUDA_BLOCK = 256  # there each block is one thread's
_PIECE = 1 << 15  # hits and rows of a piece, about: both fit the second-level cache

# Columns are float32 where nothing else is said. Centroids and axes are good to 1e-4 of a pixel then, and writing fresh
# memory is half the time of a table of small clusters.
_FLOATS = ("tot", "energy", "toa", "toa_last", "tof")
_TYPES: dict[str, Any] = {"size": np.int64, "seed": np.int64, **dict.fromkeys(_FLOATS, np.float64)}


def are_pixels(ds: xr.Dataset) -> bool:
    """Return whether a data set is Timepix hits."""
    return ds.attrs.get("field") == "timepix" or all(name in ds for name in (*_NEEDED, "tot"))


def pixel_table(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike,
    weight: str | EllipsisType | None,
    coords: Sequence[str] | None,
    n_clusters: int | None,
) -> xr.Dataset:
    """Return the table of pixel clusters: `cluster_table` of a Timepix data set."""
    if coords is not None:
        raise ValueError(f"coords={coords!r}: positions of pixels are x and y; leave it out, or drop tot for points")
    if isinstance(weight, EllipsisType):
        weight = next((name for name in ("energy", "tot") if name in ds), None)
    if weight not in tuple(_WEIGHTS):
        raise ValueError(f"weight of pixels must be 'tot', 'energy' or None, got {weight!r}")
    if weight is not None:
        variable(ds, weight, "weight")
    missing = [name for name in _NEEDED if name not in ds]
    is_untimed = missing == ["toa"] and "frame" in ds  # a frame is the time of its hits, then
    if missing and not is_untimed:
        raise ValueError(f"the Timepix data set has no {', '.join(missing)}; it has {', '.join(map(str, ds))}")
    given = {name: ds[name].data for name in (*_NEEDED, "tot", *_OPTIONAL) if name in ds}
    given |= {"toa": ds["frame"].data} if is_untimed else {}
    tot = given["tot"] if "tot" in given else np.zeros_like(ds["x"].data, np.float32)
    arrays = checked({"labels": label_values(ds, labels), **given, "tot": tot}, ds["x"].shape, _KINDS)
    arrays, n_clusters = _lazy.counted(arrays, n_clusters)
    by = _WEIGHTS[weight]
    steps = TableSteps(
        functools.partial(summarise, by=by),
        merge,
        functools.partial(finish, by=by, has=tuple(arrays)),
        zero=("size", "tot", "energy"),
        one_chunk=functools.partial(tabulate, by=by),
        own_rows=functools.partial(own_rows, by=by),
    )
    columns = _lazy.columns(arrays, steps, n_clusters)
    if "tot" not in given:
        del columns["tot"], columns["tot_max"]
    if is_untimed:
        del given["toa"], columns["toa"], columns["toa_last"]
    columns = {**columns, **group_columns(ds, ds["x"], arrays["labels"], n_clusters, columns)}
    units = {name: ds[source].attrs.get("units") for name, source in _SOURCES.items() if source in given}
    units |= {"angle": "rad"} | dict.fromkeys(("size", "seed", "noise_size", "event", "layer", "frame"), "1")
    first = [name for name in ("size", "tot", "energy") if name in columns]
    return table_of({name: columns[name] for name in dict.fromkeys([*first, *columns])}, units)


# ------------------------------------------------------------------------------------------------------------ in chunks
def summarise(arrays: Mapping[str, Any], start: int, by: int) -> Summary:
    """Return the summary of one chunk of n hits."""
    arrays, bad = on_device(HOST, arrays), np.zeros(1, np.int64)
    with one_thread():
        ids, totals, blocks = _totals(arrays, start, by, bad)
    if bad[0] or arrays["labels"].min(initial=NOISE) < NOISE:
        explain(arrays, start, *_CHECKED)
    return Summary(ids, totals, *blocks.noise)


def own_rows(arrays: Mapping[str, Any], start: int, first: int, end: int, *, by: int) -> tuple[Columns, Summary]:
    """Return the rows of clusters `first` to `end` - 1, which this chunk alone has, and the summary of its others."""
    arrays, bad = on_device(HOST, arrays), np.zeros(1, np.int64)
    labels, hits = arrays["labels"], hits_of(HOST, arrays)
    place = np.flatnonzero((labels > NOISE) & ((labels < first) | (labels >= end)))
    with one_thread():
        blocks = survey(HOST, labels, hits, by, bad)
        columns = empty_columns(HOST, hits, end - first, tuple(arrays))
        _write_rows(labels, hits, by, divided(first, end, len(labels), blocks), blocks, columns, bad)
        ids, totals, _ = _totals({role: values[place] for role, values in arrays.items()}, 0, by, bad)
    if bad[0]:
        explain(arrays, start, *_CHECKED)
    np.add(columns.seed, start, out=columns.seed, where=columns.seed >= 0)
    totals["seed"] = start + place[totals["seed"]]
    return _there(columns, tuple(arrays)), Summary(ids, totals, *blocks.noise)


def _totals(arrays: Mapping[str, Any], start: int, by: int, bad: Any) -> tuple[Any, dict[str, Any], HitBlocks]:
    """Return the clusters of hits, their totals, and what is known of blocks of hits."""
    hits, (ids, local) = hits_of(HOST, arrays), numbered(arrays["labels"])
    types: dict[str, Any] = dict.fromkeys((*_FLOATS, "wx", "wy"), np.float64)
    types |= {"chip": hits.chip.dtype, "tot_max": hits.tot.dtype, "x_seed": hits.x.dtype, "y_seed": hits.y.dtype}
    totals = Totals(*(np.empty(len(ids), types.get(name, np.int64)) for name in Totals._fields))
    blocks = survey(HOST, local, hits, by, bad)
    pieces = divided(0, len(ids), len(local), blocks)
    head = HOST.scratch(int(np.diff(pieces.first).max()), np.int32)
    following = HOST.scratch(len(local), np.int32)
    total_piece.run(len(pieces.first_block), pieces, local, blocks, head, following, hits, start, by, totals, bad)
    return ids, totals._asdict(), blocks


def merge(groups: Groups, many: Columns) -> Columns:
    """Return the totals of each cluster, of those of several summaries."""
    first, seed = groups.lowest(many["toa"]), groups.lowest(-many["tot_max"])
    winners = dict.fromkeys(_OF_FIRST_HIT, first) | dict.fromkeys(_OF_SEED, seed)
    return {
        name: values[winners[name]] if name in winners else groups.reduced(_OPERATIONS.get(name, np.add), values)
        for name, values in many.items()
    }


def finish(many: Columns, *, by: int, has: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns of the table."""
    totals = Totals(**many)
    columns = empty_columns(HOST, totals, len(totals.size), has)
    with one_thread():
        finish_row.run(len(totals.size), totals, by, columns)
    return _there(columns, has)


# ------------------------------------------------------------------------------------------------------------ in memory
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

    @property
    def noise(self) -> tuple[Any, Any]:
        """Return the number of hits of no cluster, and their weight."""
        return to_host(self.noise_size).sum(), to_host(self.noise_weight).sum()


def hits_of(device: Host | Cuda, arrays: Mapping[str, Any]) -> Hits:
    """Return the columns of hits; one that is not there is empty."""
    empty = {name: device.empty(0, np.uint8 if name == "chip" else np.float64) for name in _OPTIONAL}
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
        _write_rows(labels, hits, by, divided(0, rows, n, blocks), blocks, columns, bad)
    else:
        ends, order, following = _chain_on_cuda(device, labels, rows)
        device.run(chain_kernels.tabulate_row, rows, ends, order, following, hits, by, columns, bad)
    if device.to_host(bad)[0]:
        explain(arrays, 0, *_CHECKED)
    noise_size, noise_weight = blocks.noise
    return _there(columns, tuple(arrays)) | {"noise_size": noise_size, "noise_weight": noise_weight}


def _write_rows(
    labels: Any, hits: Hits, by: int, pieces: Pieces, blocks: HitBlocks, columns: RowColumns, bad: Any
) -> None:
    """Write the rows of all pieces, on the CPU."""
    span, following = int(np.diff(pieces.first).max()), HOST.scratch(len(labels), np.int32)

    def tabulate_some(begin: int, end: int) -> None:
        head = HOST.scratch(span, np.int32)  # this thread's, as are the numbers of axes
        room = tuple(HOST.scratch(span, np.float64) for _ in range(3))
        chain_kernels.tabulate_piece.run(
            end - begin, begin, pieces, labels, blocks, head, room, following, hits, by, columns, bad,
            grain=end - begin + 1,
        )  # fmt: skip

    many, threads = len(pieces.first_block), thread_count()
    tasks = 1 if threads == 1 else min(many, 8 * threads)
    in_threads(lambda k: tabulate_some(many * k // tasks, many * (k + 1) // tasks), tasks, threads)


def _there(columns: RowColumns, has: Collection[str]) -> dict[str, Any]:
    """Return the columns of the table by name."""
    return {name: column for name, column in columns._asdict().items() if is_there(name, has)}


def is_there(name: str, has: Collection[str]) -> bool:
    """Return whether the table has a column."""
    return name not in _OPTIONAL or name in has


def survey(device: Host | Cuda, labels: Any, hits: Hits, by: int, bad: Any) -> HitBlocks:
    """Return, of each block, the lowest and highest cluster number, and the size and weight of its noise."""
    width = _BLOCK if device is HOST else _CUDA_BLOCK
    blocks = -(-len(labels) // width)
    found = [device.empty(blocks, dtype) for dtype in (np.int64, np.int64, np.int64, np.float64)]
    device.run(chain_kernels.survey_labels, blocks, width, labels, hits, by, *found, bad, grain=32)
    return HitBlocks(width, *found)


def empty_columns(device: Host | Cuda, like: Hits | Totals, rows: int, has: Collection[str]) -> RowColumns:
    """Return columns to be filled, in the types of the table."""
    if isinstance(like, Hits):
        pixel_x, pixel_y, tot = like.x.dtype, like.y.dtype, like.tot.dtype
    else:
        pixel_x, pixel_y, tot = like.x_seed.dtype, like.y_seed.dtype, like.tot_max.dtype
    types = _TYPES | dict.fromkeys(("x_min", "x_max", "x_seed"), pixel_x) | {"tot_max": tot, "chip": like.chip.dtype}
    types |= dict.fromkeys(("y_min", "y_max", "y_seed"), pixel_y)
    columns = {
        name: device.empty(rows if is_there(name, has) else 0, types.get(name, np.float32))
        for name in RowColumns._fields
    }
    return RowColumns(**columns)


def divided(begin: int, end: int, n: int, blocks: HitBlocks) -> Pieces:
    """Return rows `begin` to `end` - 1 in pieces, and the blocks in which their hits may be; O(blocks log(pieces)).

    Pieces fit the cache, and hits in time order have the clusters of a piece in few blocks. Where labels are in no
    order every piece has to look at all hits, so there are as many pieces as threads. Before a piece's first block all
    labels are lower, from its end on all are higher: both are found in running extremes, which are in order.
    """
    rows = end - begin
    number = max(1, n // _PIECE, rows // _PIECE)
    first = begin + np.arange(number + 1) * rows // number
    met = np.searchsorted(first[:-1], blocks.highest, "right") - np.searchsorted(first[1:], blocks.lowest, "right")
    if met.clip(min=0).sum() > 2 * (len(met) + number):
        first = np.arange(max(1, min(thread_count(), rows)) + 1)
        first = begin + first * rows // first[-1]
    highest_before = np.maximum.accumulate(blocks.highest)
    lowest_after = np.minimum.accumulate(blocks.lowest[::-1])[::-1]
    return Pieces(first, np.searchsorted(highest_before, first[:-1]), np.searchsorted(lowest_after, first[1:]))


def _chain_on_cuda(device: Host | Cuda, labels: Any, rows: int) -> tuple[Any, Any, Any]:
    """Return where each cluster's hits begin among those in order, the order, and the hit that follows each."""
    n = len(labels)
    first = device.scratch(rows + 1, np.int32)
    cursor = device.scratch(rows + 1, np.int32)
    slots, order, following = (device.scratch(n, np.int32) for _ in range(3))
    device.run(fill, rows + 1, first, np.int32(0))
    device.run(chain_kernels.count_hits, n, labels, first)
    device.running_sum(first, cursor)
    device.running_sum(first, first)
    device.run(chain_kernels.take_slot, n, labels, cursor, slots)
    inside = int(device.to_host(first)[-1])
    device.run(chain_kernels.order_slots, inside, slots, labels, first, order)
    device.run(chain_kernels.chain_hit, inside, order, labels, first, following)
    return first, order, following
