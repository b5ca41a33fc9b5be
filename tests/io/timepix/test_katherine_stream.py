"""A running Katherine: its words cut anywhere, from files that grow, through TCP and UDP; what is lost is counted."""

from __future__ import annotations

import socket
import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskclust import EventBuilder, EventStream
from daskclust.io import KatherineReader, open_katherine, receive
from daskclust.io.timepix import sources
from daskclust.io.timepix.sources import Break, Cut

NAMES = ("x", "y", "toa", "tot", "chip", "frame")


def made(frames: int, hits: int = 40, seed: int = 0, *, unsent: int = 0, lost: int = 0, driven: bool = False) -> bytes:
    """Return the words of frames as the readout sends them: begin, its time, offsets and hits, end, counts."""
    rng, words = np.random.default_rng(seed), list[int]()
    for number in range(frames):
        words += [7 << 44, 8 << 44 | 1000 * number, 9 << 44]
        for k, (x, y, toa, tot, fine) in enumerate(rng.integers(0, (20, 20, 2**14, 1024, 16), (hits, 5)).tolist()):
            words += [5 << 44 | k // 10] * (driven and k % 10 == 0)
            words.append(4 << 44 | y << 36 | x << 28 | toa << 14 | tot << 4 | fine)
        words += [10 << 44, 11 << 44, *[13 << 44 | lost] * (lost > 0), 12 << 44 | hits + unsent]
    return b"".join(word.to_bytes(6, "little") for word in words)


# Two frames of four hits from the emulator of libkatherine (seed 7, a hot column), and what its decoder makes of them:
# frame, x, y, ToA, fToA, ToT. 200 000 such hits, of frames and data-driven, were compared once.
EMULATED = (
    "000000000070000000000080000000000090ad3020130040f62340161040b01760192040d53e801c3040803e000000a0"
    "0000000000b00300000000d00400000000c0000000000070803e000000800000000000908c1f201300400b3f40161040"
    "0c33601920404505801c3040007d000000a00000000000b00300000000d00400000000c0"
)
DECODED = [
    (0, 1, 0, 3200, 13, 778),
    (0, 1, 1, 6400, 6, 575),
    (0, 1, 2, 9600, 0, 379),
    (0, 1, 3, 12800, 5, 1005),
    (1, 1, 0, 3200, 12, 504),
    (1, 1, 1, 6400, 11, 1008),
    (1, 1, 2, 9600, 12, 816),
    (1, 1, 3, 12800, 5, 84),
]


def test_words_of_libkatherine(write: Any) -> None:
    ds = open_katherine(write(bytes.fromhex(EMULATED)))
    frame, x, y, toa, fine, tot = np.array(DECODED).T
    for name, wanted in {"frame": frame, "x": x, "y": y, "toa": 25 * toa - 25 / 16 * fine, "tot": 25 * tot}.items():
        np.testing.assert_array_equal(ds[name], wanted, err_msg=name)
    assert (ds.attrs["n_lost_pixels"], ds.attrs["n_sent_pixels"], ds.attrs["n_missing_pixels"]) == (6, 8, 0)


def read(reader: KatherineReader, pieces: list[bytes]) -> dict[str, Any]:
    parts = [*map(reader.feed, pieces), reader.close()]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@given(data=st.data(), driven=st.booleans())
def test_words_that_are_cut_anywhere_are_those_of_the_file(write: Any, data: st.DataObject, driven: bool) -> None:
    raw = made(3, 15, driven=driven, lost=2)[: -data.draw(st.integers(0, 8)) or None]
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8))), len(raw)]
    reader = KatherineReader(frames=True)
    found = read(reader, [raw[a:b] for a, b in pairwise(cuts)])
    ds = open_katherine(write(raw), frame="all")
    order = np.lexsort((found["toa"], found["frame"]))
    for name in NAMES:
        np.testing.assert_array_equal(found[name][order], ds[name], err_msg=name)
        assert found[name].dtype == ds[name].dtype
    assert {name: ds.attrs[name] for name in reader.counts} == reader.counts


def test_what_is_lost_is_counted() -> None:
    raw = made(3, 15, unsent=4, lost=2)
    reader = KatherineReader(frames=True)
    hits = 6 * (3 + 5)  # from the middle of a frame on, and without six words of the second one
    found = read(reader, [raw[hits : len(raw) // 2], raw[len(raw) // 2 + 36 :], b"abc"])
    assert found["frame"].max() == 2
    assert (reader.counts["n_lost_pixels"], reader.counts["n_missing_pixels"]) == (6, 3 * 15 + 3 * 4 - len(found["x"]))
    assert (reader.counts["n_finished_frames"], reader.counts["n_truncated_bytes"]) == (3, 3)


def test_hits_before_a_second_frame_are_given_before_the_error() -> None:
    raw = made(2, 20)
    for pieces in ([raw], [raw[:100], raw[100:]]):
        stream = EventStream(pieces, EventBuilder(200.0), reader=KatherineReader())
        with pytest.raises(ValueError, match="hits of frame 1 after those of frame 0, and times begin anew"):
            list(stream)
        assert stream.counters.hits_out == 20
    frames = EventStream([raw], EventBuilder(), reader=KatherineReader(frames=True))
    assert sum(int(table["size"].sum()) for table in frames) == 40


def test_times_of_a_data_driven_acquisition(write: Any) -> None:
    raw = made(1, 4000, driven=True)
    stream = EventStream(
        [raw[k : k + 1001] for k in range(0, len(raw), 1001)], EventBuilder(2e4), reader=KatherineReader(), buffer=500
    )
    found = sum(table.sizes["cluster"] for table in stream)
    assert found == EventBuilder(2e4).fit(open_katherine(write(raw))).n_clusters_
    assert stream.counters.late_hits == 0


# ------------------------------------------------------------------------------------------------------------------ UDP
def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def sent(datagrams: list[bytes]) -> list[bytes]:
    """Return what `receive` gives of datagrams, which are sent once it listens, until all of them are there."""
    port, has_begun, found = free_port(), threading.Event(), list[bytes]()

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not has_begun.wait(0.01):
                sender.sendto(b"", ("127.0.0.1", port))  # has no words
            for datagram in datagrams:
                sender.sendto(datagram, ("127.0.0.1", port))
                time.sleep(0.001)

    def stop() -> bool:
        has_begun.set()  # it is bound
        return sum(map(len, found)) >= sum(map(len, datagrams))

    sender = threading.Thread(target=send)
    sender.start()
    for block in receive(f"udp://127.0.0.1:{port}", idle=60.0, stop=stop):
        found.append(block)
    sender.join()
    return found


def test_datagrams_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_LOOK", 0.01)
    raw = made(5)
    found = sent([raw[k : k + 1200] for k in range(0, len(raw), 1200)])
    assert b"".join(found) == raw
    stream = EventStream(iter(found), EventBuilder(), reader=KatherineReader(frames=True))
    assert sum(int(table["size"].sum()) for table in stream) == 200


def test_a_datagram_that_is_cut_shifts_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_LOOK", 0.01)
    raw = made(2)
    found = sent([raw[:301], raw[306:]])
    assert [type(item) for item in found if isinstance(item, Break)] == [Cut]
    stream = EventStream(iter(found), EventBuilder(), reader=KatherineReader(frames=True))
    assert sum(int(table["size"].sum()) for table in stream) == 79
    counts = stream.reader.counts
    assert (counts["n_missing_pixels"], counts["n_truncated_bytes"], stream.counters.reconnections) == (1, 1, 0)


def test_datagrams_without_room_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(sources, "_ROOM", 1)
    port, blocks = free_port(), []
    address = f"udp://127.0.0.1:{port}"
    source = receive(address, timeout=0.3, stop=lambda: bool(blocks) and len(blocks) > 1)
    with pytest.raises(TimeoutError, match="no datagram came to"):
        next(source)
    source = receive(address, idle=0.3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        thread = threading.Thread(target=lambda: blocks.append(next(source)))
        thread.start()
        while thread.is_alive():
            sender.sendto(bytes(6), ("127.0.0.1", port))
            time.sleep(0.01)
        for _ in range(1000):  # nobody reads them
            sender.sendto(bytes(600), ("127.0.0.1", port))
        blocks.append(next(source))
        sender.sendto(bytes(6), ("127.0.0.1", port))  # which comes with the count
        blocks.extend(source)
    assert sum(map(len, blocks)) < 600_000
    assert f"datagrams to {address} were lost" in caplog.text
