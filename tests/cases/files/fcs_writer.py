"""Writes FCS files of any layout, and the values that they mean: by the standards, in plain Python."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

Pairs = list[tuple[str, str]]


def pack(rows: Sequence[Sequence[Any]], stored: Sequence[tuple[str, int]], order: str) -> bytes:
    """Return events as one stream of bits; channels are of a type (I, F, D) and have so many bits.

    The first byte of the order 1,2,3,4 is the lowest, as is the first bit; 4,3,2,1 begins with the highest.
    """
    places = [int(place) for place in order.split(",")]
    is_big = places != sorted(places)
    stream = length = 0
    for row in rows:
        for value, (kind, bits) in zip(row, stored, strict=True):
            number = value if kind == "I" else int.from_bytes(struct.pack(">f" if kind == "F" else ">d", value), "big")
            stream = stream << bits | number if is_big else stream | number << length
            length += bits
    padding = -length % 8
    data = (stream << padding if is_big else stream).to_bytes((length + padding) // 8, "big" if is_big else "little")
    if places in (sorted(places), sorted(places, reverse=True)):
        return data
    words = (data[at : at + 4] for at in range(0, len(data), 4))  # of 32 bits, the highest byte first
    return b"".join(bytes(word[4 - place] for place in places) for word in words)


def linear(value: float, kind: str, amplifier: str, gain: str | None, span: str, step: float | None = None) -> float:
    """Return what a number of a file means; of time, `step` is its unit."""
    if kind == "I" and span.isdecimal() and int(span):
        power = 1
        while power < int(span):
            power *= 2
        value = int(value) % power if power > 1 else value
    decades, at_zero = (float(field) for field in (amplifier or "0,0").split(","))
    if kind == "I" and decades > 0:
        return 10 ** (decades * value / float(span)) * (at_zero if at_zero > 0 else 1)
    if step is not None:
        return value * step
    return value / (float(gain) or 1 if gain and gain != "NA" else 1)


def keywords(stored: Sequence[tuple[str, int]], total: int, order: str, version: str = "3.1") -> Pairs:
    """Return the keywords that a file must have; a type that differs from the first one's is FCS 3.2's."""
    pairs = [("$MODE", "L"), ("$NEXTDATA", "0"), ("$BYTEORD", order), ("$DATATYPE", stored[0][0])]
    pairs += [("$PAR", str(len(stored))), ("$TOT", str(total))]
    pairs += [(f"${edge}{part}", "0") for part in ("ANALYSIS", "STEXT") for edge in ("BEGIN", "END")]
    pairs += [] if version == "2.0" else [("$BEGINDATA", "@first"), ("$ENDDATA", "@last")]
    for n, (kind, bits) in enumerate(stored, start=1):
        pairs += [(f"$P{n}N", f"D{n}"), (f"$P{n}B", str(bits)), (f"$P{n}E", "0,0"), (f"$P{n}R", str(1 << bits))]
        pairs += [(f"$P{n}DATATYPE", kind)] if kind != stored[0][0] else []
    return pairs


def changed(pairs: Pairs, **values: str | None) -> Pairs:
    """Return keywords with other values, at their places; None leaves one out, new ones follow."""
    given = {f"${key}": value for key, value in values.items()}
    there = [(key, given.pop(key, value)) for key, value in pairs]
    return [(key, value) for key, value in (*there, *given.items()) if value is not None]


def fcs_file(
    pairs: Pairs,
    data: bytes,
    *,
    version: str = "3.1",
    mark: str = "/",
    header: str = "right",
    text: str = "right",
    doubled: bool = True,
    supplement: Pairs | None = None,
    encoding: str = "utf-8",
) -> bytes:
    """Return a file: HEADER, TEXT, DATA, and supplemental TEXT.

    `header` and `text` say which offsets of DATA are there: right, zero, blank, late (the end is past the file),
    after (the end is the byte after the last one), large (99999999) or absent; `doubled`, whether delimiters are.
    """

    def segment(entries: Pairs) -> bytes:
        fields = (field.replace(mark, mark * 2) if doubled else field for entry in entries for field in entry)
        return (mark + "".join(field + mark for field in fields)).encode(encoding)

    def offsets(which: str, first: int, last: int) -> tuple[str, str]:
        ends = {"late": last + 755, "after": last + 1, "large": 99_999_999}
        if which in ("zero", "blank"):
            return ("0", "0") if which == "zero" else (" ", " ")
        return str(first), str(ends.get(which, last))

    extra = b"" if supplement is None else segment(supplement)

    def told(start: int) -> Pairs:
        first, last = offsets(text, start, start + len(data) - 1)
        at = {"@first": f"{first:>12}", "@last": f"{last:>12}"}
        filled = [(key, at.get(value, value)) for key, value in pairs if text != "absent" or value not in at]
        where = {"BEGINSTEXT": f"{start + len(data):12}", "ENDSTEXT": f"{start + len(data) + len(extra) - 1:12}"}
        return changed(filled, **where) if extra else filled

    start = 58 + len(segment(told(0)))
    body = segment(told(start))
    places = ["58", str(start - 1), *offsets(header, start, start + len(data) - 1), "0", "0"]
    return f"FCS{version:<7}{''.join(f'{place:>8}' for place in places)}".encode() + body + data + extra
