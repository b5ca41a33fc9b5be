"""What zarr stores claim, checked before zarr believes it: codecs, and the sizes of chunks; and chunks not there."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from daskclust.core.data.quote import quoted

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
                        f"{os.path.relpath(file, path)} names the codec {quoted(codec)}, which is none for numbers; "
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


def check_chunks(array: Any, folder: str, fill_missing: bool) -> None:
    """Raise for an array whose chunks would be much larger than what is stored of it, and where one is not there.

    Parameters
    ----------
    array : zarr.Array
        Of one or two dimensions.
    folder : str
        Where it is.
    fill_missing : bool
        Whether chunks that are not there may be.

    Raises
    ------
    ValueError
        With both sizes, or with the first chunk that is not there.
    """
    sizes = {
        os.path.relpath(entry.path, folder): entry.stat().st_size
        for place, _, _ in os.walk(folder)
        for entry in os.scandir(place)
        if entry.is_file()
    }
    stored, claimed = sum(sizes.values()), _chunk_bytes(array)
    if claimed > stored * _MOST_EXPANSION + _ALWAYS:
        raise ValueError(f"its chunks {_chunk_shape(array)} claim {claimed} bytes each, and {stored} are stored of all")
    if not fill_missing:
        # Of one more than there are files, one is not there, however many the array claims.
        for place in itertools.islice(_places(array, 0, array.shape[0]), len(sizes) + 1):
            if _key(array, place) not in sizes:
                raise _missing(array, _key(array, place), place, _chunk_shape(array))


def check_parts(array: Any, folder: str, start: int, stop: int, fill_missing: bool) -> None:
    """Raise where a chunk that has some rows is not there, or claims more than a chunk has.

    Parameters
    ----------
    array : zarr.Array
        Of one or two dimensions.
    folder : str
        Where it is.
    start, stop : int
        The rows.
    fill_missing : bool
        Whether chunks that are not there may be.

    Raises
    ------
    ValueError
        With the chunk. Decoders allocate what its header claims before they read; of a shard, the index is looked at.
    """
    claim_of, most = _CLAIMS.get(_outermost(array)), _chunk_bytes(array) * _WIDER + _CHECKSUMS
    for place in _places(array, start, stop):
        name = _key(array, place)
        file = os.path.join(folder, name)
        if not os.path.isfile(file):
            if fill_missing:
                continue
            raise _missing(array, name, place, _chunk_shape(array))
        if claim_of is not None:
            with open(file, "rb") as stream:
                claimed = claim_of(stream.read(_HEAD))
            if claimed > most:
                raise ValueError(
                    f"chunk {name} claims {claimed} bytes, and a chunk has {_chunk_bytes(array)}: it is damaged"
                )
        if getattr(array, "shards", None) and not fill_missing:
            for inner in _missing_inner(array, file, place):
                if inner[0] * array.chunks[0] < stop and (inner[0] + 1) * array.chunks[0] > start:
                    raise _missing(array, f"{inner} of shard {name}", inner, array.chunks)


def _places(array: Any, start: int, stop: int) -> Iterator[tuple[int, ...]]:
    """Yield the places, in the grid of chunks, of those that have rows start to stop."""
    shape = _chunk_shape(array)
    if start < stop and all(shape):
        others = (range(math.ceil(length / step)) for length, step in zip(array.shape[1:], shape[1:], strict=True))
        tails = list(itertools.product(*others))
        for row in range(start // shape[0], (stop - 1) // shape[0] + 1):
            yield from ((row, *tail) for tail in tails)


def _missing(array: Any, name: str, place: tuple[int, ...], shape: tuple[int, ...]) -> ValueError:
    """Return what to say of a chunk that is not there."""
    first, stop = place[0] * shape[0], min((place[0] + 1) * shape[0], array.shape[0])
    member = getattr(array, "path", "")
    what = f"array {quoted(member)}" if member else "the array"
    return ValueError(
        f"{what} has no chunk {name} (rows {first} to {stop - 1}, counted "
        f"from 0): it is lost or was never written, or all its values equal the fill value {array.fill_value}, and the "
        "writer left it out, as zarr does without write_empty_chunks=True; write the store again, or give "
        "fill_missing=True to take the fill value there"
    )


def _missing_inner(array: Any, file: str, place: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the places, in the grid of the array's inner chunks, of those that a shard does not have."""
    codec = array.metadata.codecs[0]
    codecs = {type(each).__name__: each for each in codec.index_codecs}
    if not set(codecs) <= {"BytesCodec", "Crc32cCodec"}:
        return  # only zarr can read such an index
    grid = tuple(shard // chunk for shard, chunk in zip(array.shards, array.chunks, strict=True))
    length = 16 * math.prod(grid)  # offset and size of each inner chunk
    after = 4 if "Crc32cCodec" in codecs else 0
    with open(file, "rb") as stream:
        if _word(codec.index_location) == "end":
            stream.seek(max(os.path.getsize(file) - length - after, 0))
        index = stream.read(length)
    if len(index) < length:
        return  # damaged, as zarr says
    order = ">" if _word(getattr(codecs["BytesCodec"], "endian", "little")) == "big" else "<"
    sizes = np.frombuffer(index, f"{order}u8").reshape(*grid, 2)[..., 1]
    for within in np.argwhere(sizes == np.iinfo(np.uint64).max).tolist():
        inner = tuple(p * n + k for p, n, k in zip(place, grid, within, strict=True))
        if all(k * step < length for k, step, length in zip(inner, array.chunks, array.shape, strict=True)):
            yield inner


def _word(value: Any) -> str:
    """Return what a codec's option says, which may be of an enumeration."""
    return str(getattr(value, "value", value))


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
    found = array.compressors if hasattr(array, "compressors") else (array.compressor,)  # as before zarr 3
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
