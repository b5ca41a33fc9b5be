"""Workers that die, memory that ends, a scheduler that is lost: the same answer, or one clear error in bounded time."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import dask
import pytest
from cases.lanes import in_long_lane
from distributed import Client, KilledWorker
from laws.systems import ALONE, SYSTEMS, Around, Delays, Gorge, Kill, assert_same_output

from daskclust import workers
from daskclust.cli._errors import trouble

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Port .* is already in use")]

PHASES = ("local", "merge", "finish")
BESIDE_POINTS = ("daskclust.core.data.lazy", "_like_block")
"""What gives HCA's points their labels, cut from the tree: its last step, as its plan has none."""


@pytest.fixture(autouse=True, params=range(in_long_lane(5, otherwise=1)))
def in_bounded_time() -> Iterator[None]:
    """Fail after ten minutes: an error may be an answer here, a hang never."""

    def end(*_: object) -> None:
        raise TimeoutError("no answer and no error after ten minutes")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Return the client of two workers in processes of their own, which nannies start again where they die."""
    with workers.start(2, memory_limit="900MB") as client:
        yield client


@pytest.fixture
def client(cluster: Client) -> Iterator[Client]:
    """Return the client when all workers are there; plugins of the test go with it."""
    cluster.wait_for_workers(2)
    with dask.config.set(scheduler="dask.distributed"):
        yield cluster
    cluster.wait_for_workers(2)
    for name in {name for plugins in cluster.run(plugins_of).values() for name in plugins}:
        cluster.unregister_worker_plugin(name)


def plugins_of(dask_worker: object) -> list[str]:
    return [name for name in dask_worker.plugins if name.startswith("around")]


def answer(name: str) -> None:
    """Demand the output of a system in memory from four chunks of it on the workers."""
    system = SYSTEMS[name]
    assert_same_output(system.cluster(-(-len(system) // 4)), name)


# -------------------------------------------------------------------------------------------------------------- workers
@pytest.mark.parametrize("name", ["clue", "events", "dbscan", "hca"])
def test_workers_killed_in_every_phase(name: str, client: Client, tmp_path: Path) -> None:
    """Three of them, one after the other, each when it has done a step and before it can tell the result."""
    for phase in PHASES:
        if (name, phase) == ("hca", "finish"):
            client.register_plugin(Around(BESIDE_POINTS, Kill("", tmp_path / phase), "around-beside"))
        else:
            client.register_plugin(Around(ALONE, Kill(phase, tmp_path / phase), f"around-{phase}"))
    answer(name)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PHASES)  # it has happened


def test_a_worker_out_of_memory(client: Client, tmp_path: Path) -> None:
    client.register_plugin(Around(ALONE, Gorge("local", tmp_path / "gorged")))
    answer("clue")
    assert (tmp_path / "gorged").exists()


@pytest.mark.parametrize("fault", [Kill("merge"), Gorge("merge")], ids=["killed", "memory"])
def test_a_step_that_no_worker_survives(fault: Kill, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 1)
    client.register_plugin(Around(ALONE, fault))
    with pytest.raises(KilledWorker, match=r"daskclust-dbscan-merge.* on 2 different workers") as error:
        answer("dbscan")
    told = trouble(error.value, None)
    assert told is not None
    assert "a Dask worker died, most likely for lack of memory" in told.what
    assert "smaller --chunks" in told.hint
    client.wait_for_workers(2)
    client.unregister_worker_plugin("around")
    answer("dbscan")  # the cluster goes on


# ------------------------------------------------------------------------------------------------------------ scheduler
def test_a_lost_scheduler(elsewhere: tuple[str, subprocess.Popen[bytes]]) -> None:
    """There is an error, which says what is lost, and no waiting for the scheduler."""
    address, scheduler = elsewhere
    with Client(address) as client, dask.config.set(scheduler="dask.distributed"):
        client.register_plugin(Around(ALONE, Delays(0, 0.3)))
        lost = SYSTEMS["clue"].cluster(500)

        def kill() -> None:
            while not client.futures:  # it has the tasks then
                time.sleep(0.01)
            scheduler.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(CancelledError, match="lost the connection to the scheduler"):
            lost.compute()
        killer.join()
