"""The bytes that kernels move, as the docs have them, are counted in the kernels of today."""

import pytest

from ptx import traffic

pytestmark = pytest.mark.ptx


def test_the_page_is_of_today():
    words = "kernels move other bytes than the page says; write it anew: PYTHONPATH=tests python -m ptx.traffic"
    assert traffic.page() == traffic.PAGE.read_text(), words
