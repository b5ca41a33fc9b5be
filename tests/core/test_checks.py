"""What every number that a user gives is asked: errors show the value."""

import numpy as np
import pytest
from cases.numbers import NOT_POSITIVE, NOT_WHOLE

from daskclust.core.data.checks import check_distance, check_positive, check_whole


@pytest.mark.parametrize("check", [check_positive, check_distance])
@pytest.mark.parametrize(("value", "error", "words"), NOT_POSITIVE)
def test_numbers_that_must_be_positive(check, value, error, words):
    with pytest.raises(error, match=f"eps {words}"):
        check("eps", value)


@pytest.mark.parametrize(("value", "error", "words"), NOT_WHOLE)
def test_whole_numbers(value, error, words):
    with pytest.raises(error, match=f"count {words}"):
        check_whole("count", value, 1)


def test_numbers_that_are_taken():
    assert check_positive("x", 0, zero=True) == 0.0
    assert check_whole("x", np.int8(3), 1) == check_distance("x", np.float32(3)) == 3
    assert check_whole("x", 10**30, 1, clamp=True) == 2**63 - 1


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: check_positive("x", -1, zero=True), "x must be finite and not negative, got -1"),
        (lambda: check_positive("x", np.nan, zero=True), "x must be finite and not negative, got nan"),
        (lambda: check_positive("x", 1e300, dtype=np.float32), "x must lie between .* for float32 coordinates, got 1e"),
        (lambda: check_distance("x", 1e-30, np.float32), "x must lie between .*, got 1e-30; give the coordinates"),
        (lambda: check_distance("x", 1e200), "whose squares float64 coordinates hold, got 1e"),
        (lambda: check_whole("x", 11, 1, 10), "x must be at most 10, got 11"),
    ],
)
def test_numbers_beyond_what_is_asked(check, words):
    with pytest.raises(ValueError, match=words):
        check()
