"""How much each lane of tests does: README's command is quick, `.ci/run` full, `tests/long` long."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from daskclust.core.device.arrays import is_cuda

IS_LONG = os.environ.get("DASKCLUST_TESTS") == "long"
COMMON: Sequence[Any] = ((2, np.float64), (3, np.float64))
"""Dimensions and dtypes of the quick lane: each other one takes some ten seconds of compiling."""

drawn = "all"
"""What the fixture `shapes` has set: "common", "odd"; without it all are drawn."""

every_shape = pytest.mark.usefixtures("shapes")
every_dtype = pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])


def in_long_lane(amount: Any, *, otherwise: Any) -> Any:
    return amount if IS_LONG else otherwise


@st.composite
def a_shape(draw: Any, shapes: Sequence[Any]) -> Any:
    """Draw dimensions and dtype of the kind that is asked for, or of those there are."""
    wanted = [each for each in shapes if drawn == "all" or (each in COMMON) == (drawn == "common")]
    return draw(st.sampled_from(wanted or list(shapes)))


def quick_first(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Return parameters of a test, tuples of several, of which only the first ones are in the quick lane."""
    rows = [each if isinstance(each, tuple) else (each,) for each in values]
    return [pytest.param(*row, marks=pytest.mark.slow if k >= count else ()) for k, row in enumerate(rows)]


def some_of(most: int = 24, **values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize a test with combinations of values, `most` of them (40 times as many in the long lane).

    Each value is in some, with others that are drawn beside it; there are all combinations where these are few.
    """
    every, most = [list(each) for each in values.values()], in_long_lane(40 * most, otherwise=most)
    if math.prod(map(len, every)) <= most:
        return pytest.mark.parametrize(tuple(values), list(itertools.product(*every)))
    rng, columns = random.Random(" ".join(values)), []
    for each in every:
        rounds = [rng.sample(each, len(each)) for _ in range(-(-most // len(each)))]
        columns.append([*itertools.chain(*rounds)][:most])
    return pytest.mark.parametrize(tuple(values), list(zip(*columns, strict=True)))


@st.composite
def row_chunks(draw: Any, n: int, most: int = 8) -> tuple[int, ...]:
    """Draw the lengths of up to `most` chunks of n rows, empty ones among them."""
    ends = [0, *sorted(draw(st.lists(st.integers(0, n), max_size=most - 1))), n]
    return tuple(b - a for a, b in itertools.pairwise(ends))


def drawn_points(rng: np.random.Generator, kind: str, n: int, d: int, size: float) -> np.ndarray:
    """Return points (n, d) of [-size, size]: with distances of exactly 1, of tenths, none equal, repeated, all one."""
    X = rng.uniform(-size, size, (n, d))
    if kind == "equal":
        return np.broadcast_to(X[:1], X.shape).copy()
    if kind == "lattice":
        return np.round(X * 2) / 2
    if kind == "tenths":
        return np.round(X * 10) / 10
    if kind == "clumps":
        return X[rng.integers(0, max(1, n // 8), n)] + rng.normal(0, 0.3, (n, d))
    if kind in ("pairs", "places"):
        return X[rng.integers(0, n if kind == "pairs" else max(1, n // 8), n)]
    return X


def put_on_seams(draw: Any, X: np.ndarray, period: Sequence[float]) -> None:
    """Move some points to the faces of a periodic box, beside them by rounding, or whole periods away."""
    for axis, cycle in enumerate(period):
        if cycle and draw(st.booleans()):
            edge = X.dtype.type(cycle)
            at = [0.0, edge, -edge, 1e-9, -1e-9, np.nextafter(edge, X.dtype.type(0)), 3 * edge, -1e-30]
            X[: len(at), axis] = at[: len(X)]


def on_host(array: Any) -> Any:
    """Return an array of cupy or numba as one of NumPy, any other as it is."""
    if is_cuda(array):
        return array.get() if hasattr(array, "get") else array.copy_to_host()
    return array


def size(on_gpu: int, *, on_host: int) -> int:
    """Return how many points a test of CUDA code takes: where the host runs it, one thread computes them all."""
    return on_host if os.environ.get("HOST_CUDA") == "1" else on_gpu
