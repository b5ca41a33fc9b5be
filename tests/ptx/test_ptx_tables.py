"""Compile and assemble the CUDA kernels that decode raw words and measure pixel clusters and halos, without a GPU."""

import numpy as np
import pytest
from cases.tables import hit_columns, particle_columns

from daskclust.core.device.arrays import HOST
from daskclust.datasets import timepix
from daskclust.io import open_tpx3, write_tpx3
from daskclust.io.timepix.tpx3.device import CELL_WORDS, read_on_device
from daskclust.io.timepix.tpx3.read import open_hits
from daskclust.properties import _halos, _pixels
from daskclust.properties.kernels.clusters import BY_ENERGY, BY_TOT
from ptx.assembling import check
from ptx.recorder import Recorder, names

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("layout", ["chips", "quad"])
def test_decoding_words(tmp_path, layout):
    path = tmp_path / "run.tpx3"
    write_tpx3(timepix(2000, chips=4, rng=0), path)
    options = {"layout": layout, "gap": 2, "disorder": 600e3} if layout == "quad" else {"layout": layout, "gap": 0}
    options = {"disorder": 600e3, "on_reset": "continue", **options}
    recorder = Recorder()
    found = open_hits(str(path), chunks=None, phase_correction=True, cell_words=CELL_WORDS, **options)
    got, wanted = read_on_device(found, recorder), open_tpx3(path, phase_correction=True, **options)
    for name, values in got.items():
        np.testing.assert_array_equal(values, wanted[name].values)
    assert names(recorder.launched) == {"decode_cell", "spread_hit"}
    assert check(recorder.launched, tmp_path)


@pytest.mark.parametrize("optional", [True, False])
def test_table_of_clusters(tmp_path, optional):
    by, arrays = BY_ENERGY if optional else BY_TOT, hit_columns(300, 40, optional)
    recorder = Recorder()
    got, wanted = (_pixels.tabulate(device, arrays, by, None) for device in (recorder, HOST))
    for name in set(wanted) - {"noise_weight"}:  # noise is added up in another order
        np.testing.assert_array_equal(got[name], wanted[name])
    assert check(recorder.launched, tmp_path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_table_of_halos(tmp_path, dtype):
    setting = _halos.Setting(((10.0, 0.1),) * 3, 3, 43.0)
    recorder, arrays = Recorder(), particle_columns(300, 40, dtype=dtype)
    got, wanted = (_halos.measure(device, arrays, setting, None) for device in (recorder, HOST))
    for name in wanted:
        np.testing.assert_array_equal(got[name], wanted[name])
    assert check(recorder.launched, tmp_path)
