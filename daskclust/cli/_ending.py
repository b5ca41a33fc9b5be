"""What ends ``daskclust events``: the end of a file, and of a running readout a signal or an error."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from daskclust.cli._errors import Terminated, handling

if TYPE_CHECKING:
    from daskclust.cli._job import Job
    from daskclust.io import PartsSink
    from daskclust.readout.stream import EventStream

Item = TypeVar("Item")


class Ending:
    """What ends a stream: of a readout, a signal or an error, after which what has come is clustered and written.

    A second Ctrl-C ends clustering: what is complete is written. A third ends the process. Of a file, an error is
    raised, and no output kept.
    """

    def __init__(self, *, keep: bool) -> None:
        self._keeps = keep
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.sinks: dict[str, PartsSink] = {}
        self._signals: list[int] = []
        self._is_clustering = False

    def heeding(self) -> AbstractContextManager[None]:
        """Heed signals, Ctrl-C among them."""
        return handling(self._heed, signal.SIGINT)

    def _heed(self, number: int, _: Any) -> None:
        self.stop.set()
        self._signals.append(number)
        if self._is_cut:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if self._is_clustering:
                raise KeyboardInterrupt

    @property
    def _is_cut(self) -> bool:
        return self._signals.count(signal.SIGINT) > 1

    def sink(self, name: str, path: Path) -> PartsSink:
        """Return what makes an output."""
        from daskclust.io import PartsSink

        sink = PartsSink(path, keep=self._keeps)
        if self._keeps:
            self.sinks[name] = sink
        return sink

    def clustered(self, batches: Iterable[Item], stream: EventStream) -> Iterator[Item]:
        """Yield what is clustered; a second Ctrl-C raises here, and nowhere else. Files are told how far they go."""
        rounds, batch = iter(batches), None
        while True:
            self._is_clustering = True
            try:
                if self._is_cut:
                    raise KeyboardInterrupt
                batch = next(rounds, None)
            finally:
                self._is_clustering = False
                for sink in self.sinks.values():
                    sink.attrs |= {"hits_received": stream.counters.hits_in, "complete_to": stream.complete_to}
            if batch is None:
                return
            yield batch

    def finish(self) -> None:
        """Let files tell what ended the readout, if it was no error: that of an output is raised now."""
        if self.error is not None:
            raise self.error
        for sink in self.sinks.values():
            sink.attrs["ended_by"] = self._how

    def fail(self, error: BaseException) -> None:
        """End because of an error, the first one; of a file raise it."""
        if not self._keeps:
            raise error
        self.error = self.error or error
        self.stop.set()

    @property
    def _how(self) -> str:
        return signal.Signals(self._signals[0]).name if self._signals else "the readout"

    def show(self, job: Job) -> None:
        """Show the summary, and raise what ended the readout where that was not wished."""
        error, has_come = self.error, job.summary["hits"] > 0
        job.summary["ended_by"] = self._how if error is None else str(error) or "SIGINT"
        by_signal = self._signals if error is not None else [each for each in self._signals if each != signal.SIGINT]
        if by_signal and (error is None or not has_come):
            error = Terminated(by_signal[0])
        if error is not None and not has_come:
            raise error
        for name, sink in self.sinks.items():
            job.summary |= {f"{name}_rows": sink.n_rows} | ({name: str(sink.kept)} if sink.kept else {})
        with suppress(*([] if error is None else [OSError])):  # of a terminal that is gone
            if error is None or not job.run.as_json:
                job.show(with_outputs=False)
        if error is not None:
            rows = [f"{sink.n_rows:,} rows in {sink.kept or sink.path}" for sink in self.sinks.values()]
            hint = f"kept of {job.summary['hits']:,} hits: {', '.join(rows) or 'the summary'}"
            vars(error)["kept"] = {"hint": hint, "summary": job.summary}
            raise error
