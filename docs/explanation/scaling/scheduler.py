"""What Dask's scheduler alone does for a graph, with workers that are pretended: thousands need no machines.

    python docs/explanation/scaling/scheduler.py scheduler-cpu.json --cases fof --chunks 1000 --workers 100 1000 4000

Its own class makes all decisions and messages. Workers take no time: each answers its tasks in order, and what a task
needs from others is there at once.
"""

import argparse
import asyncio
import itertools
import json
import logging
import multiprocessing
import pickle
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import dask
import psutil
from dask.base import collections_to_expr
from dask.core import flatten
from distributed import Scheduler
from distributed.core import Status
from distributed.protocol import dumps, loads
from distributed.protocol.serialize import Serialized, serialize, to_serialize
from distributed.scheduler import ClientState, WorkerState
from points import CASES, IN_SPACE, fitted

from daskclust.machine import describe

_CLIENT = "client"
_NBYTES = 1_000_000  # of each result
_TYPE = pickle.dumps(object)


class Mailbox:
    """Takes messages in the place of a connection, and makes the bytes that would be sent."""

    def __init__(self, inbox, address):
        self.inbox, self.address, self.bytes = inbox, address, 0

    def send(self, *messages):
        """Take messages of the scheduler."""
        self.bytes += sum(len(frame) for frame in dumps(messages))
        self.inbox.extend((self.address, each) for each in messages if each["op"] == "compute-task")

    def abort(self):
        """Close nothing."""


class Simulation:
    """A scheduler with pretended workers of one thread and a client."""

    def __init__(self, scheduler, workers):
        self.scheduler, self.inbox = scheduler, deque()
        self.boxes = {_CLIENT: Mailbox(deque(), _CLIENT)}
        scheduler.clients[_CLIENT] = ClientState(_CLIENT)
        scheduler.client_comms[_CLIENT] = self.boxes[_CLIENT]
        for number in range(workers):
            self._add_worker(f"tcp://192.0.2.{number // 250}:{1000 + number % 250}")

    def _add_worker(self, address):
        names = {"name": address, "server_id": address, "local_directory": "", "nanny": None, "pid": 1}
        worker = WorkerState(
            address=address, status=Status.running, nthreads=1, memory_limit=0, scheduler=self.scheduler, **names
        )
        self.scheduler.workers[address] = worker
        self.scheduler.running.add(worker)
        self.scheduler.total_nthreads += 1
        self.boxes[address] = self.scheduler.stream_comms[address] = Mailbox(self.inbox, address)
        self.scheduler.check_idle_saturated(worker)
        for plugin in self.scheduler.plugins.values():
            plugin.add_worker(scheduler=self.scheduler, worker=address)

    async def submit(self, collections):
        """Send a graph as a client does; return how many bytes it has, and the keys that are asked for."""
        expr = collections_to_expr(collections, True).optimize()
        keys = set(flatten(expr.__dask_keys__()))
        sent = Serialized(*serialize(to_serialize(expr), on_error="raise"))
        size = sum(memoryview(frame).nbytes for frame in sent.frames)
        await self.scheduler.update_graph(_CLIENT, sent, keys, {"collections": []}, None, None)
        return size, keys

    def answer(self):
        """Let workers do what they were asked for, until nothing is left."""
        done = 0
        while self.inbox:
            worker, asked = self.inbox.popleft()
            others = [key for key, owners in asked["who_has"].items() if worker not in owners]
            if others:
                self.scheduler.add_keys(worker=worker, keys=others, stimulus_id="fetched")
            message = {
                "key": asked["key"], "run_id": asked["run_id"], "stimulus_id": f"task-finished-{done}",
                "nbytes": _NBYTES, "type": _TYPE, "typename": "object", "metadata": {}, "thread": 1,
                "startstops": [{"action": "compute", "start": 0.0, "stop": 0.5}],
            }  # fmt: skip
            (message,) = loads(dumps([message]))
            self.scheduler.handle_task_finished(worker=worker, **message)
            done += 1
        return done


async def simulated(make, workers):
    """Return what a scheduler takes for the dask collections that a function makes, with so many workers.

    Seconds are of the processor: ``build_s`` the client's, ``submit_s`` until the scheduler has all tasks, ``task_s``
    for each of them from then on, messages included. ``graph_bytes`` are what the client sends, ``task_bytes`` a task's
    share of the scheduler's memory before any is done, ``sent_bytes`` its messages to workers.
    """
    begin = time.process_time()
    collections = make()
    build = time.process_time() - begin
    async with Scheduler(port=0, dashboard_address=":0", protocol="inproc") as scheduler:
        simulation = Simulation(scheduler, workers)
        before, begin = psutil.Process().memory_info().rss, time.process_time()
        size, keys = await simulation.submit(collections)
        submitted, begin = time.process_time() - begin, time.process_time()
        tasks, after = len(scheduler.tasks), psutil.Process().memory_info().rss
        done = simulation.answer()
        answered = time.process_time() - begin
        assert all(scheduler.tasks[key].state == "memory" for key in keys)
        sent = sum(box.bytes for box in simulation.boxes.values())
        for address in list(scheduler.workers):  # nobody is there to be asked to close
            scheduler.stream_comms.pop(address)
            scheduler.running.discard(scheduler.workers[address])
            del scheduler.workers[address]
        scheduler.clients.clear()
        scheduler.client_comms.clear()
    return {
        "workers": workers,
        "tasks": tasks,
        "done": done,
        "build_s": build,
        "graph_bytes": size,
        "submit_s": submitted,
        "task_s": answered / max(done, 1),
        "task_bytes": (after - before) / max(tasks, 1),
        "sent_bytes": sent / max(done, 1),
    }


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--chunks", type=int, nargs="+", default=[1000])
    parser.add_argument("--orders", nargs="+", choices=["random", "blocks"], default=["random", "blocks"])
    parser.add_argument("--rows", type=int, default=1000, help="of a chunk: nothing is computed but a sample of them")
    parser.add_argument("--workers", type=int, nargs="+", default=[1000])
    asked = parser.parse_args(arguments)
    runs = []
    for case, order, chunks, workers in itertools.product(asked.cases, asked.orders, asked.chunks, asked.workers):
        if order == "blocks" and case not in IN_SPACE:
            continue
        # a process for each: memory that one before has left is not counted, nor given to the next
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
            make = partial(fitted, case, chunks * asked.rows, asked.rows, order)
            found = own.submit(_measured, make, workers).result()
        runs.append({"system": case, "order": order, "chunks": chunks} | found)
    report = {"system": "scheduler", "device": "cpu", "parameters": {"rows": asked.rows}, "machine": describe()}
    asked.output.write_text(json.dumps(report | {"runs": runs}, indent=1) + "\n")


class _Here:
    """Computes the sample of points in this process, while the engine makes steps as for a cluster."""

    cluster = None

    def scheduler_info(self, **_):
        return {"workers": {}}

    def get(self, graph, keys, **_):
        return dask.get(graph, keys)

    def gather(self, blocks):
        return blocks


def config_of(workers):
    """Return dask's configuration for a graph as for so many workers, with a block for each chunk."""
    there = {"daskclust.workers": workers, "daskclust.worker-memory": "8GB", "scheduler": _Here().get}
    return {"daskclust.task-seconds": 0} | there


def _measured(make, workers):
    """Run a simulation, with a block for each chunk, where nothing was computed before."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
    alone = {"distributed.scheduler.active-memory-manager.start": False}  # it would move results between workers
    with dask.config.set(config_of(workers) | alone):
        return asyncio.run(simulated(make, workers))


if __name__ == "__main__":
    main()
