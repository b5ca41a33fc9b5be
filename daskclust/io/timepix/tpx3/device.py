"""Hits of a Timepix3 file decoded and sorted on a CUDA device; the host makes the index and copies the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.kernels import body, kernel
from daskclust.io.timepix.tpx3.decode import ADDRESS_BITS, DTYPES, TOT_BITS, fold_words, put_hit
from daskclust.io.timepix.tpx3.read import HitFile
from daskclust.io.timepix.tpx3.scan import HITS, REFERENCE
from daskclust.io.timepix.tpx3.words import ticks_after

CELL_WORDS = 256
"""Words of a cell: each is decoded by one thread, so there must be many."""


@body
def take_hit(n, word, chip, context):
    """Write time, and chip, address and time over threshold in one number, of the n-th hit, if the word is one."""
    reference, phase, ticks, fields = context
    if word >> np.uint64(60) == np.uint64(0xB):
        ticks[n] = reference + ticks_after(word, reference, phase)
        address = np.int64((word >> np.uint64(44)) & np.uint64(0xFFFF))
        tot = np.int64((word >> np.uint64(20)) & np.uint64(0x3FF))
        fields[n] = (chip << (ADDRESS_BITS + TOT_BITS)) | (address << TOT_BITS) | tot
        n += 1
    return n


@kernel
def decode_cell(i, data, cells, starts, phase, ticks, fields):
    """Write the hits of cell i; its `visit` is `take_hit`."""
    fold_words(data, cells[i], starts[i], (cells[i, REFERENCE], phase, ticks, fields))


@kernel
def spread_hit(i, order, ticks, fields, base, is_quad, gap, columns):
    """Write hit i in the order of time to the columns."""
    field = fields[order[i]]
    number, counts = np.int32(field >> (ADDRESS_BITS + TOT_BITS)), np.int32(field & ((1 << TOT_BITS) - 1))
    put_hit(columns, i, field >> TOT_BITS, ticks[order[i]] + base, counts, number, is_quad, gap)


def read_on_device(hits: HitFile, device: Host | Cuda) -> Mapping[str, Any]:
    """Return the columns of all hits of an indexed file, on the device, sorted by (toa, place in the file)."""
    cells = hits.index.cells
    cells = cells[cells[:, HITS] > 0]
    n, setup = int(cells[:, HITS].sum()), hits.setup
    columns = {name: device.empty(n, dtype) for name, dtype in DTYPES.items()}
    if n == 0:
        return columns
    on_device = device.from_host(hits.index.file.data())
    ticks, fields = device.empty(n, np.int64), device.empty(n, np.int64)
    starts = device.from_host(np.cumsum(cells[:, HITS]) - cells[:, HITS])
    decode = decode_cell.bind(visit=take_hit)
    device.run(decode, len(cells), on_device, device.from_host(cells), starts, hits.index.phase, ticks, fields)
    order = device.order_of(ticks)
    is_quad, gap = bool(setup.is_quad), int(setup.gap)
    device.run(spread_hit, n, order, ticks, fields, setup.base, is_quad, gap, tuple(columns.values()))
    return columns
