"""Tables of pixel clusters and of halos on a GPU: the CPU's answer to the last bit."""

import numpy as np
import pytest
import xarray as xr
from cases.tables import hit_columns, particle_columns, random_hits

from daskclust.core.device.arrays import HOST, device_of, is_cuda
from daskclust.properties import _halos, _pixels, cluster_table
from daskclust.properties.kernels.clusters import BY_ENERGY, BY_NOTHING, BY_TOT

pytestmark = pytest.mark.gpu


def on_device(measure, arrays, *options):
    """Return the table of device arrays."""
    import cupy

    moved = {name: cupy.asarray(values) for name, values in arrays.items()}
    return measure(device_of(moved["x"]), moved, *options)


def assert_as_on_the_host(measure, arrays, *options):
    got, want = on_device(measure, arrays, *options), measure(HOST, arrays, *options)
    assert got.keys() == want.keys()
    assert got["noise_size"] == want["noise_size"]
    assert got.get("noise_mass") == want.get("noise_mass")
    if "noise_weight" in want:  # added up in another order
        assert got["noise_weight"] == pytest.approx(want["noise_weight"])
    for name in (name for name in want if not name.startswith("noise_")):
        assert is_cuda(got[name]), name
        np.testing.assert_array_equal(got[name].get(), want[name], err_msg=name)


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
    assert_as_on_the_host(_pixels.tabulate, hit_columns(n, k, optional), by, k + 1)


@pytest.mark.parametrize(
    ("n", "k", "d", "optional"),
    [(60, 8, 3, True), (60, 20, 2, False), (40, 50, 1, True), (1, 1, 3, False), (0, 2, 3, True), (20, 0, 3, True)],
)
def test_halos_equal(n, k, d, optional):
    setting = _halos.Setting(((10.0, 0.1), (8.0, 0.125), (0.0, 0.0)), d, 43.0 if optional else 0.0)
    assert_as_on_the_host(_halos.measure, particle_columns(n, k, d, optional), setting, k + 1)


SETTING = _halos.Setting(((0.0, 0.0),) * 3, 3, 0.0)


@pytest.mark.parametrize(
    ("measure", "arrays", "name", "option"),
    [
        (_pixels.tabulate, hit_columns(20, 3), "tot", BY_TOT),
        (_halos.measure, particle_columns(20, 3), "vy", SETTING),
    ],
)
def test_wrong_values_are_told(measure, arrays, name, option):
    wrong = np.where(np.arange(20) == 7, np.nan, arrays[name])
    with pytest.raises(ValueError, match=f"{name} must be finite, got nan at index 7"):
        on_device(measure, {**arrays, name: wrong}, option, None)


def test_table_of_cupy(cupy):
    ds = random_hits(300, 20)
    ds["event"] = ds["label"] // 3
    on_device = ds.map(lambda each: each.copy(data=cupy.asarray(each.values)))
    for options in ({}, {"log_weight": 2.9}):
        found = cluster_table(on_device, **options)
        assert {type(each.data) for each in found.data_vars.values()} == {cupy.ndarray}
        xr.testing.assert_equal(found.map(lambda each: each.copy(data=each.data.get())), cluster_table(ds, **options))
