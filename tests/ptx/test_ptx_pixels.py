"""Compile and assemble the CUDA kernels that decode raw words and tabulate pixel clusters, without a GPU."""

import numpy as np
import pytest

from ptx.recorder import check, make_recorder

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("layout", ["chips", "quad"])
def test_decoding_words(tmp_path, monkeypatch, layout):
    from daskclust.datasets import timepix
    from daskclust.io import open_tpx3, write_tpx3
    from daskclust.io.timepix.tpx3.device import CELL_WORDS, read_on_device
    from daskclust.io.timepix.tpx3.read import open_hits

    path = tmp_path / "run.tpx3"
    write_tpx3(timepix(2000, chips=4, rng=0), path)
    options = {"layout": layout, "gap": 2, "disorder": 600e3} if layout == "quad" else {"layout": layout, "gap": 0}
    options = {"disorder": 600e3, "on_reset": "continue", **options}
    recorder = make_recorder()
    found = open_hits(str(path), chunks=None, phase_correction=True, cell_words=CELL_WORDS, **options)
    got, wanted = read_on_device(found, recorder), open_tpx3(path, phase_correction=True, **options)
    for name, values in got.items():
        np.testing.assert_array_equal(values, wanted[name].values)
    assert {kernel.__name__ for kernel, _ in recorder.launched} == {"decode_cell", "spread_hit"}
    assert check(recorder.launched, tmp_path, monkeypatch)


@pytest.mark.parametrize("with_optional", [True, False])
def test_table_of_clusters(tmp_path, monkeypatch, with_optional):
    from daskclust.core.device.arrays import HOST
    from daskclust.properties import _pixel_arrays
    from daskclust.properties.kernels.clusters import BY_ENERGY, BY_TOT

    rng, n = np.random.default_rng(0), 300
    arrays = {
        "labels": rng.integers(-1, 40, n),
        "x": rng.integers(0, 256, n).astype(np.uint16),
        "y": rng.integers(0, 256, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, n, n)) * 1.5625,
        "tot": (25 * rng.integers(0, 5, n)).astype(np.float32),
    }
    if with_optional:
        arrays["energy"] = rng.exponential(3.0, n).astype(np.float32)
        arrays["chip"] = rng.integers(0, 4, n).astype(np.uint8)
        arrays["tof"] = rng.uniform(0, 1e6, n)
    by = BY_ENERGY if with_optional else BY_TOT
    recorder = make_recorder()
    got, wanted = (_pixel_arrays.tabulate(device, arrays, by, None) for device in (recorder, HOST))
    for name in set(wanted) - {"noise_weight"}:  # noise is added up in another order
        np.testing.assert_array_equal(got[name], wanted[name])
    assert check(recorder.launched, tmp_path, monkeypatch)
