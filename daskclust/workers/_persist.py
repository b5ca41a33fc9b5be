"""Compute on workers, and tell how far it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

from distributed import CancelledError, SchedulerPlugin, as_completed, default_client, futures_of
from distributed.utils import key_split

from daskclust.systems import SYSTEMS

TOPIC = "daskclust-steps"
_OWNERS = *SYSTEMS, "io", "properties"  # of steps, in their names
_CONNECTION_LOST = "scheduler-connection-lost"  # why distributed cancels what it was to compute
_EVERY = 0.5  # s between reports

Report = Callable[[int, int, str], None]


def persist(collection: Any, report: Report) -> Any:
    """Compute a lazy collection on the workers, where its parts stay, and tell how far it is meanwhile.

    Parameters
    ----------
    collection : dask collection or xarray.Dataset
        What is to be computed by the current client.
    report : function
        As of `following`.

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
    address = client.scheduler.address
    try:
        with following(report):
            done = collection.persist()
            for future in as_completed(futures_of(done)):
                if future.status != "finished":
                    future.result()  # raises what the task did
    except CancelledError as error:
        if getattr(error, "reason", None) != _CONNECTION_LOST and client.status == "running":
            raise  # somebody cancelled it
        raise ConnectionError(
            f"the scheduler at {address} was lost while it worked, and the results with it; start it and its workers "
            "again (its log may tell why it ended: lack of memory, or the end of a job), and run this again"
        ) from error
    return done


@contextmanager
def following(report: Report) -> Iterator[None]:
    """Tell how far the current client's tasks are that are submitted meanwhile.

    Parameters
    ----------
    report : function
        Called twice a second, and when all are done, with the number of tasks done, that of all, and the last step of
        ours, ``""`` before there is one. It is called in the client's thread, so it must be quick.

    Yields
    ------
    None

    Notes
    -----
    The scheduler counts, wherever it runs, and only what this client asked for. Of two blocks of code within each
    other, the inner one is told of.

    Examples
    --------
    >>> import dask.array as da
    >>> from daskclust.workers import start
    >>> told = []
    >>> with start(1, processes=False), following(lambda *counts: told.append(counts)):
    ...     total = da.ones(4, chunks=2).sum().compute()
    >>> done, all_of_them, step = told[-1]
    >>> done == all_of_them
    True
    """
    client = default_client()
    steps, is_open = _Steps(client.id), True

    def hear(event: tuple[float, Any]) -> None:
        name, *counts = event[1]
        if name == steps.name and is_open:
            report(*counts)

    client.subscribe_topic(TOPIC, hear)
    client.register_plugin(steps)
    try:
        yield
    finally:
        is_open = False
        if client.status == "running":
            client.unsubscribe_topic(TOPIC)
            client.unregister_scheduler_plugin(steps.name)  # goes through the client's thread: no report is under way


class _Steps(SchedulerPlugin):
    """Plugin of the scheduler that counts the tasks of what a client submits from now on."""

    def __init__(self, client: str) -> None:
        self.name, self._client = f"{TOPIC}-{uuid4().hex}", client
        self._left: set[Any] = set()
        self._total, self._step, self._told = 0, "", 0.0

    async def start(self, scheduler: Any) -> None:
        """Begin on a scheduler."""
        self._scheduler = scheduler

    def update_graph(self, scheduler: Any, *, client: str, keys: Collection[Any], **_: Any) -> None:
        """Count the tasks that are to be computed: those of a graph on which nothing in memory stands already."""
        needed = [scheduler.tasks[key] for key in keys] if client == self._client else []
        while needed:
            task = needed.pop()
            if task.state != "memory" and task.key not in self._left:
                self._left.add(task.key)
                self._total += 1
                needed += task.dependencies

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        """Report now and then after a task, and after the last one."""
        if finish != "memory" or key not in self._left:
            return
        self._left.remove(key)
        self._step = _step_of(key) or self._step
        if not self._left or monotonic() - self._told > _EVERY:
            self._told = monotonic()
            self._scheduler.log_event(TOPIC, (self.name, self._total - len(self._left), self._total, self._step))

    def remove_client(self, scheduler: Any, client: str) -> None:
        """End with the client, whatever ended that."""
        if client == self._client:
            scheduler.remove_plugin(self.name)


def _step_of(key: Any) -> str:
    """Return which step of ours a task does last; "" for dask's own, of arrays and the end of a graph."""
    _, is_ours, name = key_split(key).rpartition("daskclust-")
    first, *others = name.split("-")
    return "" if not is_ours else others[0] if others and first in _OWNERS else first
