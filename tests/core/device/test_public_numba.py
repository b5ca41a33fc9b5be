"""Kernels give the same bits where numba has other inner parts than daskclust knows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

from daskclust.core.device import kernels as jit
from daskclust.core.device.kernels import kernel, lane_kernel, team_kernel
from daskclust.core.device.machine_code import compiled, public_numba, shipped
from daskclust.core.device.operations import load, store, times
from daskclust.core.space.grid import PAD

FIT = """
import logging, sys
from numba.core import codegen
logging.basicConfig()
{before}
import numpy as np
from daskclust import CLUE, datasets
hits = datasets.calorimeter(2, 500, size=60.0, rng=0)
clue = CLUE(1.5, 3.0).fit(hits)
for found in (clue.labels_, clue.density_, clue.delta_):
    sys.stdout.write(np.asarray(found).tobytes().hex())
"""


class Points(NamedTuple):
    x: Any
    shape: tuple[int, float]


@pytest.fixture(params=[compiled, public_numba], ids=["inner parts", "public names"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "numba_way", lambda: request.param)


@pytest.mark.usefixtures("way")
def test_a_kernel_of_each_kind() -> None:
    def each(i, points, out):
        out[i] = times(points.x[i, 1], points.shape[1]) + points.shape[0]

    def lanes(i, m, row, x, out):
        store(out, i, m, times(load(x, i, m), load(x, i, m)))

    def team(i, rank, size, out):
        out[i] = 10 * i + 2 * rank + size

    n = 40
    x = np.random.default_rng(0).normal(size=(n + PAD, 2))
    flat, row = np.ascontiguousarray(x[:, 0]), (np.arange(n + PAD) // 11).astype(np.int32)
    out = np.zeros((3, n))
    kernel(each).run(n, Points(x, (3, 0.5)), out[0])
    lane_kernel(lanes).run(n, row, flat, out[1])
    team_kernel(team).run(n, out[2])
    np.testing.assert_array_equal(out, [x[:n, 1] * 0.5 + 3, flat[:n] ** 2, 10 * np.arange(n) + 1])


@pytest.mark.slow
def test_fits_where_a_part_is_missing() -> None:
    done = [
        subprocess.run(
            [sys.executable, "-c", FIT.format(before=line)],
            env=os.environ | {shipped.SWITCH: "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        for line in ("", "del codegen.JITCodeLibrary")
    ]
    assert done[0].stdout == done[1].stdout != ""
    assert "kernels take" not in done[0].stderr
    assert "kernels take several times as long to compile" in done[1].stderr
    assert "cannot import name 'JITCodeLibrary'" in done[1].stderr
