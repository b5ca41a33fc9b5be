"""Ways to divide points, and the steps of a plan as workers do them one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.core.run.plan import Plan
from daskclust.core.space.partition import Chunk


def on_host(array: Any) -> Any:
    if is_cuda(array):
        return array.get() if hasattr(array, "get") else array.copy_to_host()
    return array


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
        ids = on_host(local.ids.on(device_of(found["labels"])))
        met[ids] += 1
        for name, values in found.items():
            assert is_cuda(values) == is_cuda(next(iter(chunk.columns.values())))
            np.testing.assert_array_equal(on_host(values), wanted[name][ids], err_msg=name, strict=True)
    assert (met == 1).all()


def given_chunks(columns: dict[str, Any], rows: Sequence[int], count_up: Callable[[int, int], Any]) -> list[Chunk]:
    """Return chunks of so many rows, as a user gives them."""
    ends = itertools.pairwise(np.cumsum([0, *rows]).tolist())
    return [
        Chunk({name: values[a:b] for name, values in columns.items()}, count_up(a, b), as_given=True) for a, b in ends
    ]


@st.composite
def row_chunks(draw, n, most=8):
    """Draw the lengths of up to `most` chunks of n rows, empty ones among them."""
    ends = [0, *sorted(draw(st.lists(st.integers(0, n), max_size=most - 1))), n]
    return tuple(b - a for a, b in itertools.pairwise(ends))


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
