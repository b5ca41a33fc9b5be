"""Ids of a chunk's own points, in as little memory as they need: those of all chunks wait for the merge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Cuda, Host, device_of, is_cuda, to_current_device

_STRETCH = 4096  # ids from one that is kept as it is to the next
_MANY = 16  # ids for each step that is too large for 16 bits: with fewer ids, all steps get 32 bits


class OwnIds(NamedTuple):
    """Ascending ids."""

    first: int
    size: int  # how many there are
    steps: Any = None  # (size - 1,) uint16 or uint32 from each to the next; None where each is one more
    far: Any = None  # (k,) which of these are too large for that, on the host
    far_steps: Any = None  # (k,) int64, on the host
    kept: Any = None  # every so-many-th id, on the host; None in a part

    @classmethod
    def of(cls, ids: Any) -> OwnIds:
        """Return those of an array of int64, shape (n,)."""
        if len(ids) == 0:
            return cls(0, 0)
        device = device_of(ids)
        first, last = (int(end) for end in device.to_host(ids[[0, -1]]))
        if last - first == len(ids) - 1:
            return cls(first, len(ids))
        steps, kept = ids[1:] - ids[:-1], device.to_host(ids[::_STRETCH].copy())
        for dtype in (np.uint16, np.uint32):  # the last one where none has few that are too large
            far = (steps > np.iinfo(dtype).max).nonzero()[0]
            if _MANY * len(far) < len(ids):
                break
        return cls(first, len(ids), steps.astype(dtype), device.to_host(far), device.to_host(steps[far]), kept)

    def within(self, start: int, end: int) -> tuple[OwnIds, slice]:
        """Return those from `start` to `end - 1`, and which of all they are."""
        if self.steps is None:
            a, b = (min(max(each - self.first, 0), self.size) for each in (start, end))
            return OwnIds(self.first + a, max(b - a, 0)), slice(a, b)
        (a, first), (b, _) = self._from(start), self._from(end)
        return self._part(a, b, first), slice(a, b)

    def _from(self, least: int) -> tuple[int, int]:
        """Return the place of the first id that is not less than this, and that id; 0 where there is none."""
        k = max(int(np.searchsorted(self.kept, least)) - 1, 0)
        a, b = k * _STRETCH, min((k + 1) * _STRETCH + 1, self.size)
        device = device_of(self.steps)
        stretch = self._part(a, b, int(self.kept[k])).on(device)
        place = int(np.searchsorted(stretch, device.from_host(np.array([least])))[0])
        return a + place, int(stretch[place]) if place < len(stretch) else 0

    def _part(self, a: int, b: int, first: int) -> OwnIds:
        """Return those at places from `a` to `b - 1`, of which the first is known."""
        if b <= a:
            return OwnIds(first, 0)
        few = slice(*np.searchsorted(self.far, (a, b - 1)))
        return OwnIds(first, b - a, self.steps[a : b - 1].copy(), self.far[few] - a, self.far_steps[few])

    def on(self, device: Host | Cuda) -> Any:
        """Return them as an array of int64, shape (size,), on a device."""
        if self.steps is None:
            return self.first + device.count_up(self.size)
        steps = (to_current_device(self.steps) if is_cuda(self.steps) else self.steps).astype(np.int64)
        steps[device.from_host(self.far)] = device.from_host(self.far_steps)
        ids = device.full(self.size, self.first, np.int64)
        ids[1:] += steps.cumsum()
        return ids
