"""Parquet files of parts that workers encode: their bytes one after the other, and one list of row groups at the end.

Row groups tell where their columns begin in the file. pyarrow joins lists of row groups, but cannot move them: that is
done here, in the compact protocol of Thrift (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_END = 8  # bytes: length of the metadata, and the magic number
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
# Numbers of fields of FileMetaData (parquet.thrift) that are places in the file, and of that which numbers row groups.
_PLACES = (4, 5), (4, 1, 2), (4, 1, 3, 9), (4, 1, 3, 10), (4, 1, 3, 11)
_ORDINAL = (4, 7)
_LENGTH, _PLACE = struct.Struct("<I"), struct.Struct("<q")


def append(target: BinaryIO | str, encoded: Any) -> bytes:
    """Write a whole Parquet file of a row group, without its ends, behind what is in a stream, or in a file by name.

    Several processes may write to a file by name. Return what `joining` is to be told: where it is, and its list.
    """
    part = memoryview(encoded)
    end = len(part) - _END - _LENGTH.unpack(part[-_END:-4])[0]
    columns = part[len(_MAGIC) : end]
    if isinstance(target, str):
        place = _append_by_name(target, columns)
    else:
        place = target.tell()
        target.write(columns)
    return _PLACE.pack(place) + part[end:-_END]


def _append_by_name(name: str, columns: memoryview) -> int:
    """Write to the end of a file that is there, to which others write meanwhile; return where it begins."""
    with open(name, "ab", 0, opener=lambda path, flags: os.open(path, flags & ~os.O_CREAT)) as file:
        while True:
            place, rest = file.seek(0, os.SEEK_END), columns
            while rest:
                written = file.write(rest)  # all, but where there is no room for it, or it is more than 2 GiB
                place = file.tell() - written if rest is columns else place
                rest = rest[written:]
            if file.tell() == place + len(columns):  # else others came between
                return place


@contextmanager
def joining(stream: BinaryIO) -> Iterator[dict[int, bytes]]:
    """Make an open stream one file of parts: the body appends them, in any order, and adds what it is told by number.

    The list at the end has them in the order of their numbers. All have the same columns; the attributes of the first
    are those of the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream.write(_MAGIC)
    stream.flush()
    parts: dict[int, bytes] = {}
    yield parts
    stream.seek(0, os.SEEK_END)
    groups = []
    for number in sorted(parts):
        (place,) = _PLACE.unpack_from(parts[number])
        added = {**dict.fromkeys(_PLACES, place - len(_MAGIC)), _ORDINAL: number}
        moved = _Moved(parts[number][_PLACE.size :], added).struct()
        groups.append(pq.read_metadata(pa.BufferReader(_MAGIC + moved + _LENGTH.pack(len(moved)) + _MAGIC)))
    joined, *others = groups
    for group in others:
        joined.append_row_groups(group)
    metadata = pa.BufferOutputStream()
    joined.write_metadata_file(metadata)
    stream.write(memoryview(metadata.getvalue())[len(_MAGIC) :])


class _Moved:
    """A struct of Thrift that is copied field by field, with numbers added to some; a path of ids names a field."""

    def __init__(self, data: bytes, added: Mapping[tuple[int, ...], int]) -> None:
        self._data, self._at, self._added, self._out = data, 0, added, bytearray()

    def struct(self, path: tuple[int, ...] = ()) -> bytes:
        """Copy a struct; return all that was copied so far."""
        field = 0
        while head := self._copy(1)[0]:
            field = field + (head >> 4) if head >> 4 else self._integer() >> 1
            self._value(head & 15, (*path, field))
        return bytes(self._out)

    def _value(self, kind: int, path: tuple[int, ...], *, in_list: bool = False) -> None:
        if kind in _BOOLEANS:
            self._copy(in_list)  # that of a field is its kind
        elif kind in (_BYTE, _DOUBLE):
            self._copy(1 if kind == _BYTE else 8)
        elif kind in _INTEGERS:
            self._integer(self._added.get(path, 0), is_there=path == _ORDINAL)
        elif kind == _BINARY:
            self._copy(self._integer())
        elif kind in _LISTS:
            head = self._copy(1)[0]
            for _ in range(head >> 4 if head >> 4 < 15 else self._integer()):
                self._value(head & 15, path, in_list=True)
        elif kind == _STRUCT:
            self.struct(path)
        else:
            raise ValueError(f"metadata of Parquet have a value of kind {kind}, which is not known")

    def _copy(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        self._at += count
        self._out += part
        return part

    def _integer(self, added: int = 0, *, is_there: bool = False) -> int:
        """Copy an integer of 7 bits a byte, with a number added unless it is 0, no place; return what it was."""
        value = bits = 0
        while True:
            byte = self._data[self._at]
            self._at, value, bits = self._at + 1, value | (byte & 127) << bits, bits + 7
            if byte < 128:
                break
        rest = value + 2 * added * bool(value or is_there)  # 2: signed ones alternate, 0, -1, 1, -2 ...
        while rest > 127:
            self._out.append(rest & 127 | 128)
            rest >>= 7
        self._out.append(rest)
        return value
