"""Tables of pixel clusters and of halos in the simulator, thread by thread: the CPU's answer to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

from daskclust.core.device.arrays import HOST, device_of, is_cuda
from daskclust.properties import _halo_arrays, _pixel_arrays
from daskclust.properties.kernels.clusters import BY_ENERGY, BY_NOTHING, BY_TOT

pytestmark = pytest.mark.cudasim


def columns(n, k, optional=True):
    rng = np.random.default_rng(n + k)
    arrays = {
        "labels": rng.integers(-1, k, n),
        "x": rng.integers(0, 256, n).astype(np.uint16),
        "y": rng.integers(0, 256, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, n, n)) * 1.5625,
        "tot": (25 * rng.integers(0, 5, n)).astype(np.float32),
    }
    if optional:
        arrays["energy"] = rng.exponential(3.0, n).astype(np.float32)
        arrays["chip"] = rng.integers(0, 4, n).astype(np.uint8)
        arrays["tof"] = rng.uniform(0, 1e6, n)
    return arrays


@pytest.mark.parametrize(
    ("n", "k", "by", "optional"),
    [
        (60, 20, BY_ENERGY, True),
        (60, 3, BY_TOT, False),
        (40, 50, BY_NOTHING, True),
        (1, 1, BY_TOT, False),
        (0, 2, BY_ENERGY, True),
        (20, 0, BY_TOT, True),
    ],
)
def test_table_equals(n, k, by, optional):
    arrays = columns(n, k, optional)
    on_device = {name: cuda.to_device(values) for name, values in arrays.items()}
    device = device_of(on_device["x"])
    got = _pixel_arrays.tabulate(device, on_device, by, k + 1)
    want = _pixel_arrays.tabulate(HOST, arrays, by, k + 1)
    assert got.keys() == want.keys()
    for name in set(want) - {"noise_size", "noise_weight"}:
        assert is_cuda(got[name]), name
        np.testing.assert_array_equal(device.to_host(got[name]), want[name], err_msg=name)
    assert got["noise_size"] == want["noise_size"]
    assert got["noise_weight"] == pytest.approx(want["noise_weight"])


def test_wrong_values_are_told():
    arrays = columns(20, 3)
    arrays["tot"][7] = np.nan
    on_device = {name: cuda.to_device(values) for name, values in arrays.items()}
    with pytest.raises(ValueError, match="tot must be finite, got nan at index 7"):
        _pixel_arrays.tabulate(device_of(on_device["x"]), on_device, BY_TOT, None)


def particles(n, k, d=3, optional=True):
    rng = np.random.default_rng(n + k)
    names = ["x", "y", "z"][:d] + [*["vx", "vy", "vz"][:d], "mass"] * optional
    arrays = {name: rng.exponential(8.0, n).astype(np.float32 if name == "vx" else np.float64) for name in names}
    return {"labels": rng.integers(-1, k, n)} | arrays


@pytest.mark.parametrize(
    ("n", "k", "d", "optional"),
    [(60, 8, 3, True), (60, 20, 2, False), (40, 50, 1, True), (1, 1, 3, False), (0, 2, 3, True), (20, 0, 3, True)],
)
def test_halos_equal(n, k, d, optional):
    arrays = particles(n, k, d, optional)
    on_device = {name: cuda.to_device(values) for name, values in arrays.items()}
    device = device_of(on_device["x"])
    setting = _halo_arrays.Setting(((10.0, 0.1), (8.0, 0.125), (0.0, 0.0)), d, 43.0 if optional else 0.0)
    got = _halo_arrays.measure(device, on_device, setting, k + 1)
    want = _halo_arrays.measure(HOST, arrays, setting, k + 1)
    assert got.keys() == want.keys()
    for name in set(want) - {"noise_size", "noise_mass"}:
        assert is_cuda(got[name]), name
        np.testing.assert_array_equal(device.to_host(got[name]), want[name], err_msg=name)
    assert got["noise_size"] == want["noise_size"]
    assert got["noise_mass"] == want["noise_mass"]


def test_wrong_particles_are_told():
    arrays = particles(20, 3)
    arrays["vy"][7] = np.nan
    on_device = {name: cuda.to_device(values) for name, values in arrays.items()}
    setting = _halo_arrays.Setting(((0.0, 0.0),) * 3, 3, 0.0)
    with pytest.raises(ValueError, match="vy must be finite, got nan at index 7"):
        _halo_arrays.measure(device_of(on_device["x"]), on_device, setting, None)
