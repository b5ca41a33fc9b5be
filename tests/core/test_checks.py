"""What every number that a user gives is asked: errors show the value."""

import numpy as np
import pytest

from daskclust.core.data.checks import check_distance, check_positive, check_whole

WRONG = [
    (0, ValueError, "must be finite and positive, got 0"),
    (0.0, ValueError, r"must be finite and positive, got 0\.0"),
    (-1.5, ValueError, r"must be finite and positive, got -1\.5"),
    (np.nan, ValueError, "must be finite and positive, got nan"),
    (np.inf, ValueError, "must be finite and positive, got inf"),
    ("wide", TypeError, "must be a number, got 'wide'"),
    (None, TypeError, "must be a number, got None"),
    (True, TypeError, "must be a number, got True"),
    ([0.5], TypeError, r"must be a number, got \[0\.5\]"),
]
NOT_WHOLE = [
    (0, ValueError, "must be 1 or more, got 0"),
    (-3, ValueError, "must be 1 or more, got -3"),
    *((value, TypeError, f"must be a whole number, got {value!r}") for value in (2.5, 2.0, True, "few", None)),
]


@pytest.mark.parametrize("check", [check_positive, check_distance])
@pytest.mark.parametrize(("value", "error", "words"), WRONG)
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
