"""Event building on CUDA: what a window costs in launches, reads and memory, and where several devices work."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases.events import VARIANTS, bursts, dense

from daskclust import EventBuilder
from daskclust.core.device.arrays import CUDA
from daskclust.core.space.extent import group_range, survey
from daskclust.readout import gpu
from daskclust.readout.gpu import cluster_on_gpu, quiet_windows

pytestmark = pytest.mark.host_cuda


@pytest.fixture(autouse=True)
def new_lanes():
    """Threads of lanes, with streams and pinned memory, that no other test has used."""
    gpu._threads.cache_clear()
    yield
    gpu._threads.cache_clear()


@pytest.mark.parametrize("min_hits", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_a_window_costs(counts, variant, min_hits):
    hits, builder = bursts(2000), EventBuilder(100.0, variant=variant, min_hits=min_hits)
    windows = len(quiet_windows(hits["toa"], 100.0, 100)) - 1
    assert windows == 20
    for _ in range(2):  # what compiles a kernel holds arrays for a while
        cluster_on_gpu(hits, builder, window=100, lanes=1)
    counts()
    cluster_on_gpu(hits, builder, window=100, lanes=1)
    found = counts()
    assert found.launches == 7 * windows
    assert found.allocations == found.frees == found.on_device == found.sets == 0
    assert found.to_device == 4 * windows  # x, y, chip, toa
    assert found.to_host == 2 * windows  # what the host must know, and the labels
    assert found.bytes_to_device == 13 * 2000
    assert found.bytes_to_host == 8 * 2000 + 32 * windows


def test_windows_that_grow_need_no_new_memory(counts):
    """All are as large as the largest to the pool."""
    hits = dense(4000, 3, ticks=16_000)
    hits["toa"] += np.sqrt(np.arange(4000) // 3).astype(int) * 1e5  # gaps that are ever farther apart
    assert len(set(np.diff(quiet_windows(hits["toa"], 100.0, 100)))) > 10
    cluster_on_gpu(hits, EventBuilder(100.0, variant="global", min_hits=2), window=100, lanes=1)
    assert counts().allocations <= 12


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_what_a_fit_costs(cupy, counts, variant, is_sorted):
    hits = bursts(2000)
    order = np.arange(2000) if is_sorted else np.random.default_rng(0).permutation(2000)
    hits = {name: cupy.asarray(values[order]) for name, values in hits.items()}
    builder = EventBuilder(100.0, variant=variant, min_hits=2)
    for _ in range(2):  # what compiles a kernel holds arrays for a while
        builder.fit(hits)
        del builder.labels_
    counts()
    builder.fit(hits)
    found = counts()
    assert found.launches == (7 if is_sorted else 6 + 1 + 4 + 7 + 1)  # find out, sort, gather, again, put back
    assert found.to_host == (1 if is_sorted else 2)
    assert found.allocations == found.frees == found.to_device == 0


def test_what_extents_cost(cupy, counts):
    """Each thread looks at many values before it tells the others, by one atomic operation, what it found."""
    X = cupy.asarray(np.random.default_rng(0).normal(size=(400_000, 3)).astype(np.float32))
    group = cupy.asarray(np.arange(400_000))
    for call in (lambda: survey(CUDA, X), lambda: group_range(CUDA, group)):
        call()
        counts()
        call()
        found = counts()
        assert (found.to_host, found.allocations) == (1, 0)
        (launch,) = found.launched
        assert launch.blocks * launch.threads < 140_000


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_order_of_threads_does_not_matter(order, variant):
    for hits in (dense(3000, 2, ticks=60_000), bursts(2000)):
        builder = EventBuilder(100.0, variant=variant, min_hits=2)
        wanted = builder.fit(hits).labels_
        np.testing.assert_array_equal(cluster_on_gpu(hits, builder, window=500, lanes=2)[0], wanted)


@pytest.mark.parametrize("device", [0, 1])
def test_lanes_work_on_the_device_of_the_caller(cupy, counts, device):
    hits, builder = bursts(2000), EventBuilder(100.0, min_hits=2)
    wanted = builder.fit(hits).labels_
    with cupy.cuda.Device(device):
        labels, _ = cluster_on_gpu(hits, builder, window=150, lanes=3)
    np.testing.assert_array_equal(labels, wanted)
    found = counts()
    assert {launch.device for launch in found.launched} == {device}
    assert 0 not in {launch.stream for launch in found.launched}


def test_two_devices_side_by_side(cupy, counts):
    """Each caller has its device; nothing of one is used on the other, of which the stand-in would tell."""
    hits, builder = bursts(2000), EventBuilder(100.0, min_hits=2)
    wanted = builder.fit(hits).labels_

    def work(device):
        with cupy.cuda.Device(device):
            return [cluster_on_gpu(hits, builder, window=150 + 10 * k, lanes=2)[0] for k in range(3)]

    with ThreadPoolExecutor(2) as callers:
        for labels in itertools.chain(*callers.map(work, (0, 1))):
            np.testing.assert_array_equal(labels, wanted)
    assert {launch.device for launch in counts().launched} == {0, 1}
