"""Ways to divide points, and the steps of a plan as workers do them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from cases.lanes import on_host
from dask.callbacks import Callback
from dask.utils import key_split
from hypothesis import strategies as st

from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.core.run.plan import Plan
from daskclust.core.space.partition import Chunk


def assert_steps(
    plan: Plan, chunks: Sequence[Chunk], wanted: dict[str, np.ndarray], sent: Callable[[Any], Any] = lambda thing: thing
) -> None:
    """Demand the results `wanted`, in the order of the data set, on the device of the chunks.

    `sent` is called with all that goes from one worker to another.
    """
    plan, before, locals_, frontiers = sent(plan), None, [], []
    for measures in [sent(plan.measure(sent(chunk))) for chunk in chunks]:
        local, frontier = sent(plan.local(measures, before))
        before = None if plan.carry is None else sent(plan.carry(measures, before))
        locals_.append(local)
        frontiers.append(frontier)
    met = np.zeros(len(wanted["labels"]), int)
    for chunk, local, merged in zip(chunks, locals_, sent(plan.merge(frontiers)), strict=True):
        found = plan.finish(local, merged)
        assert found.keys() == plan.results.keys()
        ids = on_host(local.ids.on(device_of(found["labels"])))
        met[ids] += 1
        for name, values in found.items():
            assert is_cuda(values) == is_cuda(next(iter(chunk.columns.values())))
            np.testing.assert_array_equal(on_host(values), wanted[name][ids], err_msg=name, strict=True)
    assert (met == 1).all()


@st.composite
def some_planes(draw, X, period):
    """Draw planes across some of the first axes: through points, at and beside the faces of a periodic box."""
    found = []
    for axis in range(draw(st.integers(0, min(X.shape[1], 3)))):
        cycle = period[axis] if period else 0.0
        low, high = (0.0, cycle) if cycle else (-5.0, 5.0)
        inside = st.floats(low, high, exclude_min=True, exclude_max=True)
        at_points = st.sampled_from(X[:, axis].astype(float).tolist())
        asked = draw(st.lists(st.one_of(inside, at_points), max_size=3))
        found.append(np.unique([x for x in asked if not cycle or low < x < high]).astype(float))
    return tuple(found)


def in_chunks(rows: int | tuple[int, ...]) -> Callable[[Any], Any]:
    """Return what makes dask arrays with chunks of so many rows of arrays."""
    return lambda values: da.from_array(values, chunks=(rows, *values.shape[1:]))


class Steps(Callback):
    """Collects the tasks that dask runs: their names, and how often a step is among them, fused ones too."""

    def __init__(self) -> None:
        super().__init__(pretask=self._count)
        self.names: list[str] = []
        self._text = ""

    def _count(self, key: Any, dsk: Any, state: Any) -> None:
        self.names.append(key_split(key))
        self._text += f" {key[0] if isinstance(key, tuple) else key}"

    def __getitem__(self, step: str) -> int:
        return self._text.count(f"daskclust-{step}")
