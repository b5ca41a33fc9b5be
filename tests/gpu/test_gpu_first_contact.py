"""The parts of the first hour on a GPU run as they are, at small sizes."""

from __future__ import annotations

import pytest
from gpu.first_contact import PARTS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", PARTS)
def test_part(cupy, capsys, name):
    PARTS[name](1e-4 if name in ("fof", "events") else 1e-3)
    said = capsys.readouterr().out
    assert said
    assert "WRONG" not in said
