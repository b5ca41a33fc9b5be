"""Options of every command that clusters, and the Dask cluster that they ask for."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from daskclust.cli._options import Json, Quiet, running, writing

if TYPE_CHECKING:
    from daskclust.cli._progress import Work


@dataclass(frozen=True, kw_only=True)
class Running:
    """Options of every command that clusters: what it writes, where it clusters, and what it shows."""

    output: Annotated[Path | None, writing("Points with labels: .parquet, .csv, .h5, .root ...", "--output", "-o")] = (
        None
    )
    only: Annotated[str | None, running("Columns of -o: x,y,label.", default="the file's, and results")] = None
    table: Annotated[Path | None, writing("Clusters, a row each, in the same formats.")] = None
    workers: Annotated[int, running("Processes of a Dask cluster; 0: this process, on all cores.", min=0)] = 0
    cuda: Annotated[bool, running("Cluster on an NVIDIA GPU, or one for each worker.", "--cuda")] = False
    scheduler: Annotated[str | None, running("A Dask scheduler that runs: tcp://host:8786.", metavar="ADDRESS")] = None
    wait: Annotated[str | None, running("Time for its first worker to come: 90s, 2h.", default="1 minute")] = None
    memory_limit: Annotated[str | None, running("Of each worker: 4GB, or a fraction.", default="all, divided")] = None
    dry_run: Annotated[bool, running("Tell points, memory and time, and do nothing.", "--dry-run")] = False
    each: Annotated[bool, running("Each FILE by itself; -o is a folder, or has {} for its name.", "--each")] = False
    verbose: Annotated[bool, running("Add to the summary the seconds of each stage.", "--verbose", "-v")] = False
    as_json: Json = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.workers:
            raise ValueError(f"--scheduler {self.scheduler} has workers of its own; leave --workers out")
        if self.only is not None and self.output is None:
            raise ValueError(f"--only {self.only} chooses columns of an output; give -o, or leave it out")
        if self.wait is not None and self.scheduler is None:
            raise ValueError(f"--wait {self.wait} is for workers of a --scheduler; leave it out")
        if self.memory_limit is not None and not self.workers:
            raise ValueError(
                f"--memory-limit {self.memory_limit} is for workers that are started here; "
                + ("give --workers" if self.scheduler is None else "give it to `dask worker`, and leave it out here")
            )

    @property
    def is_on_dask(self) -> bool:
        """Whether Dask workers cluster."""
        return self.workers > 0 or self.scheduler is not None

    @contextmanager
    def cluster(self, work: Work) -> Iterator[None]:
        """Have a Dask cluster where one is asked for; make sure of GPUs before any work."""
        if self.cuda:
            from daskclust.machine import check_gpu

            check_gpu(dask=self.workers > 0)
        if not self.is_on_dask:
            yield
            return
        from daskclust.core.run.graph import only_needed
        from daskclust.workers import start

        if self.scheduler is None:
            work.begin(f"starting {self.workers} worker{'s' * (self.workers > 1)}")
        else:
            work.begin(f"connecting to {self.scheduler}")
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # that it is lost is told in two lines
        client = start(
            self.workers or None,
            cuda=self.cuda,
            scheduler=self.scheduler,
            wait=self.wait,
            memory_limit=self.memory_limit,
            dashboard=None,  # nobody is told of it
            silent=self.scheduler is None,
        )
        with client, only_needed():  # what is computed, counted and written has steps in common
            try:
                yield
            except Exception as error:
                if self.scheduler is not None:
                    self._explain(error, client)
                raise

    def _explain(self, error: Exception, client: Any) -> None:
        """Raise another error where one is due to the scheduler that was given."""
        if client.status != "running" and not isinstance(error, ConnectionError):
            raise ConnectionError(
                f"the scheduler at {self.scheduler} was lost, and the results with it; start it and its workers again, "
                "and run this again"
            ) from error
        path = _missing(error)
        if path is not None and path.exists():
            raise FileNotFoundError(
                f"workers of {self.scheduler} see no {path}, which is here; put it where all machines have it under "
                "the same name"
            ) from error


def _missing(error: Exception) -> Path | None:
    """Return the file that an error says is not there: libraries other than Python's name it in their text alone."""
    if not isinstance(error, FileNotFoundError):
        return None
    told = re.search(r"'(/[^']+)'|^(/.+) does not exist", str(error))
    name = error.filename or (told and (told[1] or told[2]))
    return Path(name) if name else None
