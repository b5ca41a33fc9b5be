"""How far a computation is: tasks of this client on any scheduler, and what happens when one is lost."""

from __future__ import annotations

import logging
import threading
import time

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from distributed import CancelledError, Client, Future, LocalCluster, wait

from daskclust import workers
from daskclust.workers import _persist


def points(function=lambda block: time.sleep(0.2) or block, count=50):
    """Return a lazy Dataset of so many parts; a lambda takes its code along."""
    return xr.Dataset({"x": ("hit", da.ones(count, chunks=1).map_blocks(function, dtype=float, meta=np.ones(0)))})


@pytest.mark.slow
def test_a_scheduler_that_is_lost(elsewhere):
    """Not a result that nobody computed, and no waiting for one."""
    address, scheduler = elsewhere
    parts = []

    def report(*part):
        parts.append(part)
        scheduler.kill()

    client = workers.start(scheduler=address)
    try:
        with pytest.raises(ConnectionError, match=rf"the scheduler at {address} was lost while it worked.*; start it"):
            workers.persist(points(), report)
    finally:
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # it tells at length as it closes
        client.close()
    assert parts[0][:2] == (1, 50)
    assert len(parts) < 50


@pytest.fixture(scope="module")
def away():
    """Return a cluster that clients know by its address alone, as one that somebody else started."""
    with LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster


def test_tasks_of_a_scheduler_elsewhere_are_counted(away):
    """Those of this client alone, and each report has the right total."""
    told, others = [], points(np.negative, 30)
    with Client(away.scheduler_address) as other, workers.start(scheduler=away.scheduler_address):
        with other.as_current():
            begun = others.persist()
        done = workers.persist(points(np.sqrt, 20), lambda *counts: told.append(counts))
        del begun
    assert {total for _, total, _ in told} == {20}
    assert [number for number, _, _ in told] == sorted({number for number, _, _ in told})
    assert told[-1] == (20, 20, "")  # no step is ours
    assert done["x"].size == 20
    assert not [name for name in away.scheduler.plugins if name.startswith("daskclust-steps")]


@pytest.mark.parametrize(
    ("key", "step"),
    [
        (("daskclust-fof-labels-0f", 3), "labels"),
        (("daskclust-fof-gather-daskclust-fof-labels-0f", 3), "labels"),
        (("daskclust-fof-finish-rechunk-transfer-0f", 3), "finish"),
        (("daskclust-split-getitem-0f", 3), "split"),
        ("daskclust-io-read-0f", "read"),
        ("daskclust-properties-0f", "properties"),
        (("getitem-0f", 3), ""),
    ],
)
def test_steps_that_reports_name(key, step):
    assert _persist._step_of(key) == step


def test_what_is_in_memory_already_is_no_task_to_come(away):
    told = []
    lazy = points(np.sqrt, 20)
    with workers.start(scheduler=away.scheduler_address):
        kept = lazy.persist(optimize_graph=False)
        wait(kept)
        with workers.following(lambda *counts: told.append(counts)):
            for later in ((kept + 1).persist(), (lazy + 2).persist(optimize_graph=False)):
                wait(later)  # of what makes `lazy` nothing is needed
    assert told[-1][:2] == (40, 40)


def test_a_client_that_is_gone_leaves_no_counter(away):
    client = Client(away.scheduler_address)
    with client, workers.following(lambda *_: None):
        assert [name for name in away.scheduler.plugins if name.startswith("daskclust-steps")]
        client.close()
        while client.id in away.scheduler.clients:
            time.sleep(0.01)
    assert not [name for name in away.scheduler.plugins if name.startswith("daskclust-steps")]


def test_what_somebody_cancels_is_no_lost_scheduler():
    with workers.start(1, processes=False) as client:

        def cancel():
            while not client.futures:
                time.sleep(0.01)
            client.cancel([Future(key, client) for key in list(client.futures)])

        stop = threading.Thread(target=cancel)
        stop.start()
        with pytest.raises(CancelledError):
            workers.persist(points(), lambda *_: None)
        stop.join()


def test_an_error_of_a_task_is_raised():
    with workers.start(1, processes=False), pytest.raises(ZeroDivisionError):
        workers.persist(points(lambda _: 1 // 0, 2), lambda *_: None)


# ------------------------------------------------------------------------------------------------------------- errors
