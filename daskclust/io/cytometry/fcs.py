"""FCS files: keywords, and the scaling of values, by flowio; the numbers of any rows by NumPy."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.data.files import import_library, reading
from daskclust.core.data.quote import quoted, repeated
from daskclust.io.cytometry.transform import Preparation
from daskclust.io.lazy import rows_in

import_flowio = partial(import_library, "flowio", "FCS files")

VERSIONS = ("2.0", "3.0", "3.1")

_CONVERT = "convert it with the program that wrote it"
_HEADER_BYTES = 58
_WIDTHS = {"I": (8, 16, 32, 64), "F": (32,), "D": (64,)}
_ORDERS = {"1,2,3,4": "<", "1,2": "<", "1,2,3,4,5,6,7,8": "<", "4,3,2,1": ">", "2,1": ">", "8,7,6,5,4,3,2,1": ">"}


@dataclass(frozen=True, slots=True)
class FcsLayout:
    """Where the events of one data set are, and what they mean."""

    path: str
    offset: int  # byte where the data set begins
    start: int  # byte where its first event begins
    rows: int
    version: str
    formats: tuple[str, ...]  # NumPy's names of the types of the channels, with the byte order
    masks: tuple[int, ...]  # the bits that count, of whole numbers; 0 for all
    detectors: tuple[str, ...]  # $PnN
    markers: tuple[str, ...]  # $PnS, "" where there is none
    text: Mapping[str, str]  # keywords in lower case, without $

    @property
    def names(self) -> list[tuple[str, ...]]:
        """All names of each channel; the first is a marker where only one channel has it, else the detector."""
        labels = []
        for detector, marker in zip(self.detectors, self.markers, strict=True):
            others = [name for name in (*self.markers, *self.detectors) if name == marker]
            is_own = len(others) == 1 or (len(others) == 2 and marker == detector)
            label = marker if is_own else f"{marker} ({detector})" if marker else detector
            labels.append(tuple(dict.fromkeys(name for name in (label, detector, marker) if name)))
        return labels


def events_of(layout: FcsLayout, preparation: Preparation, chosen: Sequence[int], chunks: int | None) -> Any:
    """Return chosen channels, prepared, of all events: float32 where the whole file has these, else float64."""
    is_small = all(kind[1:] == "f4" for kind in layout.formats)
    dtype = np.dtype(np.float32 if is_small else np.float64)
    there = replace(layout, path=os.path.abspath(layout.path))
    read = partial(_read_events, there, preparation, tuple(chosen), dtype)
    return rows_in(read, [there.path], (layout.rows, len(chosen)), dtype, chunks)


@np.errstate(over="ignore", invalid="ignore")  # inf and NaN of a file stay such, or become NaN
def _read_events(
    layout: FcsLayout, preparation: Preparation, chosen: tuple[int, ...], dtype: np.dtype[Any], start: int, stop: int
) -> npt.NDArray[Any]:
    """Return events start to stop."""
    row = np.dtype([(str(k), kind) for k, kind in enumerate(layout.formats)])
    stored = np.fromfile(layout.path, row, stop - start, offset=layout.start + start * row.itemsize)
    flow = _keywords(layout.path, layout.offset)  # flowio's own objects cannot be sent to a worker
    flow.events = np.empty((len(stored), len(layout.formats)))
    for k, mask in enumerate(layout.masks):
        values = stored[str(k)]
        flow.events[:, k] = values & values.dtype.type(mask) if mask else values
    columns = np.ascontiguousarray(flow.as_array().T)
    preparation.apply(columns)
    return np.ascontiguousarray(columns[list(chosen)].T, dtype)


def is_fcs(path: str) -> bool:
    """Return whether a file begins as FCS files do."""
    with open(path, "rb") as stream:
        return stream.read(3) == b"FCS"


def read_layout(path: str, data_set: int | None) -> FcsLayout:
    """Return the layout of one data set of an FCS file, by its number from 0; None where there must be one only."""
    offset, wanted = 0, check_whole("data_set", 0 if data_set is None else data_set, 0)
    for number in range(wanted + 1):
        flow = _keywords(path, offset)
        following = int(flow.text.get("nextdata", 0))
        if data_set is None and following:
            raise ValueError(
                f"{path} has several data sets ($NEXTDATA is {following}); choose one with data_set=0, 1 ..."
            )
        if number == wanted:
            return _layout(path, offset, flow)
        if following <= 0:
            break
        offset += following
    raise ValueError(f"{path} has {number + 1} data sets, counted from 0, got data_set={data_set}")


def _keywords(path: str, offset: int) -> Any:
    """Return what flowio reads of the keywords of the data set at a byte."""
    flowio = import_flowio()
    # Mapped, as it gives no more bytes than there are, whatever the file claims.
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        head = memory[offset : offset + 6]
        if head[:3] != b"FCS" or head[3:].decode("latin-1") not in VERSIONS:
            raise ValueError(
                f"{path} has {quoted(head)} at byte {offset}, where an FCS file of version "
                f"{', '.join(VERSIONS)} must begin: it is damaged, or must be converted to one of these"
            )
        try:
            with reading(path, "FCS", "keywords"):
                return flowio.FlowData(memory, use_header_offsets=True, only_text=True, nextdata_offset=offset)
        except ValueError as error:
            if isinstance(error.__cause__, KeyError):
                key = str(error.__cause__.args[0]).upper()
                raise ValueError(f"{path} has no keyword ${key}; it is damaged: write it again") from error.__cause__
            raise


def _layout(path: str, offset: int, flow: Any) -> FcsLayout:
    """Return the layout of a data set, or say what in its keywords cannot be read."""
    text, count = flow.text, flow.channel_count
    if not 0 < count == len(flow.channels) or sorted(flow.channels) != list(range(1, count + 1)):
        raise ValueError(
            f"{path} claims {quoted(count)} channels ($PAR), and names {len(flow.channels)} ($PnN); it is damaged: "
            "write it again"
        )
    kind, mode = (text.get(key, default).strip().upper() for key, default in (("datatype", ""), ("mode", "L")))
    order = _ORDERS.get("".join(text.get("byteord", "").split()))
    for name, value, is_known, known in (
        ("MODE", mode, mode == "L", "L, a list of events"),
        ("DATATYPE", kind, kind in _WIDTHS, "I (whole numbers), F or D (floats)"),
        ("BYTEORD", text.get("byteord"), order is not None, " and ".join(_ORDERS)),
    ):
        if not is_known:
            raise ValueError(f"{path} has ${name} {quoted(value)}; known: {known}: {_CONVERT}")
    channels = [flow.channels[n] for n in range(1, count + 1)]
    detectors = tuple(channel["pnn"].strip() for channel in channels)
    if twice := repeated(detectors):
        raise ValueError(f"{path} has several channels with the name ($PnN) {twice}; rename them in the file")
    bits = [_bits(path, n, kind, channel, text) for n, channel in enumerate(channels, start=1)]
    spans = [(math.ceil(channel["pnr"]) - 1).bit_length() if kind == "I" else 64 for channel in channels]
    masks = tuple((1 << used) - 1 if used < of else 0 for used, of in zip(spans, bits, strict=True))
    formats = tuple(f"{order}{'u' if kind == 'I' else 'f'}{of // 8}" for of in bits)
    markers = tuple(channel["pns"].strip() for channel in channels)
    start = offset + _first_byte(path, offset, flow, sum(bits) // 8)
    return FcsLayout(path, offset, start, flow.event_count, flow.version, formats, masks, detectors, markers, text)


def _bits(path: str, n: int, kind: str, channel: Mapping[str, Any], text: Mapping[str, str]) -> int:
    """Return the bits of a channel in the file, if they are known and its scale makes sense."""
    bits = text.get(f"p{n}b", "").strip()
    if bits not in map(str, _WIDTHS[kind]):
        known = ", ".join(map(str, _WIDTHS[kind]))
        raise ValueError(f"{path} has $P{n}B {quoted(bits)} with $DATATYPE {kind}; known: {known} bits: {_CONVERT}")
    try:
        step = float(text.get("timestep", "").strip() or 1)
    except ValueError:
        step = math.nan
    (decades, offset), gain, span = channel["pne"], channel["png"], channel["pnr"]
    scales = [decades, offset, gain]
    scales += [span - 1] if decades > 0 or kind == "I" else []
    scales += [abs(step)] if channel["pnn"].lower() == "time" else []
    if not all(0 <= value < math.inf for value in scales):
        scale = {key.upper(): text[key] for key in (f"p{n}e", f"p{n}g", f"p{n}r", "timestep") if key in text}
        raise ValueError(
            f"{path} has the scale {scale} of channel {n}; expected finite numbers, none negative, and a range "
            "($PnR) of 1 or more: correct it in the file"
        )
    return int(bits)


def _first_byte(path: str, offset: int, flow: Any, row_bytes: int) -> int:
    """Return where events begin: by TEXT, or by HEADER where TEXT does not tell it or does not fit their number."""
    needed, size = flow.event_count * row_bytes, os.path.getsize(path) - offset
    claims = [(flow.header["data_start"], flow.header["data_stop"])]
    if flow.version != "2.0":
        with reading(path, "FCS", "keywords"):
            in_text = int(flow.text.get("begindata", 0)), int(flow.text.get("enddata", 0))
        claims = [in_text, *claims] if in_text[0] else claims
    if not needed:
        return 0
    for first, last in claims:
        # Some programs give the byte after the last one.
        if first >= _HEADER_BYTES and 0 < needed <= last - first + 1 <= needed + 1 and first + needed <= size:
            return int(first)
    first, last = claims[0]
    raise ValueError(
        f"{path} claims {flow.event_count} events ($TOT) of {row_bytes} bytes, that is {needed}, in its bytes {first} "
        f"to {last}, that is {last - first + 1}, and has {size} bytes; it is cut or damaged: get it again"
    )
