"""Raw files of the Katherine readout."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases.files.tpx3_words import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust.io import open_katherine


def word(kind: int, value: int = 0) -> int:
    """Return a word of some type."""
    return kind << 44 | value


def hit(x: int, y: int, toa: int, tot: int, ftoa: int) -> int:
    """Return the word of a hit."""
    return word(4, y << 36 | x << 28 | toa << 14 | tot << 4 | ftoa)


def raw(words: list[int], rest: bytes = b"") -> bytes:
    """Return words, and bytes after them."""
    return b"".join(w.to_bytes(6, "little") for w in words) + rest


def decode(words: list[int]) -> list[tuple[Any, ...]]:
    """Return hits as (toa, x, y, tot), word by word, sorted."""
    offset, hits = 0, []
    for w in words:
        kind = w >> 44
        if kind == 5:
            offset = w & 0xFFFFFFFF
        elif kind == 7:
            offset = 0
        elif kind == 4:
            toa = (w >> 14) & 0x3FFF
            time = 25 * (16384 * offset + toa) - Fraction(25, 16) * (w & 15)
            hits.append((time, (w >> 28) & 255, (w >> 36) & 255, 25 * ((w >> 4) & 1023)))
    return sorted(hits, key=lambda entry: entry[0])


NAMES = ("toa", "x", "y", "tot")
HITS = st.builds(
    hit, st.integers(0, 255), st.integers(0, 255), st.integers(0, 2**14 - 1), st.integers(0, 1023), st.integers(0, 15)
)
OTHERS = st.one_of(
    st.builds(word, st.just(5), st.integers(0, 2**30)),  # 5 days: float64 has every tick for the first 6.5
    st.builds(word, st.just(5), st.integers(0, 3)),
    st.builds(word, st.sampled_from([0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 14, 15]), st.integers(0, 2**44 - 1)),
)


@given(words=st.lists(st.one_of(HITS, HITS, OTHERS)), first=HITS, rest=st.binary(max_size=5), frame=st.booleans())
def test_equals_a_decoder_word_by_word(write: Any, words: list[int], first: int, rest: bytes, frame: bool) -> None:
    words = [word(7)] * frame + [first, *words]
    ds = open_katherine(write(raw(words, rest)))
    assert rows_of(ds, *NAMES) == decode(words)
    kinds = [w >> 44 for w in words]
    counts = {
        "n_words": len(words),
        "n_frames": int(frame),
        "n_lost_pixels": sum(w & (2**44 - 1) for w in words if w >> 44 == 13),
        "n_sent_pixels": sum(w & (2**44 - 1) for w in words if w >> 44 == 12),
        "n_aborted": kinds.count(14),
        "n_unknown_words": sum(kind in (0, 1, 6, 15) for kind in kinds),
        "n_truncated_bytes": len(rest),
    }
    assert {name: ds.attrs[name] for name in counts} == counts
    assert all(type(ds.attrs[name]) is int for name in [*counts, "n_unsorted"])
    assert (ds["chip"].values == 0).all()


def test_frames(write: Any) -> None:
    first = [hit(1, 0, 50, 1, 0), word(5, 1), hit(2, 0, 60, 1, 0)]
    path = write(raw([*first, word(7), word(7), hit(3, 0, 55, 1, 0), word(12, 1), word(7)]))
    every = open_katherine(path)
    assert rows_of(every, "frame", "x", "toa") == [(0, 1, 1250), (0, 2, 25 * (2**14 + 60)), (2, 3, 1375)]
    assert every.attrs["n_unsorted"] == 0
    one = write(raw([word(7), hit(1, 0, 50, 1, 0), hit(1, 0, 40, 1, 0)]), ".one")
    assert "frame" not in open_katherine(one)
    assert rows_of(open_katherine(one, frame="all"), "frame", "toa") == [(0, 1000), (0, 1250)]
    assert [open_katherine(path, frame=k)["x"].values.tolist() for k in range(4)] == [[1, 2], [], [3], []]
    np.testing.assert_array_equal(open_katherine(path, frame=2)["toa"], [55 * 25])  # the offset is the old frame's
    for wrong, error in ((4, ValueError), (-1, ValueError), (True, TypeError), ("0", TypeError)):
        with pytest.raises(error, match=f"frame of {path} must be .*, got {wrong!r}"):
            open_katherine(path, frame=wrong)  # type: ignore[arg-type]


def test_wrong_files(write: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a Katherine file: none of its 2 words .* 1 are of unknown types"):
        open_katherine(write(raw([word(15), word(5)])))
    ds = open_katherine(write(b"abc"))
    assert (ds.sizes["hit"], ds.attrs["n_truncated_bytes"]) == (0, 3)
    ds = open_katherine(write(raw([word(7), word(13, 5), word(12)])))
    assert (ds.sizes["hit"], ds.attrs["n_lost_pixels"]) == (0, 5)


@settings(max_examples=300)
@given(data=st.binary(max_size=200), frame=st.sampled_from([None, None, 0, 1]))
def test_any_bytes_give_hits_or_a_clear_error(write: Any, data: bytes, frame: int | None) -> None:
    path = write(data)
    try:
        ds = open_katherine(path, frame=frame)
    except ValueError as error:
        assert path in str(error)  # noqa: PT017
    else:
        assert (np.diff(ds["toa"]) >= 0).all()
        assert ds.sizes["hit"] <= len(data) // 6


def test_slow_clock(write: Any) -> None:
    path = write(raw([hit(9, 200, 100, 7, 5)]))
    assert rows_of(open_katherine(path, fast_clock=False), *NAMES) == [(2500, 9, 200, 175)]
    assert rows_of(open_katherine(path), *NAMES) == [(2500 - Fraction(125, 16), 9, 200, 175)]


def test_chunks(write: Any) -> None:
    path = write(raw([hit(k, k, k, 1, 0) for k in range(5)]))
    assert open_katherine(path, chunks=2).chunks["hit"] == (2, 2, 1)
