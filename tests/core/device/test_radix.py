"""Sorting packed numbers by some of their bits, against NumPy's sort of the whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daskclust.core.device.arrays import HOST


@pytest.mark.parametrize("count", [1, 2])
def test_numbers_are_sorted_by_the_bits_of_their_keys(threads, count):
    threads(count)

    @given(
        st.one_of(st.integers(0, 3000), st.integers(65_000, 90_000)),
        st.integers(1, 43),
        st.floats(0.3, 40.0),
        st.integers(0, 2**32),
    )
    @example(80_000, 43, 0.001, 0)  # one mass of equal keys
    def sorts(n, bits, spread, seed):
        rng = np.random.default_rng(seed)
        low = max(1, (n - 1).bit_length())
        keys = (rng.random(n) ** (1 / spread) * (2**bits - 1)).astype(np.int64)
        numbers = (keys << low) | np.arange(n)
        expected = np.sort(numbers)
        HOST.sort(numbers, low, low + bits)
        np.testing.assert_array_equal(numbers, expected)

    sorts()
