"""Compute on workers, and tell how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import CancelledError, SchedulerPlugin, as_completed, default_client, futures_of
from distributed.utils import key_split

_CONNECTION_LOST = "scheduler-connection-lost"  # why distributed cancels what it was to compute


def persist(collection: Any, report: Callable[[int, int, str], None]) -> Any:
    """Compute a lazy collection on the workers, where its parts stay, and tell how far it is meanwhile.

    Parameters
    ----------
    collection : dask collection or xarray.Dataset
        What is to be computed by the current client.
    report : function
        Called with the number of tasks done, that of all, and the step of the last one, in the scheduler's thread, so
        it must be quick. Of a scheduler in another process, parts of the result are counted.

    Returns
    -------
    dask collection or xarray.Dataset
        The same, its parts computed.

    Raises
    ------
    ConnectionError
        Where the scheduler is lost meanwhile. What a task raised is raised, too.
    """
    client = default_client()
    address, scheduler = client.scheduler.address, getattr(client.cluster, "scheduler", None)
    steps = _Steps(report)
    if scheduler is not None:
        scheduler.add_plugin(steps, name=steps.name)
    try:
        done = collection.persist()
        futures = futures_of(done)
        for number, future in enumerate(as_completed(futures), start=1):
            if future.status != "finished":
                future.result()  # raises what the task did
            if scheduler is None:
                report(number, len(futures), "parts")
    except CancelledError as error:
        if getattr(error, "reason", None) != _CONNECTION_LOST and client.status == "running":
            raise  # somebody cancelled it
        raise ConnectionError(
            f"the scheduler at {address} was lost while it worked, and the results with it; start it and its workers "
            "again (its log may tell why it ended: lack of memory, or the end of a job), and run this again"
        ) from error
    finally:
        if scheduler is not None:
            scheduler.remove_plugin(steps.name)
    return done


class _Steps(SchedulerPlugin):
    """Plugin of the scheduler that reports the tasks of what is submitted from now on."""

    def __init__(self, report: Callable[[int, int, str], None]) -> None:
        self.name, self._report, self._total = f"daskclust-steps-{id(report)}", report, 0
        self._done: set[Any] = set()

    def update_graph(self, scheduler: Any, *, tasks: Any = (), **_: Any) -> None:
        """Count the tasks of a graph."""
        self._total += len(tasks)

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        """Report a task that is done."""
        if finish == "memory" and self._total:
            self._done.add(key)
            self._report(min(len(self._done), self._total), self._total, key_split(key).rpartition("-")[2])
