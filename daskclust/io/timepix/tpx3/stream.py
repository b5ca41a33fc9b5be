"""Words of a running Timepix3 readout, decoded as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import word_at
from daskclust.core.device.timesort import TICK
from daskclust.io.timepix.quad import QUAD_CHIPS, check_layout
from daskclust.io.timepix.tpx3 import state as table
from daskclust.io.timepix.tpx3.decode import DTYPES, put_hit
from daskclust.io.timepix.tpx3.jumps import check_on_reset, jumps_told, tell_jumps
from daskclust.io.timepix.tpx3.state import POS, START, enter_chunk, take_word
from daskclust.io.timepix.tpx3.triggers import trigger_columns
from daskclust.io.timepix.tpx3.words import PIXEL, TDC

_DISORDER = round(600_000 / TICK)  # ticks: hits that are later than this one are counted


class WordReader:
    """Hits of a running Timepix3 readout, from its bytes, cut anywhere.

    Parameters
    ----------
    layout : {"chips", "quad"}, default "chips"
        As of `daskclust.io.open_tpx3`.
    gap : int, default 0
        Pixels between the chips of a quad.
    trigger : {1, 2}, optional
        The TDC input whose rising edges are triggers: `triggers` are kept for times of flight.
    on_reset : {"continue", "restart"}, default "continue"
        As of `daskclust.io.open_tpx3`. After a clock that was set anew, all hits of ``"restart"`` come too late for
        `daskclust.EventStream`.

    Raises
    ------
    ValueError, TypeError
        For another layout, input or `on_reset`, and a gap that is no number of pixels.

    Notes
    -----
    Times are those of `daskclust.io.open_tpx3` if global time or TDC words come before the first hits, or if the clock
    started less than 26.84 s before; else all are smaller by one and the same number of such periods. They are
    the same in whatever pieces the bytes come. The size that a header claims is believed: where no header follows the
    chunk, bytes are skipped up to one whose chunk ends at another.
    """

    def __init__(
        self,
        *,
        layout: Literal["chips", "quad"] = "chips",
        gap: int = 0,
        trigger: int | None = None,
        on_reset: Literal["continue", "restart"] = "continue",
    ) -> None:
        check_layout(layout, gap)
        if trigger not in (None, 1, 2):
            raise ValueError(f"trigger must be the TDC input 1 or 2, got {trigger!r}")
        self.trigger = trigger
        self._is_quad, self._gap, self._restarts = layout == "quad", int(gap), check_on_reset(on_reset)
        self._tables = table.new_tables(0, self._restarts)
        self._state, self._counts, _, self._jumps = self._tables
        self._triggers = np.empty(0, np.float64)
        self._rest = b""

    @property
    def counts(self) -> Mapping[str, int]:
        """What came so far, by the names in the attributes of `daskclust.io.open_tpx3`."""
        return table.named_counts(self._counts)

    @property
    def attrs(self) -> dict[str, Any]:
        """What the coordinates of hits are, as attributes of a Dataset: ``layout``, and ``gap`` of a quad."""
        return {"layout": "quad", "gap": self._gap} if self._is_quad else {"layout": "chips"}

    @property
    def clock_jumps(self) -> Mapping[str, list[float]]:
        """Where global time jumped so far, by the names in the attributes of `daskclust.io.open_tpx3`."""
        return jumps_told(self._jumps[: self._counts[table.JUMPED]])

    def feed(self, data: bytes | bytearray | memoryview) -> dict[str, npt.NDArray[Any]]:
        """Return the hits in more bytes; a word that is not complete waits.

        Parameters
        ----------
        data : bytes-like
            What came next.

        Returns
        -------
        dict of numpy.ndarray, shape (n,)
            Columns ``x``, ``y`` (pixel), ``toa``, ``tot`` (ns) and ``chip``, in the order in which hits came.
        """
        return self._decode(data, is_end=False)

    def close(self) -> dict[str, npt.NDArray[Any]]:
        """Say that no more bytes come, or that those which come do not go on where these ended.

        Returns
        -------
        dict of numpy.ndarray, shape (n,)
            Hits that waited, as of `feed`.
        """
        hits = self._decode(b"", is_end=True)
        self._state[table.BEHIND] = 0
        return hits

    def triggers(self, since: float) -> npt.NDArray[np.float64]:
        """Return the times of triggers from the last one before a time on; earlier ones are forgotten.

        Parameters
        ----------
        since : float
            The time (ns).

        Returns
        -------
        numpy.ndarray of float64, shape (k,)
            Times (ns), ascending; none without a `trigger`.
        """
        base = int(self._state[START]) * TICK
        self._triggers = self._triggers[max(int(np.searchsorted(self._triggers, since - base, "right")) - 1, 0) :]
        return self._triggers + base

    def _decode(self, data: bytes | bytearray | memoryview, *, is_end: bool) -> dict[str, npt.NDArray[Any]]:
        given = memoryview(data).cast("B")
        joined = given if not self._rest and len(given) else self._rest + bytes(given)
        bytes_ = np.frombuffer(joined, dtype=np.uint8)
        bytes_.setflags(write=False)
        most, jumped = len(bytes_) // 8 + 1, int(self._counts[table.JUMPED])
        hits = {name: np.empty(most, dtype) for name, dtype in DTYPES.items()}
        triggers = np.empty(most, np.int64), np.empty(most, np.uint64)
        found = np.zeros(2, dtype=np.int64)
        self._state[POS] = 0
        decode_stream.run(
            1, bytes_, *self._tables, _DISORDER, is_end, self._is_quad, self._gap, tuple(hits.values()), triggers, found
        )  # fmt: skip
        self._rest = bytes(joined[int(self._state[POS]) :])
        columns = {name: values[: found[0]] for name, values in hits.items()}
        columns["toa"] += self._state[START] * TICK
        if self._is_quad and columns["chip"].max(initial=0) >= QUAD_CHIPS:
            raise ValueError(f"a quad has the chips 0 to 3, got {columns['chip'].max()}; use layout='chips'")
        if self.trigger is not None and found[1]:
            told = trigger_columns(triggers[1][: found[1]], triggers[0][: found[1]])
            is_wanted = (told["channel"] == self.trigger) & told["is_rising"]
            self._triggers = np.sort(np.concatenate([self._triggers, told["time"][is_wanted]]))
        if jumped < min(self._counts[table.JUMPED], len(self._jumps)):
            tell_jumps("the readout", int(self._counts[table.JUMPED]), self._jumps[jumped], self._restarts)
        return columns


@kernel
def decode_stream(i, data, state, counts, lows, jumps, bound, is_end, is_quad, gap, hits, triggers, found):
    """Decode all words that are complete; POS is where the next bytes go on."""
    n = np.int64(0)
    m = np.int64(0)
    size = np.int64(len(data))
    waits = False
    while not waits:
        words = min(state[table.LEFT], size - state[POS]) >> 3
        for _ in range(words):
            word = word_at(data, state[POS])
            kind, t = take_word(word, state, counts, lows, jumps, bound)
            if kind == PIXEL:
                counts_over = np.int32((word >> np.uint64(20)) & np.uint64(0x3FF))
                number = np.int32(state[table.AT_CHIP])
                put_hit(hits, n, word >> np.uint64(44), t, counts_over, number, is_quad, gap)
                n += 1
            elif kind == TDC:
                triggers[0][m] = t
                triggers[1][m] = word
                m += 1
            elif counts[PIXEL] == 0:
                state[START] = state[table.BASE]
        if state[table.LEFT] > 0:
            waits = True
            if is_end:
                counts[table.CUT] += 1
                counts[table.TRUNCATED] += size - state[POS]
                state[POS] = size
                state[table.LEFT] = 0
        else:
            waits, _ = enter_chunk(data, state, counts, is_end, True)
    found[0] = n
    found[1] = m
