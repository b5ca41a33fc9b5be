"""Compile and assemble the CUDA kernels that measure halos, without a GPU."""

import numpy as np
import pytest

from ptx.recorder import check, make_recorder

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_table_of_halos(tmp_path, monkeypatch, dtype):
    from daskclust.core.device.arrays import HOST
    from daskclust.properties import _halo_arrays

    rng, n = np.random.default_rng(0), 300
    names = ("x", "y", "z", "vx", "vy", "vz", "mass")
    arrays = {"labels": rng.integers(-1, 40, n)} | {name: rng.exponential(3.0, n).astype(dtype) for name in names}
    setting = _halo_arrays.Setting(((10.0, 0.1),) * 3, 3, 43.0)
    recorder = make_recorder()
    got, wanted = (_halo_arrays.measure(device, arrays, setting, None) for device in (recorder, HOST))
    for name in wanted:
        np.testing.assert_array_equal(got[name], wanted[name])
    assert check(recorder.launched, tmp_path, monkeypatch)
