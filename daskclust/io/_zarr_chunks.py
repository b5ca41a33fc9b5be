"""What zarr stores claim, checked before zarr believes it: codecs, and the sizes of chunks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

# Codecs of numbers. Others may run what they find in a chunk, as "pickle" does.
_CODECS = {
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "endian", "fixedscaleoffset",
    "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "pcodec", "quantize", "sharding_indexed",
    "shuffle", "transpose", "zfpy", "zlib", "zstd",
}  # fmt: skip
_METADATA = (".zarray", ".zmetadata", "zarr.json")

# A chunk of noise is about as large as what it holds; one of a single number may be of a few bytes, whatever it holds.
_MOST_EXPANSION = 2000
_ALWAYS = 1 << 26
# What codecs inside the outermost may make of a chunk: wider numbers, checksums.
_WIDER, _CHECKSUMS = 16, 4096
_HEAD = 18  # bytes of the longest header


def check_codecs(path: str) -> None:
    """Raise for a store that names a codec which is none for numbers, in its root or in an array of it.

    Parameters
    ----------
    path : str
        The folder of the store.

    Raises
    ------
    ValueError
        With the codec, and for metadata that is no JSON.
    """
    folders = [path, *(entry.path for entry in os.scandir(path) if entry.is_dir())]
    for file in (os.path.join(folder, name) for folder in folders for name in _METADATA):
        if os.path.isfile(file):
            with open(file, encoding="utf-8") as stream:
                found = json.load(stream)
            for codec in _codecs(found):
                if codec.removeprefix("numcodecs.") not in _CODECS:
                    raise ValueError(
                        f"{os.path.relpath(file, path)} names the codec {codec[:40]!r}, which is none for numbers; "
                        "write the array with another, such as 'zstd'"
                    )


def _codecs(entry: Any) -> Iterator[str]:
    """Yield the names of all codecs that metadata of either format has."""
    if isinstance(entry, list):
        for item in entry:
            yield from _codecs(item)
    elif isinstance(entry, dict):
        if isinstance(entry.get("id"), str):
            yield entry["id"]
        for key, value in entry.items():
            if key == "attributes" or key.endswith(".zattrs"):
                continue
            if key in ("codecs", "index_codecs") and isinstance(value, list):
                yield from (str(item.get("name") if isinstance(item, dict) else item) for item in value)
            yield from _codecs(value)


def check_chunks(array: Any, folder: str) -> None:
    """Raise for an array whose chunks would be much larger than what is stored of it.

    Parameters
    ----------
    array : zarr.Array
        Of one or two dimensions.
    folder : str
        Where it is.

    Raises
    ------
    ValueError
        With both sizes.
    """
    sizes = (entry.stat().st_size for place, _, _ in os.walk(folder) for entry in os.scandir(place) if entry.is_file())
    stored, claimed = sum(sizes), _chunk_bytes(array)
    if claimed > stored * _MOST_EXPANSION + _ALWAYS:
        raise ValueError(f"its chunks {_chunk_shape(array)} claim {claimed} bytes each, and {stored} are stored of all")


def check_heads(array: Any, folder: str, start: int, stop: int) -> None:
    """Raise where a chunk's own header claims more than a chunk has: decoders allocate that before they read.

    Parameters
    ----------
    array : zarr.Array
        Of one or two dimensions.
    folder : str
        Where it is.
    start, stop : int
        Rows whose chunks are to be looked at.

    Raises
    ------
    ValueError
        With the chunk, and both sizes.
    """
    codec, most = _outermost(array), _chunk_bytes(array) * _WIDER + _CHECKSUMS
    shape = _chunk_shape(array)
    if codec not in _CLAIMS or start >= stop or not all(shape):
        return
    others = [range(math.ceil(length / step)) for length, step in zip(array.shape[1:], shape[1:], strict=True)]
    for row in range(start // shape[0], (stop - 1) // shape[0] + 1):
        for rest in others[0] if others else (None,):
            name = _key(array, (row,) if rest is None else (row, rest))
            file = os.path.join(folder, name)
            if not os.path.isfile(file):
                continue  # its numbers are the fill value
            with open(file, "rb") as stream:
                claimed = _CLAIMS[codec](stream.read(_HEAD))
            if claimed > most:
                raise ValueError(
                    f"chunk {name} claims {claimed} bytes, and a chunk has {_chunk_bytes(array)}: it is damaged"
                )


def _chunk_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of what is one file: a chunk, or a shard of several."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def _chunk_bytes(array: Any) -> int:
    """Return the bytes of the numbers of a chunk."""
    return math.prod(_chunk_shape(array)) * int(np.dtype(array.dtype).itemsize)


def _key(array: Any, place: tuple[int, ...]) -> str:
    """Return the name of a chunk within its array."""
    encode = getattr(getattr(array, "metadata", None), "encode_chunk_key", None)
    return str(encode(place)) if encode else str(array._chunk_key(place)).rpartition("/")[2]


def _outermost(array: Any) -> str:
    """Return the name of the codec that made the bytes of a chunk, "" for none; checksums stand at the end of these."""
    if getattr(array, "shards", None):
        return ""  # headers are within the shard
    found = getattr(array, "compressors", None) or ((array.compressor,) if hasattr(array, "compressor") else ())
    names = [type(codec).__name__.lower().removesuffix("codec") for codec in found if codec is not None]
    return next((name for name in reversed(names) if not name.startswith("crc32")), "")


def _zstd_claim(head: bytes) -> int:
    """Return the size of the content that the header of a frame tells, 0 where it tells none (RFC 8878)."""
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        return 0
    flag, is_single, dictionary = head[4] >> 6, head[4] >> 5 & 1, (0, 1, 2, 4)[head[4] & 3]
    length = (is_single, 2, 4, 8)[flag]
    first = 5 + (1 - is_single) + dictionary
    return int.from_bytes(head[first : first + length], "little")


_CLAIMS = {
    "blosc": lambda head: int.from_bytes(head[4:8], "little"),
    "lz4": lambda head: int.from_bytes(head[:4], "little"),
    "zstd": _zstd_claim,
}
