"""Ids of a chunk's own points, in as little memory as they need: those of all chunks wait for the merge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Cuda, Host, device_of, is_cuda, to_current_device


class OwnIds(NamedTuple):
    """Ascending ids."""

    first: int  # what they are counted from
    size: int  # how many there are
    beyond: Any  # (size,) how far each is from that; None where each is one more than the one before

    @classmethod
    def of(cls, ids: Any) -> OwnIds:
        """Return those of an array of int64, shape (n,)."""
        if len(ids) == 0:
            return cls(0, 0, None)
        first, last = (int(end) for end in device_of(ids).to_host(ids[[0, -1]]))
        if last - first == len(ids) - 1:
            return cls(first, len(ids), None)
        return cls(first, len(ids), (ids - first).astype(np.int32 if last - first < 2**31 - 1 else np.int64))

    def within(self, start: int, end: int) -> tuple[OwnIds, slice]:
        """Return those from `start` to `end - 1`, and which of all they are."""
        if self.beyond is None:
            a, b = (min(max(each - self.first, 0), self.size) for each in (start, end))
            return OwnIds(self.first + a, max(b - a, 0), None), slice(a, b)
        device, dtype = device_of(self.beyond), self.beyond.dtype
        # numbers that it does not hold would make all of the array wider
        ends = np.clip([start - self.first, end - self.first], 0, np.iinfo(dtype).max).astype(dtype)
        a, b = map(int, device.to_host(np.searchsorted(self.beyond, device.from_host(ends))))
        return OwnIds(self.first, b - a, self.beyond[a:b]), slice(a, b)

    def on(self, device: Host | Cuda) -> Any:
        """Return them as an array of int64, shape (size,), on a device."""
        if self.beyond is None:
            return self.first + device.count_up(self.size)
        return self.first + (to_current_device(self.beyond) if is_cuda(self.beyond) else self.beyond).astype(np.int64)
