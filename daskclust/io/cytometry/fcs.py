"""FCS files: what HEADER and TEXT tell of the events, checked against the size of the file before it is believed."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.files import reading
from daskclust.core.data.quote import quoted, repeated

VERSIONS = ("2.0", "3.0", "3.1")

_HEADER_BYTES = 58
_MOST_TEXT = 1 << 24  # bytes; TEXT of hundreds of channels has less than 1 % of it
_MIXED_UP = "$().+?[^"  # flowio takes these delimiters for a part of a regular expression
_WIDTHS = {"I": (8, 16, 32, 64), "F": (32,), "D": (64,)}
_LITTLE, _BIG = ("1,2,3,4", "1,2", "1,2,3,4,5,6,7,8"), ("4,3,2,1", "2,1", "8,7,6,5,4,3,2,1")


class Scale(NamedTuple):
    """How stored numbers of a channel become intensities."""

    mask: int = 0  # bits that count, of whole numbers; 0 for all
    decades: float = 0.0  # of a logarithmic amplifier; 0 for a linear one
    offset: float = 1.0  # what such an amplifier gives for 0
    range: float = 1.0  # channels of such an amplifier
    gain: float = 1.0
    step: float = 1.0  # seconds of a unit of time

    @np.errstate(over="ignore", invalid="ignore")  # inf and NaN of a file stay such, or become NaN
    def apply(self, stored: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return intensities, in the order of operations of flowio."""
        if self.mask:
            stored = stored & stored.dtype.type(self.mask)
        values = stored.astype(np.float64)
        if self.step != 1:
            values *= self.step
        if self.decades > 0:
            values = 10 ** (self.decades * values / self.range) * self.offset
        return values / self.gain if self.gain != 1 else values


@dataclass(frozen=True, slots=True)
class FcsLayout:
    """Where the events of one data set are, and what they mean.

    Parameters
    ----------
    path : str
        The file.
    version : str
        "2.0", "3.0" or "3.1".
    start : int
        Byte where the first event begins.
    rows : int
        Number of events.
    formats : tuple of str
        NumPy's name of the type of each channel, with the byte order.
    detectors : tuple of str
        $PnN.
    markers : tuple of str
        $PnS, "" where there is none.
    scales : tuple of Scale
        One for each channel.
    text : dict of str to str
        Keywords in lower case, without $.
    """

    path: str
    version: str
    start: int
    rows: int
    formats: tuple[str, ...]
    detectors: tuple[str, ...]
    markers: tuple[str, ...]
    scales: tuple[Scale, ...]
    text: Mapping[str, str]

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


class _Bounded:
    """A file for flowio, which asks for as many bytes as the file claims: it gets no more than there are.

    Where events end is not for flowio to check, which would not look at HEADER where TEXT is wrong: `tell`, by which it
    learns the size, has no end.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size
        self.name, self.seek, self.close = stream.name, stream.seek, stream.close

    def tell(self) -> int:
        return sys.maxsize

    def read(self, count: int) -> bytes:
        return self._stream.read(max(0, min(count, self._size - self._stream.tell(), _MOST_TEXT)))


def import_flowio() -> ModuleType:
    """Import flowio, or say what to install."""
    try:
        import flowio
    except ImportError as error:
        raise ImportError('FCS files need flowio: pip install "daskclust[io]"') from error
    return flowio  # type: ignore[no-any-return,unused-ignore]


def is_fcs(path: str) -> bool:
    """Return whether a file begins as FCS files do."""
    with open(path, "rb") as stream:
        return stream.read(3) == b"FCS"


def read_layout(path: str, data_set: int | None) -> FcsLayout:
    """Return the layout of one data set of an FCS file.

    Parameters
    ----------
    path : str
        The file.
    data_set : int or None
        Which one, from 0; None where there must be one only.

    Returns
    -------
    FcsLayout
        Every claim of it is checked against the size of the file.

    Raises
    ------
    ImportError
        Without flowio.
    ValueError
        For damaged files, other versions, events that cannot be read, several data sets or too few of them.
    """
    if data_set is not None and (isinstance(data_set, bool) or not isinstance(data_set, int) or data_set < 0):
        raise ValueError(f"data_set must be a number from 0 or None, got {data_set!r}")
    size, offset, found = os.path.getsize(path), 0, 0
    while True:
        layout, following = _data_set_at(path, offset, size, read=found == (data_set or 0))
        if data_set is None and following:
            raise ValueError(
                f"{path} has several data sets ($NEXTDATA is {following}); choose one with data_set=0, 1 ..."
            )
        if layout is not None:
            return layout
        if not following:
            raise ValueError(f"{path} has {found + 1} data sets, counted from 0, got data_set={data_set}")
        offset, found = offset + following, found + 1


def _data_set_at(path: str, offset: int, size: int, read: bool) -> tuple[FcsLayout | None, int]:
    """Return the layout of the data set at a byte if it is to be read, and how far away the next one is."""
    version, spans = _header(path, offset, size)
    flow = _flow(path, offset, size)
    text: dict[str, str] = flow.text
    following = _whole(text, "nextdata", path) if "nextdata" in text else 0
    if following and not spans[1] < following < size - offset:
        raise ValueError(
            f"{path} has $NEXTDATA {following} for the data set at byte {offset}, and {size} bytes in all; the file is "
            "damaged: write it again"
        )
    if not read:
        return None, following
    count = _whole(text, "par", path)
    if count < 1:
        raise ValueError(f"{path} has {count} channels ($PAR); a file of cells has at least one")
    if text.get("mode", "L").strip().upper() != "L":
        raise ValueError(
            f"{path} has $MODE {quoted(text['mode'])}; only lists of events (L) can be read, not histograms"
        )
    formats, detectors, markers, scales = _channels(count, flow, path)
    rows = _whole(text, "tot", path)
    start = offset + _segment(text, version, spans, rows, np.dtype(",".join(formats)).itemsize, size - offset, path)
    return FcsLayout(path, version, start, rows, formats, detectors, markers, scales, text), following


def _channels(
    count: int, flow: Any, path: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[Scale, ...]]:
    """Return the types, detectors, markers and scales of all channels."""
    text: dict[str, str] = flow.text
    order = _byte_order(text, path)
    kind = text.get("datatype", "").strip().upper()
    if kind not in _WIDTHS:
        known = "I (whole numbers), F or D (floats)"
        raise ValueError(
            f"{path} has $DATATYPE {quoted(kind)}; known: {known}: convert it with the program that wrote it"
        )
    formats, detectors, markers, scales = [], [], [], []
    for n in range(1, count + 1):  # the first one that TEXT does not have ends it, whatever $PAR claims
        bits = _whole(text, f"p{n}b", path)
        if bits not in _WIDTHS[kind]:
            known = ", ".join(map(str, _WIDTHS[kind]))
            raise ValueError(
                f"{path} has $P{n}B {bits} with $DATATYPE {kind}; known: {known} bits: convert it with the program "
                "that wrote it"
            )
        formats.append(f"{order}{'u' if kind == 'I' else 'f'}{bits // 8}")
        channel = flow.channels.get(n)
        if channel is None or not channel["pnn"].strip():
            raise ValueError(
                f"{path} has no keyword $P{n}N, the name of a channel; the file is damaged: write it again"
            )
        detectors.append(channel["pnn"].strip())
        markers.append(channel["pns"].strip())
        scales.append(_scale(n, kind, bits, channel, text, path))
    if len(set(detectors)) < count:
        twice = repeated(detectors)
        raise ValueError(f"{path} has several channels with the name ($PnN) {twice}; rename them in the file")
    return tuple(formats), tuple(detectors), tuple(markers), tuple(scales)


def _header(path: str, offset: int, size: int) -> tuple[str, tuple[int, int, int, int]]:
    """Return the version, and the first and last bytes of TEXT and DATA, counted from the start of the data set."""
    with open(path, "rb") as stream:
        stream.seek(offset)
        head = stream.read(_HEADER_BYTES)
        if len(head) < _HEADER_BYTES or head[:3] != b"FCS":
            raise ValueError(
                f"{path} has {quoted(head[:10])} at byte {offset} of {size}, which is no header of an FCS file: it is "
                "damaged, or has another format"
            )
        version = head[3:6].decode("latin-1")
        if version not in VERSIONS:
            raise ValueError(f"{path} is FCS {version!r}; known: {', '.join(VERSIONS)}: convert it to one of these")
        fields = [head[start : start + 8].decode("latin-1").strip() for start in range(10, 42, 8)]
        if not all(re.fullmatch("[0-9]{1,8}", field) for field in fields):
            raise ValueError(f"{path} has {fields} for the bytes of TEXT and DATA in its header: it is damaged")
        text_start, text_stop, data_start, data_stop = map(int, fields)
        length = text_stop - text_start + 1
        if text_start < _HEADER_BYTES or not 2 <= length <= _MOST_TEXT or offset + text_stop >= size:
            raise ValueError(
                f"{path} has TEXT at the bytes {text_start} to {text_stop} by its header, and {size - offset} bytes; "
                "it is cut or damaged: get it again"
            )
        stream.seek(offset + text_start)
        delimiter = stream.read(1)
    if not 0 < delimiter[0] < 127 or delimiter.decode() in _MIXED_UP:
        raise ValueError(
            f"{path} divides its keywords by {delimiter!r}, which cannot be read; write it again with another delimiter"
        )
    return version, (text_start, text_stop, data_start, data_stop)


def _flow(path: str, offset: int, size: int) -> Any:
    """Return what flowio reads of TEXT."""
    flowio = import_flowio()
    with open(path, "rb") as stream:
        try:
            with reading(path, "FCS"):
                return flowio.FlowData(
                    _Bounded(stream, size), only_text=True, ignore_offset_discrepancy=True, nextdata_offset=offset
                )
        except ValueError as error:
            cause = error.__cause__
            if isinstance(cause, KeyError):
                raise ValueError(
                    f"{path} has no keyword ${str(cause.args[0]).upper()}, which FCS files must have; it is damaged: "
                    "write it again"
                ) from cause
            raise ValueError(
                f"{path} has keywords that cannot be read ({cause}); the file is damaged: write it again"
            ) from cause


def _whole(text: Mapping[str, str], key: str, path: str) -> int:
    """Return the value of a keyword that must be a whole number."""
    value = text.get(key, "").strip()
    if not re.fullmatch("[0-9]{1,18}", value):
        shown = repr(value[:40]) if key in text else "missing"
        raise ValueError(
            f"{path} has keyword ${key.upper()} {shown}, expected a whole number; the file is damaged: write it again"
        )
    return int(value)


def _byte_order(text: Mapping[str, str], path: str) -> str:
    """Return NumPy's sign of the byte order."""
    value = "".join(text.get("byteord", "").split())
    if value not in (*_LITTLE, *_BIG):
        raise ValueError(
            f"{path} has $BYTEORD {quoted(value)}; known: {', '.join((*_LITTLE, *_BIG))}: convert it with the program "
            "that wrote it"
        )
    return "<" if value in _LITTLE else ">"


def _scale(n: int, kind: str, bits: int, channel: Mapping[str, Any], text: Mapping[str, str], path: str) -> Scale:
    """Return how the numbers of a channel become intensities."""
    decades, offset = channel["pne"]
    gain, range_ = channel["png"] or 1.0, channel["pnr"]
    is_time = channel["pnn"].strip().lower() == "time"
    try:
        step = float(text.get("timestep", "").strip() or 1) if is_time else 1.0
    except ValueError:
        step = math.nan
    wrong = {"E": (decades, offset), "G": (gain,), "R": (range_,) if decades > 0 or kind == "I" else (1.0,)}
    for letter, values in wrong.items():
        if not all(math.isfinite(value) for value in values) or values[0] < (1 if letter == "R" else 0):
            raise ValueError(
                f"{path} has $P{n}{letter} {quoted(text.get(f'p{n}{letter.lower()}'))}, expected numbers that are "
                "finite and positive, or 0; the file is damaged: write it again"
            )
    if not math.isfinite(step):
        raise ValueError(f"{path} has $TIMESTEP {quoted(text['timestep'])}, expected seconds; correct it in the file")
    mask = 0
    if kind == "I":
        used = (math.ceil(range_) - 1).bit_length() if range_ > 1 else 0
        mask = (1 << used) - 1 if used < bits else 0
    return Scale(mask, decades, offset, range_, 1.0 if is_time else gain, step)


def _segment(
    text: Mapping[str, str], version: str, spans: Sequence[int], rows: int, row_bytes: int, size: int, path: str
) -> int:
    """Return the byte where events begin: by TEXT, or by HEADER where TEXT does not tell it or does not fit."""
    needed = rows * row_bytes
    claims = [(spans[2], spans[3])]
    if version != "2.0":
        in_text = (_whole(text, "begindata", path), _whole(text, "enddata", path))
        claims = [in_text, *claims] if in_text[0] else claims
    if not rows:
        return 0
    for first, last in claims:
        # Some programs give the byte after the last one.
        if first >= _HEADER_BYTES and last - first + 1 in (needed, needed + 1) and first + needed <= size:
            return first
    first, last = claims[0]
    raise ValueError(
        f"{path} claims {rows} events ($TOT) of {row_bytes} bytes, that is {needed}, in its bytes {first} to {last}, "
        f"that is {last - first + 1}, and has {size} bytes; it is cut or damaged: get it again"
    )
