"""Pixel hits of which there are none."""

from __future__ import annotations

import pytest

import daskclust  # noqa: F401
from daskclust.datasets import timepix


@pytest.mark.parametrize("is_lazy", [False, True])
def test_no_hits_have_no_labels(is_lazy):
    hits = timepix(50, rng=0).isel(hit=slice(0))
    label = (hits.chunk() if is_lazy else hits).clust.events(200.0)["label"]
    assert (label.dtype, label.shape) == ("int64", (0,))
