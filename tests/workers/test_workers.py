"""Clusters: on this machine, on GPUs that are pretended, and one that is there already."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import types
from contextlib import suppress

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.system import MEMORY_LIMIT

from daskclust import EventBuilder, machine, workers
from daskclust.core.device import freed_memory
from daskclust.core.device.machine_code import compiling
from daskclust.datasets import timepix
from daskclust.io import read_hits, write_hits
from daskclust.systems import SYSTEMS
from daskclust.workers import _compile, _connect, _start


def limits(client):
    return {worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()}


def threads(client):
    return [worker["nthreads"] for worker in client.scheduler_info()["workers"].values()]


@pytest.mark.slow
def test_processes_have_a_thread_and_a_limit_each():
    with workers.start(2, memory_limit="1 GiB") as client:
        assert threads(client) == [1, 1]
        assert limits(client) == {2**30}


MACHINE = {0.25: int(0.25 * MEMORY_LIMIT), "0.25": int(0.25 * MEMORY_LIMIT), "auto": MEMORY_LIMIT}


@pytest.mark.parametrize(("asked", "bytes_"), [(0, 0), ("300MB", 300_000_000), (5e8, 500_000_000), *MACHINE.items()])
def test_memory_limits(asked, bytes_):
    with workers.start(1, processes=False, memory_limit=asked) as client:
        assert limits(client) == {bytes_}


@pytest.mark.slow
def test_the_machines_memory_is_shared_by_the_workers():
    with workers.start(CPU_COUNT + 1) as client:
        assert limits(client) == {int(MEMORY_LIMIT / (CPU_COUNT + 1))}


def test_a_worker_that_died_may_be_slow_to_start_again():
    with workers.start(1, processes=False):
        assert dask.config.get("distributed.deploy.lost-worker-timeout") == "10 minutes"
        with dask.config.set({"distributed.deploy.lost-worker-timeout": "5s"}), workers.start(1, processes=False):
            assert dask.config.get("distributed.deploy.lost-worker-timeout") == "5s"


@pytest.mark.parametrize(
    ("limit", "trims", "keeps"),
    [(4 << 30, "65536", True), (None, "65536", True), (1 << 30, "65536", False), (4 << 30, "1000", False)],
)
def test_workers_with_much_memory_keep_some_that_is_freed(monkeypatch, limit, trims, keeps):
    asked = []
    library = types.SimpleNamespace(mallopt=lambda *given: asked.append(given))
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda name: library)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", trims)
    worker = types.SimpleNamespace(
        memory_manager=types.SimpleNamespace(memory_limit=limit), state=types.SimpleNamespace(nthreads=1)
    )
    _start.KeepMemory().setup(worker)
    assert bool(asked) == keeps


@pytest.fixture
def usual_port_is_taken():
    """Another cluster is running on this machine: Dask would warn."""
    with socket.socket() as other:
        with suppress(OSError):  # there is one
            other.bind(("", 8787))
            other.listen()
        yield


@pytest.mark.parametrize("dashboard", [None, "127.0.0.1:0"])
def test_the_profile_of_workers_is_for_the_dashboard(dashboard, usual_port_is_taken):
    """And for Python 3.12 and newer: before, what looks at frames of other threads may stand still."""
    with dask.config.set({"distributed.worker.profile.enabled": True}):
        with workers.start(1, processes=False, dashboard=dashboard) as client:
            has_profile = client.run(lambda dask_worker: "profile" in dask_worker.periodic_callbacks)
            assert list(has_profile.values()) == [dashboard is not None and sys.version_info >= (3, 12)]
        assert dask.config.get("distributed.worker.profile.enabled")


def test_kernels_are_compiled_before_the_first_task():
    hits = timepix(300, rng=0)
    with workers.start(2, processes=False, warm="events") as client, dask.config.set(scheduler=client):
        plugins = client.run(lambda dask_worker: list(dask_worker.plugins))
        assert all("daskclust-compile-kernels" in names for names in plugins.values())
        labels = EventBuilder(200.0).fit(hits.chunk(hit=100)).labels_.compute()
    np.testing.assert_array_equal(labels, EventBuilder(200.0).fit(hits).labels_)


def _compile_something():
    """Compile on a worker what no cache has."""
    import numba

    compiling.watched(numba.njit(lambda x: x + 1)).compile((numba.int64,))


@pytest.mark.slow
def test_clients_hear_what_workers_compile():
    told, is_done = [], threading.Event()

    def listen(each):
        told.append((each.number, each.is_busy))
        if not each.is_busy:
            is_done.set()

    watch = compiling.Clock()
    with workers.start(1) as client, compiling.listening(listen):
        (address,) = client.nthreads()
        client.submit(_compile_something).result()
        assert is_done.wait(600)
    assert told == [(1, True), (1, False)]
    assert watch.compiling == compiling.seconds_of[address] > 0


@pytest.mark.parametrize("systems", [["events"], ["clue", "fof"]])
def test_kernels_are_compiled_by_all_workers_of_a_machine(monkeypatch, systems):
    uses, reports = [], []

    def run_one(system, run, dtype, give):
        uses.append((system.name, run, dtype))
        compiling._now.compiled += 2
        return []

    monkeypatch.setattr(_compile.registry, "run_one", run_one)
    with workers.start(2, processes=False) as client:
        count = _compile.compile_on(client, systems, cuda=False, report=lambda *done: reports.append(done))
    wanted = [(name, run, dtype) for name in systems for run in SYSTEMS[name].runs for dtype in ("float32", "float64")]
    assert sorted(uses, key=repr) == sorted(wanted, key=repr)
    assert reports == [(k, len(wanted)) for k in range(1, len(wanted) + 1)]
    assert count == 2 * len(wanted)


# ------------------------------------------------------------------------------------------------- one that is there
@pytest.fixture
def cluster():
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as found:
        yield found


@pytest.mark.parametrize("name", ["object", "address"])
def test_a_cluster_that_runs(cluster, name):
    with workers.start(1, scheduler=cluster if name == "object" else cluster.scheduler_address) as client:
        assert int(da.ones(10, chunks=5).sum().compute(scheduler=client)) == 10
        client.close()
        assert len(cluster.scheduler.workers) == 1  # they are not ours to stop


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr(_connect, "_PATIENCE", 0.5)
    with pytest.raises(ConnectionError, match=r"no scheduler answers at 'tcp://127.0.0.1:9'.*dask scheduler"):
        workers.start(scheduler="tcp://127.0.0.1:9")


class Batch(LocalCluster):
    """A cluster that is known, as dask-jobqueue's are, by the script of its jobs."""

    def job_script(self):
        """Return what a job runs."""


@pytest.mark.parametrize(
    ("kind", "by_address", "words"),
    [
        (LocalCluster, True, r"the scheduler at '\S+' has 1 of 3 workers after 0.3 s; `dask worker \S+ --nthreads 1`"),
        (LocalCluster, False, r"LocalCluster\(.* 1 of 3 workers \(1 asked for by `cluster.scale`\) after .* its logs"),
        (Batch, False, r"Batch\(.* 1 of 3 workers \(1 asked .*; look at its queue and at the logs of its jobs"),
    ],
)
def test_too_few_workers(kind, by_address, words):
    with kind(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        given = cluster.scheduler_address if by_address else cluster
        with pytest.raises(ConnectionError, match=f"{words}.*or wait longer, such as wait='2h'"):
            workers.start(3, scheduler=given, wait=0.3)


def test_workers_that_come_late(cluster, monkeypatch, caplog):
    monkeypatch.setattr(_connect, "_SILENCE", 0)
    counts = iter([{}, {}])
    monkeypatch.setattr(Client, "nthreads", lambda self: next(counts, {"a": 1, "b": 1}))
    with workers.start(2, scheduler=cluster, wait="1 minute"):
        (told,) = [record.getMessage() for record in caplog.records if record.name == _connect.__name__]
    assert told == "0 of 2 workers (1 asked for by `cluster.scale`) are there; waiting for 1 minute at most"


@pytest.mark.parametrize(("kind", "seconds"), [(LocalCluster, 60), (Batch, 86400)])
def test_how_long_workers_are_waited_for(kind, seconds, monkeypatch):
    asked = []
    monkeypatch.setattr(_connect, "_wait", lambda client, count, limit, wait: asked.append(limit) or count)
    with kind(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        for wait in (None, "2h", 5):
            workers.start(scheduler=cluster, wait=wait).close()
    assert asked == [seconds, 7200, 5]


@pytest.mark.slow
def test_processes_end_at_once(tmp_path):
    def prepare():
        import atexit
        import sys
        import tempfile

        class Last:
            def __del__(self, there=tmp_path / "taken apart"):
                there.touch()

        sys.modules["last"] = Last()
        sys.modules["kept"] = tempfile.TemporaryDirectory(dir=tmp_path)
        atexit.register((tmp_path / "called at exit").touch)

    with workers.start(1, dashboard=None) as client:
        client.run(prepare)
    assert [path.name for path in tmp_path.iterdir()] == ["called at exit"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [True, False])  # with a nanny, and without
def test_workers_are_ended(processes):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": processes}
    with LocalCluster(**options) as cluster, workers.start(2, scheduler=cluster) as client:
        workers.stop(client)
        assert client.nthreads() == {}
        assert client.status == "running"  # and so is the scheduler


def test_a_scheduler_without_gpus(cluster, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # where no nvidia-smi is, whatever packages are installed
    words = r"the worker inproc://\S+ has no GPU: no GPU was found .*; it needs NVIDIA"
    with pytest.raises(machine.NoGPUError, match=words):
        workers.start(scheduler=cluster, cuda=True)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_workers": 0}, ValueError, "n_workers must be 1 or more, got 0"),
        ({"memory_limit": "4XB"}, ValueError, "memory_limit must be an amount of memory such as \"4GB\", got '4XB'"),
        ({"memory_limit": "60MB"}, ValueError, "memory_limit must be 150 MB or more, got '60MB': a worker needs that"),
        ({"scheduler": "tcp://h:1", "memory_limit": "1GB"}, ValueError, "memory_limit is for workers that are started"),
        ({"wait": "2h"}, ValueError, "wait is for workers of a scheduler, got '2h'; those that are started here"),
        ({"scheduler": "tcp://h:1", "wait": "soon"}, ValueError, "wait must be a time such as '2h', or a number of"),
        ({"warm": "kmeans"}, ValueError, "systems are clue, showers, events, fof, .*, or all; got 'kmeans'"),
    ],
)
def test_options_that_cannot_be(options, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        workers.start(**options)


# --------------------------------------------------------------------------------------------------------------- GPUs
@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver that knows two GPUs."""
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB, 580.1'\necho 'NVIDIA L4, 23034 MiB, 580.1'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def packages(monkeypatch):
    """Return a function that makes packages be there, or not."""
    found = machine.importlib.util.find_spec

    def set_(**there):
        monkeypatch.setattr(
            machine.importlib.util, "find_spec", lambda name: there[name] or None if name in there else found(name)
        )

    return set_


def test_gpus_that_may_be_used(driver, monkeypatch):
    assert [name.split(",")[0] for name in machine.gpus()] == ["NVIDIA H200", "NVIDIA L4"]
    for visible, names in (("1", ["NVIDIA L4"]), ("", []), ("1,0", ["NVIDIA L4", "NVIDIA H200"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [name.split(",")[0] for name in machine.gpus()] == names


def test_without_a_driver(monkeypatch, packages):
    monkeypatch.setenv("PATH", "/nowhere")
    packages(numba_cuda=True, cupy=True, dask_cuda=True)
    with pytest.raises(machine.NoGPUError, match=r"no GPU was found .*; it needs NVIDIA's driver, 525 or newer"):
        workers.start(cuda=True)


@pytest.mark.parametrize("package", ["numba-cuda", "cupy", "dask-cuda"])
def test_without_a_package(driver, packages, package):
    there = {"numba_cuda": True, "cupy": True, "dask_cuda": True} | {package.replace("-", "_"): False}
    packages(**there)
    with pytest.raises(machine.NoGPUError, match=rf"here: {package} missing; pip install \"daskclust\[gpu\]\""):
        workers.start(cuda=True)


def test_where_this_machine_can(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with workers.start(1, cuda=None, processes=False) as client:
        assert threads(client) == [1]


@pytest.mark.parametrize("rmm", [True, False])
def test_a_worker_for_each_gpu(driver, packages, monkeypatch, rmm):
    asked, closed, limits_of_pool = {}, [], []
    pool = types.SimpleNamespace(set_limit=lambda **limit: limits_of_pool.append(limit))
    monkeypatch.setattr(_start, "cupy_module", lambda: types.SimpleNamespace(get_default_memory_pool=lambda: pool))

    class LocalCUDACluster(LocalCluster):
        def __init__(self, device_memory_limit, rmm_pool_size=None, rmm_allocator_external_lib_list=None, **options):
            asked.update(options, spills=device_memory_limit)
            asked.update(pool=rmm_pool_size, takers=rmm_allocator_external_lib_list)
            super().__init__(processes=False, **options | {"n_workers": options["n_workers"] or 2})

        def close(self, *args):
            closed.append(self)
            return super().close(*args)

    packages(numba_cuda=True, cupy=True, dask_cuda=True, rmm=rmm)
    monkeypatch.setitem(sys.modules, "dask_cuda", types.SimpleNamespace(LocalCUDACluster=LocalCUDACluster))
    with workers.start(cuda=True, memory_limit="1GB") as client:
        assert threads(client) == [1, 1]
        cluster = client.cluster
    client.close()
    del client  # it closes itself once more, on any thread, where a lock of distributed may be taken
    gc.collect()
    assert cluster.status.name == "closed"
    assert closed == [cluster]
    assert asked["memory_limit"] == 10**9
    assert (asked["pool"], asked["takers"]) == ((0.5, ["cupy"]) if rmm else (None, None))
    assert limits_of_pool == ([] if rmm else 2 * [{"fraction": 0.9}])
    assert asked["spills"] == 0.5
    with pytest.raises(ValueError, match="n_workers must be at most 2, a worker for each GPU, got 3"):
        workers.start(3, cuda=True)


# -------------------------------------------------------------------------------------------- steps of graphs in common
def test_writers_send_what_is_needed(tmp_path):
    """Dask sends steps of other blocks, too; a scheduler fails where it knows these, and not what they need."""
    blocks = [da.from_delayed(dask.delayed(np.arange)(6.0 * k, 6.0 * k + 6), (6,), float) for k in range(3)]
    first = da.concatenate(blocks)
    later = first[1:]
    ds = xr.Dataset({"x": ("hit", first), "y": ("hit", da.concatenate([later + 1, first[:1]]).rechunk(first.chunks))})
    with workers.start(1, processes=False):
        (known,) = dask.persist(later, optimize_graph=False)
        write_hits(ds, tmp_path / "hits.parquet")
        assert known.sum().compute() == 153
    found = read_hits(tmp_path / "hits.parquet")
    np.testing.assert_array_equal(found["x"], np.arange(18.0))
    np.testing.assert_array_equal(found["y"], np.append(np.arange(2.0, 19.0), 0.0))
