"""What a Dask cluster takes for a computation: processors, tasks, traffic, disk, memory."""

import os
import re
import time
from collections import Counter
from pathlib import Path

from distributed import SchedulerPlugin


class TaskRecord(SchedulerPlugin):
    """Counts tasks, and the bytes of what local steps leave."""

    name = "daskclust-task-record"
    idempotent = False

    def __init__(self):
        self.found = Counter()

    def transition(self, key, start, finish, *args, **kwargs):
        """Note a task that is done."""
        if (start, finish) == ("processing", "memory"):
            self.found["tasks"] += 1
            if re.search(r"-local-[0-9a-f]{16,}", str(key)):
                self.found["kept_bytes"] += kwargs.get("nbytes") or 0


def watched(client, call):
    """Call what computes on a cluster; return its result, and what the cluster took.

    Seconds ``wall_s``, and of processors: ``client_s``, ``scheduler_s``, ``worker_s`` and ``merge_s`` of the merge's
    steps among these; ``tasks``; ``kept_bytes`` until the merge is done; ``received_bytes`` from other workers, without
    dask's P2P exchange; ``written_bytes`` to disk; ``peak_bytes`` of the worker with most memory.
    """
    if TaskRecord.name not in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins)):
        client.register_plugin(TaskRecord())
    client.run_on_scheduler(_take_record)
    before = _clocks(client)
    result = call()
    spent = {name: value - before[name] for name, value in _clocks(client).items()}
    peak = max(client.run(_peak_bytes).values())
    return result, spent | client.run_on_scheduler(_take_record) | {"peak_bytes": peak}


def _clocks(client):
    """Return what all processes of a cluster have spent up to now."""
    is_here = client.run_on_scheduler(os.getpid) == os.getpid()
    spent = {"wall_s": time.perf_counter(), "scheduler_s": client.run_on_scheduler(time.thread_time)}
    spent["client_s"] = time.process_time() - is_here * spent["scheduler_s"]
    for of_worker in client.run(_of_worker).values():
        for name, value in of_worker.items():
            spent[name] = spent.get(name, 0) + value
    return spent


def _of_worker(dask_worker):
    """Return what a worker has spent up to now; its peak of memory begins anew."""
    import psutil

    own = psutil.Process()
    Path("/proc/self/clear_refs").write_text("5")
    seconds = [
        value
        for name, value in dask_worker.digests_total.items()  # Dask's fine performance metrics
        if name[0] == "execute" and "merge" in name[-3] and name[-2:] == ("thread-cpu", "seconds")
    ]
    return {
        "worker_s": time.process_time(),
        "merge_s": sum(seconds),
        "received_bytes": sum(log["total"] for log in dask_worker.transfer_incoming_log),
        "written_bytes": own.io_counters().write_bytes,
    }


def _peak_bytes():
    """Return the most memory that a worker had since its clocks were read."""
    (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak) * 1024


def _take_record(dask_scheduler):
    """Return what the scheduler's plugin noted, and let it begin anew."""
    plugin = dask_scheduler.plugins[TaskRecord.name]
    found, plugin.found = plugin.found, Counter()
    return dict(found)
