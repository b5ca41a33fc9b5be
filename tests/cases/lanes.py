"""How much each lane of tests does: README's command is quick, `.ci/run` full, `tests/long` long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

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


def by_lane(values: Sequence[Any]) -> list[Any]:
    """Return dimensions and dtypes as parameters of a test; only the common ones are in the quick lane."""
    return [each if each in COMMON else pytest.param(*each, marks=pytest.mark.slow) for each in values]
