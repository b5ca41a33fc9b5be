"""All systems, whichever thread comes first: the CPU's answer in each order of threads and blocks, on each device."""

import numpy as np
import pytest
from laws.registry import RUNS, fit

pytestmark = pytest.mark.host_cuda


@pytest.mark.parametrize("name", RUNS)
def test_the_order_of_threads_does_not_matter(cupy, order, name):
    system, run = RUNS[name]
    sample = system.sample(300, run, np.float32)
    found, wanted = fit(name, sample.map(cupy.asarray)), fit(name, sample)
    assert wanted.labels_.max() > 0
    np.testing.assert_array_equal(found.labels_.get(), wanted.labels_)


@pytest.mark.parametrize("name", RUNS)
def test_work_goes_to_the_current_stream(cupy, counts, name):
    system, run = RUNS[name]
    sample = system.sample(150, run, np.float32).map(cupy.asarray)
    stream = cupy.cuda.Stream(non_blocking=True)
    counts()
    with stream:
        fit(name, sample)
    assert {launch.stream for launch in counts().launched} == {stream.ptr}
