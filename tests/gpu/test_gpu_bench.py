"""What measures a GPU does the right work."""

import numpy as np
import pytest
from bench import roofline
from bench.report import markdown
from bench.runner import SYSTEMS, bench, options_of

from daskclust.core.device.arrays import device_of

pytestmark = pytest.mark.gpu


def test_ceilings(cupy):
    place = device_of(cupy.zeros(1))
    found = roofline.measure_ceilings(place, cupy.cuda.Device().synchronize, copied=400, points=5, rounds=4)
    assert all(value > 0 for value in found.values())


def test_a_device_computes_what_the_host_does(cupy):
    numbers, row = np.linspace(0, 1, 36).astype(np.float32), np.zeros(36, np.int32)
    on_device, on_host = cupy.asarray(numbers), numbers.copy()
    device_of(on_device).run(roofline.multiply_add, 20, cupy.asarray(row), 3, on_device)
    device_of(on_host).run(roofline.multiply_add, 20, row, 3, on_host)
    np.testing.assert_allclose(on_device.get(), on_host, rtol=1e-5)  # a GPU fuses products and sums
    assert not np.allclose(numbers, on_host)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system(cupy, monkeypatch, name):
    """At small sizes; on CUDA the number of threads says how many windows are under way, for event building alone."""
    monkeypatch.setattr("bench.runner.ceilings_of", lambda _: {"bytes_per_second": 4e12, "operations_per_second": 6e13})
    given = {"sizes": (3000 if name == "events" else 600,), "groups": ((3, 100),), "repeats": 1, "threads": (1, 0)}
    report = bench(name, options_of(name, {**given, "device": "cuda", "kinds": SYSTEMS[name].kinds[-1:]}))
    assert [run.get("lanes", run.get("threads")) for run in report["runs"]] == ([1, 4] if name == "events" else [None])
    for run in report["runs"]:
        assert sum(run["kernels_ms"].values()) > 0
        assert run.get("host_to_host_ms", 1) > 0
        assert "lanes" not in run or run["lanes"] < 3000 / run["window"]  # no lane goes without a window
    head, _, *rows = markdown(report).split("\n\n")[0].splitlines()
    assert {head.count("|")} == {row.count("|") for row in rows}
