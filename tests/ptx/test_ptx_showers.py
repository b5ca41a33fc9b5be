"""Compile and assemble every CUDA kernel that CLUE3D launches, without a GPU."""

import numpy as np
import pytest

from daskclust import CLUE3D
from daskclust.systems import SYSTEMS
from ptx.assembling import check
from ptx.recorder import stand_in

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("projective", [True, False])
def test_every_kernel_assembles(monkeypatch, tmp_path, projective, dtype):
    from daskclust.clue3d import plan
    from daskclust.core.space import extent

    system = SYSTEMS["showers"]
    X, columns = system.sample(300, system.runs[0], dtype)
    radius = {"radius": np.ones(300, dtype), "is_silicon": np.arange(300) % 3 > 0} if projective else {}
    estimator = CLUE3D(critical_density=0.3, use_absolute_projective_scale=projective)
    wanted = estimator.fit(X, **columns, **radius).labels_
    recorder = stand_in(monkeypatch, plan, extent)
    np.testing.assert_array_equal(estimator.fit(X, **columns, **radius).labels_, wanted)
    found = check(recorder.launched, tmp_path)
    assert {name.split("_loc")[0] for name in found} >= {"density", "nearest_higher", "decide", "arrange"}
