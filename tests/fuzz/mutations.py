"""Damage to files: what disks, transfers, programs and people with intent do to them."""

from __future__ import annotations

import io
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

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


def damage(source: Path, target: Path, rng: Rng) -> None:
    """Write a damaged copy of a file, or of a folder with files of which some are damaged."""
    if source.is_file():
        target.write_bytes(damaged(source.read_bytes(), source.suffix, rng))
        return
    shutil.copytree(source, target)
    inside = sorted(path for path in target.rglob("*") if path.is_file())
    for _ in range(int(rng.integers(1, 3))):
        # Metadata half of the time: there is little of it, and it says how large all else is.
        about = [path for path in inside if path.suffix == ".json" or path.name.startswith(".z")]
        path = _pick(about if about and rng.random() < 0.6 else inside, rng)
        if not path.exists():
            continue
        if rng.random() < 0.1:
            path.unlink()
        else:
            path.write_bytes(damaged(path.read_bytes(), path.suffix, rng))


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


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _footer_number(data: bytes, rng: Rng) -> bytes:
    """A number in the footer of a Parquet file is another one; the length in front of the last four bytes is right."""
    if len(data) < 12:
        return data
    length = struct.unpack("<I", data[-8:-4])[0]
    if not 0 < length <= len(data) - 12:
        return data
    body, footer = data[: -8 - length], data[-8 - length : -8]
    place = int(rng.integers(length))
    stop = place + 1
    while stop < length and footer[stop - 1] & 128:
        stop += 1
    value = int(_pick((0, 1, 2, 200, 10**6, 2**31, 2**32 - 1, 2**41, 2**62, 2**64 - 1), rng))
    footer = footer[:place] + _varint(value) + footer[stop:]
    return body + footer + struct.pack("<I", len(footer)) + data[-4:]


def _wide_varint(data: bytes, rng: Rng) -> bytes:
    """A number in the header of a page of a Parquet file, of two bytes or more, is the largest that these hold."""
    found = list(re.finditer(rb"[\x80-\xff]{1,4}[\x00-\x7f]", data))
    if not found:
        return data
    match = _pick(found, rng)
    length = match.end() - match.start()
    return (
        data[: match.start()] + b"\xff" * (length - 1) + _pick((b"\x7f", b"\x0f", b"\x07"), rng) + data[match.end() :]
    )


def _zip_member(data: bytes, rng: Rng) -> bytes:
    """A member of an archive is damaged, and the archive made anew, so that its sizes and checksums are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
            comment = archive.comment
    except Exception:  # damaged already
        return data
    name = _pick(list(members) or [""], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", _pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), rng)) as archive:
        for other, content in members.items():
            archive.writestr(other, damaged(content, ".npy", rng) if other == name else content)
        archive.comment = _flip_bits(comment, rng) if rng.random() < 0.2 else comment
    return out.getvalue()


_BINARY: tuple[Mutation, ...] = (_binary_number, _binary_number, _flip_bits, _overwrite, _zeros)
_TEXT: tuple[Mutation, ...] = (
    _text_number, _text_number_in_place, _insert_text, _other_encoding, _swap_lines, _join_lines, _text_number,
)  # fmt: skip
_ANY: tuple[Mutation, ...] = (
    _flip_bits, _overwrite, _cut, _cut_start, _remove, _insert, _insert_text, _repeat, _zeros, _binary_number,
)  # fmt: skip

# What else happens to files with an extension; "" are those of gmhclust, text or not, and chunks of zarr.
_OWN: dict[str, tuple[Mutation, ...]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".t3pa", ".json", ".zarray", ".zattrs", ".zgroup"), _TEXT),
    **dict.fromkeys((".tpx3", ".raw", ".h5", ".hdf5", ".root", ".arborx"), _BINARY),
    **dict.fromkeys((".npy", ".fcs", ""), (*_BINARY, *_TEXT)),
    **dict.fromkeys(
        (".parquet",), (*_BINARY, _footer_number, _footer_number, _footer_number, _wide_varint, _wide_varint)
    ),
    **dict.fromkeys((".npz",), (*_BINARY, _zip_member, _zip_member, _zip_member)),
}
