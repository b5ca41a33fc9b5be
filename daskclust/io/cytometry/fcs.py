"""FCS files: keywords, where the events are, and what their numbers mean, by the standards 2.0 to 3.2."""

from __future__ import annotations

import logging
import math
import mmap
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.data.quote import listed, quoted, repeated
from daskclust.io.cytometry.transform import Preparation
from daskclust.io.files import reading
from daskclust.io.rows import Stored

logger = logging.getLogger(__name__)

_CONVERT = "convert it with the program that wrote it"
_WIDTHS = {"I": range(1, 65), "F": (32,), "D": (64,)}

_VERSIONS = ("2.0", "3.0", "3.1", "3.2")
_HEADER_BYTES = 58
_PADDING = " \0\r\n\t"

# No keyword is empty, and a delimiter within a value is doubled: two after a keyword are an empty value.
_BY_DELIMITERS = "([^{0}]+){0}((?:{0}{0}|[^{0}])*)(?:{0}|$)"
# Where values have single delimiters: they end where a keyword that matters begins.
_BY_KEYWORDS = r"(\$\w+?|\$?P\d+[A-Z]+|SPILL\w*?){0}(.*?){0}(?=\s*(?:\$\w+?|\$?P\d+[A-Z]+|SPILL\w*?){0}|$)"


@dataclass(frozen=True, slots=True)
class FcsChannel:
    """How the numbers of a channel are stored, and what they mean."""

    kind: str  # NumPy's name of a type that holds them, without the byte order
    bits: int  # in the file
    mask: int  # the bits that count, of whole numbers; 0 for all
    decades: float  # of a logarithmic amplifier, 0 of a linear one
    span: float  # $PnR
    factor: float  # what a logarithmic amplifier gives for 0; the step of time
    gain: float

    def linear(self, stored: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return values before the amplifier, from those of the file."""
        values = (stored & stored.dtype.type(self.mask) if self.mask else stored).astype(np.float64)
        if self.decades:
            values = 10.0 ** (self.decades * values / self.span)
        return values * self.factor / self.gain


@dataclass(frozen=True, slots=True)
class FcsLayout:
    """Where the events of one data set are, and what they mean."""

    path: str
    start: int  # byte where its first event begins
    rows: int
    version: str
    order: str  # of bytes: "<", ">", or which one comes when, as "3412"
    channels: tuple[FcsChannel, ...]
    detectors: tuple[str, ...]  # $PnN
    markers: tuple[str, ...]  # $PnS, "" where there is none
    text: Mapping[str, str]  # keywords in lower case, without $
    notes: tuple[str, ...]  # what is read in another way than it is written

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
    is_small = all(channel.kind == "f4" for channel in layout.channels)
    dtype = np.dtype(np.float32 if is_small else np.float64)
    there = replace(layout, path=os.path.abspath(layout.path))
    read = partial(_read_events, there, preparation, tuple(chosen), dtype)
    return Stored(read, (there.path,), "FCS", (layout.rows, len(chosen)), dtype).array(chunks)


@np.errstate(over="ignore", invalid="ignore")  # inf and NaN of a file stay such, or become NaN
def _read_events(
    layout: FcsLayout, preparation: Preparation, chosen: tuple[int, ...], dtype: np.dtype[Any], start: int, stop: int
) -> npt.NDArray[Any]:
    columns = np.array([c.linear(x) for c, x in zip(layout.channels, _stored(layout, start, stop), strict=True)])
    preparation.apply(columns)
    return np.ascontiguousarray(columns[list(chosen)].T, dtype)


def _stored(layout: FcsLayout, start: int, stop: int) -> list[npt.NDArray[Any]]:
    """Return the numbers of each channel as they are in the file, of events start to stop."""
    row_bits, order = sum(channel.bits for channel in layout.channels), layout.order
    (first, skipped), end = divmod(start * row_bits, 8), -(-stop * row_bits // 8)
    raw = np.fromfile(layout.path, np.uint8, end - first, offset=layout.start + first)
    if order not in "<>":  # as a PDP-11 has it; each number has 4 bytes
        raw, order = raw[: len(raw) // 4 * 4].reshape(-1, 4)[:, np.argsort([*order])].ravel(), "<"
    row = np.dtype([(str(k), order + channel.kind) for k, channel in enumerate(layout.channels)])
    if 8 * row.itemsize == row_bits:
        rows = raw[: len(raw) // row.itemsize * row.itemsize].view(row)
        return [rows[name] for name in row.names or ()]
    high: Literal["big", "little"] = "big" if order == ">" else "little"
    bits = np.unpackbits(raw, bitorder=high)[skipped:][: (stop - start) * row_bits]
    bits, place, stored = bits[: len(bits) // row_bits * row_bits].reshape(-1, row_bits), 0, []
    for k, channel in enumerate(layout.channels):
        wide = np.zeros((len(bits), 8 * row[k].itemsize), np.uint8)
        within = slice(-channel.bits, None) if order == ">" else slice(channel.bits)
        wide[:, within] = bits[:, place : (place := place + channel.bits)]
        stored.append(np.packbits(wide, 1, high).view(row[k])[:, 0])
    return stored


def is_fcs(path: str, offset: int = 0) -> bool:
    """Return whether a file, or a data set at a byte of it, begins as FCS files do."""
    with open(path, "rb") as stream:
        stream.seek(min(offset, os.path.getsize(path)))
        return stream.read(3) == b"FCS"


def read_layout(path: str, data_set: int | None) -> FcsLayout:
    """Return the layout of one data set of an FCS file, by its number from 0; None where there must be one only."""
    offset, wanted = 0, check_whole("data_set", 0 if data_set is None else data_set, 0)
    for number in range(wanted + 1):
        keywords = read_keywords(path, offset)
        following = place_of(keywords.text.get("nextdata", ""))
        if data_set is None and following and is_fcs(path, following):
            raise ValueError(
                f"{path} has several data sets ($NEXTDATA is {following}); choose one with data_set=0, 1 ..."
            )
        if number == wanted:
            return _layout(path, offset, keywords, following)
        if not following:
            break
        offset += following
    raise ValueError(f"{path} has {number + 1} data sets, counted from 0, got data_set={data_set}")


def _layout(path: str, offset: int, keywords: Keywords, following: int) -> FcsLayout:
    """Return the layout of a data set, or say what in its keywords cannot be read."""
    text, notes, version = keywords.text, keywords.notes, keywords.version
    count, key = place_of(_told(path, text, "par")), "b" if version < "3.1" else "n"  # before 3.1 names may be missing
    named, numbers = [entry for entry in text if re.fullmatch(rf"p\d+{key}", entry)], range(1, count + 1)
    if not 0 < count <= len(named) or any(f"p{n}{key}" not in text for n in numbers):
        raise ValueError(
            f"{path} claims {count} channels ($PAR), and names {len(named)} ($Pn{key.upper()}); it is damaged: "
            "write it again"
        )
    kinds = [text.get(f"p{n}datatype", text.get("datatype", "")).upper() for n in numbers]
    unknown = [kind for kind in kinds if kind not in _WIDTHS]
    mode, order = text.get("mode", "L").upper(), re.sub(r"[\s,]", "", text.get("byteord", ""))
    is_mixed = version < "3.1" and sorted(order) == [*"1234"]
    if order:
        order = "<" if "12345678".startswith(order) else ">" if "87654321".endswith(order) else order * is_mixed
    for name, value, is_known, known in (
        ("MODE", mode, mode == "L", "L, a list of events"),
        ("DATATYPE", "".join(unknown[:1]), not unknown, "I (whole numbers), F or D (floats)"),
        ("BYTEORD", text.get("byteord"), order, "1,2,3,4 and 4,3,2,1, and others before FCS 3.1"),
    ):
        if not is_known:
            raise ValueError(f"{path} has ${name} {quoted(value)}; known: {known}: {_CONVERT}")
    channels = [_channel(path, n, kind, text) for n, kind in zip(numbers, kinds, strict=True)]
    wide = [replace(channel, bits=8 * int(channel.kind[1])) for channel in channels]
    widths = [sum(channel.bits for channel in each) for each in (channels, wide)]
    start, rows, row_bits = _events(path, offset, keywords, widths)
    if row_bits != widths[0]:  # as Beckman Coulter's CXP writes: $PnB is 10, and they have 16
        channels, notes = wide, [*notes, "numbers have whole bytes, by the length of DATA, and not the bits of $PnB"]
    if order not in "<>" and any(channel.bits != 32 for channel in channels):
        raise ValueError(f"{path} has $BYTEORD {quoted(text['byteord'])}, and not 32 bits everywhere: {_CONVERT}")
    if following and not is_fcs(path, offset + following):
        notes.append(f"no data set is at $NEXTDATA, byte {following}")
    if any(text.get(f"p{n}n", "").lower() == "time" for n in numbers) and math.isnan(_float(text.get("timestep", ""))):
        notes.append(f"$TIMESTEP is {quoted(text['timestep'])}: the clock has its own unit")
    names = [text.get(f"p{n}n") or f"P{n}" for n in numbers]
    markers = [text.get(f"p{n}s", "") for n in numbers]
    if repeated(names):
        notes.append(f"channels with the same name ($PnN) get their number, too: {listed(repeated(names))}")
        names = [name if name not in names[:k] else f"{name} (P{k + 1})" for k, name in enumerate(names)]
    for note in notes:
        logger.warning("%s: %s", path, note)
    if keywords.empty:
        notes = [*notes, f"doubled delimiters are empty values of {listed(keywords.empty)}"]
    lists = (tuple(channels), tuple(names), tuple(markers), text, tuple(notes))
    return FcsLayout(path, offset + start, rows, version, order, *lists)


def _told(path: str, text: Mapping[str, str], key: str) -> str:
    """Return what a keyword has, if it is there."""
    if key not in text:
        raise ValueError(f"{path} has no keyword ${key.upper()}; it is damaged: write it again")
    return text[key]


def _channel(path: str, n: int, kind: str, text: Mapping[str, str]) -> FcsChannel:
    """Return a channel, if its width is known and its scale makes sense.

    $PnE and the bits of $PnR are of whole numbers only; $PnG is of linear amplifiers, and not of time.
    """
    bits, known = text.get(f"p{n}b", ""), _WIDTHS[kind]
    if bits not in map(str, known):
        raise ValueError(
            f"{path} has $P{n}B {quoted(bits)} with $DATATYPE {kind}; known: "
            f"{'1 to 64' if kind == 'I' else known[0]} bits: {_CONVERT}"
        )
    is_time, step = text.get(f"p{n}n", "").lower() == "time", _float(text.get("timestep", "")) or 1.0
    gain, span, amplifier = _float(text.get(f"p{n}g", "")) or 1.0, _float(_told(path, text, f"p{n}r")), [0.0, 0.0]
    if kind != "I":
        span = 0.0
    elif text.get(f"p{n}e"):
        amplifier = [_float(field.strip()) for field in text[f"p{n}e"].split(",")]
    decades, at_zero = amplifier if len(amplifier) == 2 else (math.nan, math.nan)
    if not all(0 <= value < math.inf for value in (decades, at_zero, gain, span - (decades > 0))):
        scale = {key.upper(): text[key] for key in (f"p{n}e", f"p{n}g", f"p{n}r") if key in text}
        raise ValueError(
            f"{path} has the scale {quoted(scale)} of channel {n}; expected finite numbers, none negative, and a range "
            "($PnR) of 1 or more: correct it in the file"
        )
    size = next(size for size in (1, 2, 4, 8) if 8 * size >= int(bits))
    used = (math.ceil(span) - 1).bit_length() if span else 64
    mask = (1 << used) - 1 if used < 8 * size else 0
    factor = (at_zero or 1.0) if decades else step if is_time and math.isfinite(step) else 1.0
    gain = 1.0 if decades or is_time else gain
    return FcsChannel(f"{'u' if kind == 'I' else 'f'}{size}", int(bits), mask, decades, span, factor, gain)


def _float(value: str) -> float:
    """Return the number in a text, 0 where it says that there is none, NaN for anything else."""
    try:
        return float(value) if value.upper() not in ("", "NA", "N/A") else 0.0
    except ValueError:
        return math.nan


def _events(path: str, offset: int, keywords: Keywords, widths: Sequence[int]) -> tuple[int, int, int]:
    """Return where events begin, how many there are, and which of `widths` they have, in bits.

    DATA is where TEXT says (in FCS 2.0, HEADER), or else the other, if this fits the number of events and the file.
    """
    text, size, is_old = keywords.text, os.path.getsize(path) - offset, keywords.version == "2.0"
    in_text = place_of(text.get("begindata", "")), place_of(text.get("enddata", ""))
    claims = [in_text, keywords.data] if in_text[0] and not is_old else [keywords.data, in_text]
    with reading(path, "FCS", "keywords"):
        rows = None if is_old and not text.get("tot") else int(_told(path, text, "tot"))
    if rows == 0:
        return 0, 0, widths[0]
    # Some programs give the byte after the last one.
    for beyond, bits, (first, last) in product((0, 1), widths, claims):
        length = last - first + 1 - beyond
        count = 8 * length // bits if rows is None else rows
        needed = -(-count * bits // 8)
        if first >= _HEADER_BYTES and 0 < needed == length and first + needed <= size:
            return first, count, bits
    (first, last), told = claims[0], quoted(-(-(rows or 0) * widths[0] // 8))
    raise ValueError(
        f"{path} claims {quoted(rows)} events ($TOT) of {widths[0] / 8:g} bytes, that is {told}, in its bytes "
        f"{first} to {last}, that is {last - first + 1}, and has {size} bytes; it is cut or damaged: get it again"
    )


# ------------------------------------------------------------------------------------------------------------- keywords
@dataclass(frozen=True, slots=True)
class Keywords:
    """What HEADER and TEXT of one data set tell."""

    version: str
    data: tuple[int, int]  # first and last byte of DATA by HEADER, 0 where it does not tell them
    text: dict[str, str]  # in lower case, without $
    empty: list[str]  # those of the standard whose values are empty
    notes: list[str]  # what else is read in another way than it is written


def read_keywords(path: str, offset: int) -> Keywords:
    """Return the keywords of the data set that begins at a byte of a file."""
    # Mapped, as it gives no more bytes than there are, whatever the file claims.
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        head = memory[offset : offset + _HEADER_BYTES].decode("latin-1")
        if head[:3] != "FCS" or head[3:6] not in _VERSIONS:
            raise ValueError(
                f"{path} has {quoted(memory[offset : offset + 6])} at byte {offset}, where an FCS file of version "
                f"{', '.join(_VERSIONS)} must begin: it is damaged, or must be converted to one of these"
            )
        with reading(path, "FCS", "keywords"):
            first, last = int(head[10:18]), int(head[18:26])
            if not 0 < first < last < len(memory) - offset:
                raise ValueError(f"it has no bytes {first} to {last}")
        raw = memory[offset + first : offset + last + 1]
        text, empty, notes = _parsed(raw)
        begin, end = place_of(text.get("beginstext", "")), place_of(text.get("endstext", ""))
        supplement = memory[offset + begin : offset + end + 1] if begin else b""
    if supplement[:1] == raw[:1]:
        text = _parsed(supplement)[0] | text
    elif 0 < begin < end:
        notes.append(f"no keywords are at $BEGINSTEXT, byte {begin}")
    return Keywords(head[3:6], (place_of(head[26:34]), place_of(head[34:42])), text, empty, notes)


def place_of(value: str) -> int:
    """Return the offset in a text, 0 where it is none."""
    return int(value) if re.fullmatch(r"\s*0*[0-9]{1,18}\s*", value) else 0


def _parsed(raw: bytes) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the keywords of a segment, those of the standard whose values are empty, and a note on its delimiters.

    They are taken in another way where only that gives the keywords that a file must have.
    """
    notes: list[str] = []
    try:
        whole = raw.decode()
    except UnicodeDecodeError:
        whole = raw.decode("latin-1")
    mark = whole[0]
    if mark == "$":  # which begins keywords, too
        whole = re.sub(r"\$+", "$", whole)
    whole = whole.lstrip(mark + _PADDING).rstrip(_PADDING.replace(mark, ""))
    ends = len(whole) - len(whole.rstrip(mark))
    whole = whole.rstrip(mark) + mark * max(1, ends - 1 + ends % 2)  # an even number has none too many, or one
    text = _keywords(whole, mark, _BY_DELIMITERS)
    if not _is_complete(text) and _is_complete(other := _keywords(whole, mark, _BY_KEYWORDS)):
        text, notes = other, [f"values have the delimiter {quoted(mark)}, too; they end where a known keyword begins"]
    empty = [key.upper() for key, value in text.items() if key.startswith("$") and not value]
    # Of two that differ in $ only, that with it is the last here, and counts.
    return {key.removeprefix("$"): text[key] for key in sorted(text, reverse=True)}, empty, notes


def _keywords(whole: str, mark: str, pattern: str) -> dict[str, str]:
    """Return keywords in lower case and their values, each the first one that is not empty, by a pattern."""
    text: dict[str, str] = {}
    for name, value in re.findall(pattern.format(re.escape(mark)), whole, re.DOTALL):
        key = name.strip(_PADDING).lower()
        text[key] = text.get(key) or value.replace(mark * 2, mark).strip(_PADDING)
    return text


def _is_complete(text: dict[str, str]) -> bool:
    """Return whether there are the keywords that tell how events are stored, and none of the standard is a value."""
    count = place_of(text.get("$par", ""))
    needed = ["$byteord", *(f"$p{n}b" for n in range(1, min(count, len(text)) + 1))]
    is_moved = any(re.fullmatch(r"\$\w+", value) for value in text.values())
    return 0 < count <= len(text) and all(map(text.get, needed)) and not is_moved
