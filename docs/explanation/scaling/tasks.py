"""What a Dask cluster does for a computation: tasks by step, time of processors, traffic between workers."""

import os
import re
import time
from collections import defaultdict
from typing import NamedTuple

from dask.utils import key_split
from distributed import SchedulerPlugin

_TOKEN = re.compile(r"-[0-9a-f]{16,}.*$")
_PLANS = "clue|events|fof|dbscan|hca"

# steps of the engine by what they are for; others come before it, and make the points
_ROLES = {
    "merge": ("merge",),
    "carry": ("carry",),
    "cluster": ("measure", "local", "finish", "early", "frontier", "turn", "slice", "count", "chunk"),
    "route": ("split", "part", "gather", "result", "labels"),
}
ROLES = ("source", *_ROLES)


def step_of(key):
    """Return the steps of the engine that a task does, as ``"measure+local"`` where Dask made one task of several."""
    name = _TOKEN.sub("", str(key[0] if isinstance(key, tuple) else key))
    found = [re.sub(rf"^(?:{_PLANS})-", "", part) for part in re.split(r"-?daskclust-", name)[1:]]
    return "+".join(part.split("-")[0] for part in found) or key_split(key)


def role_of(step):
    """Return what a step is for, of `ROLES`; of several in one task the one that takes the most."""
    names = step.split("+")
    return next((role for role, steps in _ROLES.items() if any(name in steps for name in names)), "source")


class TaskRecord(SchedulerPlugin):
    """Counts tasks by name, with the time that they take and the bytes that they leave."""

    name = "daskclust-task-record"
    idempotent = False

    def __init__(self):
        self.found = {}

    def transition(self, key, start, finish, *args, **kwargs):
        """Note a task that is done."""
        if (start, finish) != ("processing", "memory"):
            return
        new = {"steps": set(), "tasks": 0, "seconds": 0.0, "bytes": 0, "waited": 0.0}
        entry = self.found.setdefault(key_split(key), new)
        entry["steps"].add(step_of(key))
        entry["tasks"] += 1
        entry["bytes"] += kwargs.get("nbytes") or 0
        for span in kwargs.get("startstops") or ():
            name = {"compute": "seconds", "transfer": "waited"}.get(span["action"])
            if name:
                entry[name] += span["stop"] - span["start"]


class Clocks(NamedTuple):
    """Seconds of processors up to now."""

    wall: float
    scheduler: float  # its event loop
    client: float  # this process, without the scheduler's event loop where that is here
    workers: float  # all threads of all workers
    by_prefix: dict  # threads of tasks, by Dask's names of them
    begin: float  # time of day


def read_clocks(client):
    """Return the clocks of all processes of a cluster."""
    scheduler = client.run_on_scheduler(time.thread_time)
    is_here = client.run_on_scheduler(os.getpid) == os.getpid()
    workers = sum(client.run(time.process_time).values())
    by_prefix = defaultdict(float)
    for found in client.run(_task_seconds).values():
        for prefix, seconds in found.items():
            by_prefix[prefix] += seconds
    own = time.process_time() - (scheduler if is_here else 0.0)
    return Clocks(time.perf_counter(), scheduler, own, workers, dict(by_prefix), time.time())


def idle_rates(client, seconds=2.0):
    """Return seconds of processor in each second of a cluster that has nothing to do."""
    before = read_clocks(client)
    time.sleep(seconds)
    after = read_clocks(client)
    names = ("scheduler", "client", "workers")
    return {name: (getattr(after, name) - getattr(before, name)) / (after.wall - before.wall) for name in names}


def wait_until_forgotten(client, patience=30.0):
    """Wait until a scheduler knows no task: one of the same name, in another graph, would be another one."""
    end = time.monotonic() + patience
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        if time.monotonic() > end:
            raise TimeoutError(f"tasks are still known {patience:g} s after their results were let go")
        time.sleep(0.05)


def watched(client, call):
    """Call what computes on a cluster; return its result, and what the cluster did.

    The record has ``wall_s``; seconds of processor of ``client_s``, ``scheduler_s``, ``worker_s``; ``tasks``;
    ``received`` bytes and seconds by step; ``steps``: of each tasks, seconds, seconds of processor, bytes of results.
    """
    if TaskRecord.name not in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins)):
        client.register_plugin(TaskRecord())
    client.run_on_scheduler(_take_record)
    before = read_clocks(client)
    result = call()
    wall = time.perf_counter() - before.wall
    after = read_clocks(client)
    steps = {}
    for prefix, entry in client.run_on_scheduler(_take_record).items():
        step = ",".join(sorted(entry.pop("steps")))
        own = {**entry, "cpu_s": after.by_prefix.get(prefix, 0.0) - before.by_prefix.get(prefix, 0.0)}
        old = steps.get(step, dict.fromkeys(own, 0))
        steps[step] = {name: own[name] + old[name] for name in own} | {"role": role_of(step)}
    received = {}
    for found in client.run(_received, before.begin).values():
        for step, (nbytes, seconds) in found.items():
            entry = received.setdefault(step, {"bytes": 0, "seconds": 0.0})
            entry["bytes"] += int(nbytes)
            entry["seconds"] += seconds
    return result, {
        "wall_s": wall,
        "client_s": after.client - before.client,
        "scheduler_s": after.scheduler - before.scheduler,
        "worker_s": after.workers - before.workers,
        "tasks": sum(entry["tasks"] for entry in steps.values()),
        "received": received,
        "steps": steps,
    }


def _take_record(dask_scheduler):
    """Return what the scheduler's plugin noted, and let it begin anew."""
    plugin = dask_scheduler.plugins[TaskRecord.name]
    found, plugin.found = plugin.found, {}
    return dict(found)


def _task_seconds(dask_worker):
    """Return the seconds of processor of each kind of task of a worker (Dask's fine performance metrics)."""
    out = defaultdict(float)
    for name, value in dask_worker.digests_total.items():
        if isinstance(name, tuple) and name[0] == "execute" and name[-2:] == ("thread-cpu", "seconds"):
            out[name[-3]] += value
    return dict(out)


def _received(begin, dask_worker):
    """Return bytes and seconds of what a worker took from others since a time, by the step that they come from."""
    out = defaultdict(lambda: [0, 0.0])
    for log in dask_worker.transfer_incoming_log:
        if log["start"] >= begin:
            for key, nbytes in log["keys"].items():
                out[step_of(key)][0] += nbytes
                out[step_of(key)][1] += log["duration"] * nbytes / max(log["total"], 1)
    return dict(out)
