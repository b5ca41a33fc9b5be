"""Damage to files: what disks, transfers, programs and people with intent do to them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]

_POWERS = (7, 8, 16, 31, 32, 40, 62, 63, 64)
_EXTREMES = (0, 1, -1, 2, 7, *(2**k + d for k in _POWERS for d in (-1, 0)))
_NUMBERS = (
    b"0", b"-1", b"1", b"99999999", b"2147483648", b"4294967296", b"999999999999", b"18446744073709551616",
    b"1" * 400, b"1" * 5000, b"-9223372036854775809", b"1e5", b"1e308", b"1e400", b"-inf", b"nan", b"1.5", b"0x10",
    b"1_0", b"", b" ", b"1,5", b"--1", b"1e", b"\xd9\xa1", b"\xc2\xb2", b"null", b"true", b"[]", b"{}", b'"x"',
    b"\x00", b"None",
)  # fmt: skip
_TEXTS = (
    b"\x00", b"\x00" * 100, b"\n", b"\r", b"\r\n\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"#", b"# daskclust: {", b'"',
    b"'", b"\t", b",", b";", b" ", b"\xc3\x28", b"\xe2\x80\xa8", b"\x1a", b"x", b"[" * 2000, b"1 " * 3000, b"1," * 3000,
    b"a" * 70_000, b"\n" * 5000, b"$TOT/9/", b"/", b"\\", b"%s", b"__import__('os')",
)  # fmt: skip


def damaged(data: bytes, suffix: str, rng: Rng) -> bytes:
    """Return bytes with one to four kinds of damage."""
    own = _OWN.get(suffix, ())
    for _ in range(1 + int(rng.geometric(0.6)) % 4):
        mutation = _pick((*own, *own, *_ANY), rng)
        data = mutation(data, rng)
    return data


def _pick(options, rng: Rng):
    """Return one of a sequence; not by `rng.choice`, which would make an array of it."""
    return options[int(rng.integers(len(options)))]


def _place(data: bytes, rng: Rng) -> int:
    """Return a place in the bytes: often near the ends, where headers and footers are."""
    n = len(data)
    near = min(n, int(_pick((16, 64, 256, 1024), rng)))
    if rng.random() < 0.6 and n:
        k = int(rng.integers(near))
        return k if rng.random() < 0.7 else n - 1 - k
    return int(rng.integers(n + 1))


def _flip_bits(data: bytes, rng: Rng) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if out else 0):
        out[min(_place(data, rng), len(out) - 1)] ^= 1 << int(rng.integers(8))
    return bytes(out)


def _overwrite(data: bytes, rng: Rng) -> bytes:
    place, length = _place(data, rng), int(rng.integers(1, 40))
    return data[:place] + rng.bytes(length) + data[place + length :]


def _cut(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _cut_start(data: bytes, rng: Rng) -> bytes:
    return data[_place(data, rng) :]


def _remove(data: bytes, rng: Rng) -> bytes:
    place = _place(data, rng)
    return data[:place] + data[place + int(rng.integers(1, 64)) :]


def _insert(data: bytes, rng: Rng) -> bytes:
    place = _place(data, rng)
    return data[:place] + rng.bytes(int(rng.integers(1, 64))) + data[place:]


def _insert_text(data: bytes, rng: Rng) -> bytes:
    place = _place(data, rng)
    return data[:place] + _pick(_TEXTS, rng) + data[place:]


def _repeat(data: bytes, rng: Rng) -> bytes:
    """A block comes twice, or in the place of another."""
    start, length = _place(data, rng), int(rng.integers(1, 2000))
    place = _place(data, rng)
    block = data[start : start + length]
    return data[:place] + block + data[place + (len(block) if rng.random() < 0.5 else 0) :]


def _zeros(data: bytes, rng: Rng) -> bytes:
    """A page that was never written."""
    place, length = _place(data, rng), int(_pick((8, 64, 512, 4096), rng))
    return data[:place] + bytes(min(length, len(data) - place)) + data[place + length :]


def _binary_number(data: bytes, rng: Rng) -> bytes:
    """A number of a header is another one: very large, negative, off by one."""
    size = int(_pick((1, 2, 4, 4, 8, 8), rng))
    place = min(_place(data, rng), max(len(data) - size, 0))
    place -= place % size if rng.random() < 0.6 else 0
    order = _pick(("little", "big"), rng)
    old = int.from_bytes(data[place : place + size], order)
    value = _pick((*_EXTREMES, old + 1, old - 1, 2 * old, len(data)), rng)
    return data[:place] + (value % (1 << (8 * size))).to_bytes(size, order) + data[place + size :]


def _text_number(data: bytes, rng: Rng) -> bytes:
    """A number in text is another one, or none at all."""
    found = list(re.finditer(rb"[0-9]+(\.[0-9]+)?", data[: 1 << 16]))
    if not found:
        return _insert_text(data, rng)
    match = _pick(found[:40] if rng.random() < 0.5 else found, rng)
    return data[: match.start()] + _pick(_NUMBERS, rng) + data[match.end() :]


def _text_number_in_place(data: bytes, rng: Rng) -> bytes:
    """A number in text is another one of the same length, so that nothing else moves."""
    found = list(re.finditer(rb"[0-9]+", data[: 1 << 16]))
    if not found:
        return _flip_bits(data, rng)
    match = _pick(found[:40] if rng.random() < 0.5 else found, rng)
    length = match.end() - match.start()
    digits = bytes(rng.integers(48, 58, length, dtype=np.uint8)) if rng.random() < 0.5 else b"9" * length
    return data[: match.start()] + digits + data[match.end() :]


def _other_encoding(data: bytes, rng: Rng) -> bytes:
    return data.decode("latin-1").encode(_pick(("utf-16", "utf-32", "utf-8-sig", "utf-7", "utf-16-be"), rng))


def _swap_lines(data: bytes, rng: Rng) -> bytes:
    lines = data.split(b"\n")
    k, j = (int(rng.integers(len(lines))) for _ in range(2))
    lines[k], lines[j] = lines[j], lines[k]
    return b"\n".join(lines)


def _join_lines(data: bytes, rng: Rng) -> bytes:
    """One very long line."""
    return data.replace(b"\n", _pick((b" ", b",", b"\t", b""), rng))


_BINARY: tuple[Mutation, ...] = (_binary_number, _binary_number, _flip_bits, _overwrite, _zeros)
_TEXT: tuple[Mutation, ...] = (
    _text_number, _text_number_in_place, _insert_text, _other_encoding, _swap_lines, _join_lines, _text_number,
)  # fmt: skip
_ANY: tuple[Mutation, ...] = (
    _flip_bits, _overwrite, _cut, _cut_start, _remove, _insert, _insert_text, _repeat, _zeros, _binary_number,
)  # fmt: skip

# What else happens to files with an extension; "" are those of gmhclust, text or not.
_OWN: dict[str, tuple[Mutation, ...]] = {
    ".tpx3": _BINARY,
    ".raw": _BINARY,
    ".t3pa": _TEXT,
    ".clog": _TEXT,
    ".pmf": _TEXT,
    ".txt": _TEXT,
    ".fcs": (*_BINARY, *_TEXT),
    "": (*_BINARY, *_TEXT),
}
