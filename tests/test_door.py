"""One door for data: any container, type, byte order and layout gives the plain answer or the promised error."""

import os

import numpy as np
import pytest
from door_cases import TYPES, VALUES, check, draw

CASES = int(os.environ.get("DASKCLUST_DOOR", "2000"))
PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_any_container_type_and_layout(part):
    """Of 2000 cases; ``DASKCLUST_DOOR=50000 pytest tests/test_door.py`` draws as many."""
    rng = np.random.default_rng([16, part])
    results = [check(draw(rng)) for _ in range(CASES // PARTS)]
    assert results.count("equal") > results.count("refused") > 0


def test_the_page_speaks_of_every_type():
    assert len(TYPES) == 20
    assert len(VALUES) == 6
