"""Timepix3 files and event building from host memory on a GPU: the host's answers, element by element."""

import numpy as np
import pytest
import xarray as xr

from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.io import calibrate, correct_timewalk, open_tpx3, time_of_flight, write_tpx3

pytestmark = pytest.mark.gpu

COLUMNS = ("x", "y", "toa", "tot", "chip")


def hits(n=50, ticks=3000, pixels=6, chips=4, seed=0):
    """Return dense hits in the order of time, many of them at equal times."""
    rng = np.random.default_rng(seed)
    columns = {
        "x": rng.integers(0, pixels, n).astype(np.uint16),
        "y": rng.integers(0, pixels, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, ticks, n)) * 1.5625,
        "tot": (25 * rng.integers(0, 1024, n)).astype(np.float32),
        "chip": rng.integers(0, chips, n).astype(np.uint8),
    }
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()}, attrs={"field": "timepix"})


def on_device():
    """Return any array of the device."""
    import cupy

    return cupy.zeros(1)


def assert_read_as_on_the_host(path, **options):
    """Demand the same columns and attributes; return what the host reads."""
    want = open_tpx3(path, **options)
    got = open_tpx3(path, like=on_device(), **options)
    assert got.attrs == want.attrs
    for name in COLUMNS:
        values = got[name].data
        assert is_cuda(values), name
        assert values.dtype == want[name].dtype
        assert got[name].attrs == want[name].attrs
        np.testing.assert_array_equal(device_of(values).to_host(values), want[name], err_msg=name)
    return want


@pytest.mark.parametrize(
    ("options", "ticks"),
    [
        ({}, 3000),
        ({}, 8),  # nearly all times are equal: the order in the file decides
        ({"layout": "quad", "gap": 3}, 3000),
        ({"phase_correction": True}, 60),
    ],
)
def test_a_file_is_read_as_on_the_host(tmp_path, options, ticks):
    made = hits(60, ticks, pixels=256)
    made = made.isel(hit=np.random.default_rng(1).permutation(60))
    path = tmp_path / "run.tpx3"
    write_tpx3(made, path, words_per_chunk=7)
    assert_read_as_on_the_host(path, **options)


@pytest.mark.parametrize("on_reset", ["continue", "restart"])
def test_a_clock_that_is_set_anew_is_as_on_the_host(tmp_path, on_reset):
    path, parts = tmp_path / "run.tpx3", []
    for seed, start in enumerate((61_091e9, 0.8e9)):
        made = hits(12, pixels=256, seed=seed)
        write_tpx3(made.assign(toa=made["toa"] + start), path)
        parts.append(path.read_bytes())
    path.write_bytes(b"".join(parts))
    assert assert_read_as_on_the_host(path, on_reset=on_reset).attrs["n_clock_jumps"] == 1


def test_windows_of_time_are_not_made_for_a_device(tmp_path, monkeypatch):
    """They take a pass over the words on the host, and the device sorts all hits at once."""
    path = tmp_path / "run.tpx3"
    write_tpx3(hits(20), path)
    monkeypatch.setattr("daskclust.io.timepix.tpx3.read.divide", None)
    assert open_tpx3(path, like=on_device()).sizes["hit"] == 20


def test_a_damaged_file_is_read_as_on_the_host(tmp_path):
    """Chunks that are not aligned to words, bytes between them, words of other kinds, and a last chunk that is cut."""
    path, parts = tmp_path / "run.tpx3", []
    for seed in range(3):
        write_tpx3(hits(12, pixels=256, seed=seed), path)
        parts.append(path.read_bytes())
    path.write_bytes(parts[0] + b"junk!" + parts[1] + parts[2][:-11])
    assert assert_read_as_on_the_host(path).attrs["n_bytes_skipped"] == 5


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("calibrate", lambda ds, path: calibrate(ds, None)),
        ("correct_timewalk", lambda ds, path: correct_timewalk(ds, [[0.0, 1.0]], by="tot")),
        ("time_of_flight", lambda ds, path: time_of_flight(ds["toa"], [0.0])),
        ("time_of_flight", lambda ds, path: time_of_flight(ds["toa"].data, [0.0])),
        ("time_of_flight", lambda ds, path: time_of_flight(np.zeros(3), ds["toa"].data)),
        ("write_tpx3", write_tpx3),
    ],
)
def test_what_works_on_the_host_alone_says_so(tmp_path, step, call):
    path = tmp_path / "run.tpx3"
    write_tpx3(hits(5), path)
    ds = open_tpx3(path, like=on_device())
    with pytest.raises(TypeError, match=rf"{step} needs arrays in host memory, .* is on a GPU; .*as_numpy\(\)"):
        call(ds, tmp_path / "other.tpx3")
    assert not (tmp_path / "other.tpx3").exists()


def test_a_file_without_hits(tmp_path):
    path = tmp_path / "run.tpx3"
    path.write_bytes(b"TPX3" + bytes([0, 0, 8, 0]) + (0x50 << 56).to_bytes(8, "little"))
    got = open_tpx3(path, like=on_device())
    assert got.sizes["hit"] == 0
    assert [got[name].dtype for name in COLUMNS] == [np.uint16, np.uint16, np.float64, np.float32, np.uint8]
