"""Where a command clusters: in this process, on workers that it starts, or on those of a scheduler; on CPUs or GPUs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._options import RUNNING

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._work import Work

Workers = Annotated[
    int,
    typer.Option(
        help="Processes of a Dask cluster, with --cuda on a GPU each; 0: this process, on all cores.",
        rich_help_panel=RUNNING,
    ),
]
Cuda = Annotated[
    bool,
    typer.Option(
        "--cuda", help="Cluster on an NVIDIA GPU: this process's, or one for each worker.", rich_help_panel=RUNNING
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Use the workers of a Dask scheduler that runs, e.g. tcp://host:8786; they must see the files.",
        rich_help_panel=RUNNING,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Memory of each of the --workers: 4GB, or a fraction of the machine's, 0.2.  "
        "\\[default: the machine's over the workers]",
        rich_help_panel=RUNNING,
    ),
]
Chunks = Annotated[int, typer.Option(help="Points of a chunk, with --workers or --scheduler.", rich_help_panel=RUNNING)]


@dataclass(frozen=True)
class Running:
    """Where a command clusters.

    Parameters
    ----------
    workers : int
        Processes to start; 0: none.
    cuda : bool
        Whether on GPUs.
    scheduler : str or None
        Address of one that runs, whose workers are used.
    memory_limit : str or None
        Of each of the workers that are started.

    Raises
    ------
    ValueError
        Where they do not go with each other.
    """

    workers: int
    cuda: bool
    scheduler: str | None
    memory_limit: str | None

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(
                f"--workers must be 0 or more, got {self.workers}; 0 clusters in this process, on all cores"
            )
        if self.scheduler is not None and self.workers:
            raise ValueError(f"--scheduler {self.scheduler} has workers of its own; leave --workers out")
        if self.memory_limit is not None and not self.workers:
            raise ValueError(
                f"--memory-limit {self.memory_limit} is for workers that are started here; "
                + ("give --workers" if self.scheduler is None else "give it to `dask worker`, and leave it out here")
            )

    @property
    def is_on_dask(self) -> bool:
        """Whether Dask workers cluster."""
        return self.workers > 0 or self.scheduler is not None

    def chunks(self, points: int) -> int | None:
        """Return the points of a chunk as readers take it; None reads at once, in this process."""
        return points if self.is_on_dask else None

    @contextmanager
    def cluster(self, work: Work) -> Iterator[Any]:
        """Give the client of a cluster, or None where there is none; make sure of GPUs before any work."""
        if self.cuda:
            from daskclust.machine import check_gpu

            check_gpu(dask=self.workers > 0)
        if not self.is_on_dask:
            yield None
            return
        from daskclust.core.run.graph import only_needed
        from daskclust.workers import start

        if self.scheduler is None:
            work.begin(f"starting {self.workers} worker{'s' * (self.workers > 1)}")
        else:
            work.begin(f"connecting to {self.scheduler}")
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # that it is lost is told in two lines
        limit, count, silent = self.memory_limit, self.workers or None, self.scheduler is None
        client = start(count, cuda=self.cuda, scheduler=self.scheduler, memory_limit=limit, silent=silent)
        with client, only_needed():  # what is computed, counted and written has steps in common
            try:
                yield client
            except Exception as error:
                self._explain(error, client)
                raise

    def give(self, ds: xr.Dataset) -> xr.Dataset:
        """Return data for the devices that cluster: on GPUs, at once or lazily, or as they are."""
        if not self.cuda:
            return ds
        from daskclust.io import to_device

        return to_device(ds, "cuda")

    def results(
        self, found: xr.Dataset, read: xr.Dataset, name: str, points: tuple[int, str], work: Work
    ) -> xr.Dataset:
        """Return results in host memory, to be written: computed on the workers, where they stay, or here.

        On workers what was `read` is not kept, but read again when it is written: it may be larger than their memory.
        """
        if self.cuda:
            from daskclust.io import to_device

            found = to_device(found, "cpu")
        if not self.is_on_dask:
            return found.compute(scheduler="synchronous")  # chunk after chunk: one fills a GPU
        again = {column: read[column] for column in found.data_vars if column in read.data_vars}
        done = work.compute(found.drop_vars(list(again)), name, points)
        return found.assign({**again, **done.data_vars})

    def _explain(self, error: Exception, client: Any) -> None:
        """Raise another error where one is due to the scheduler that was given."""
        if self.scheduler is None:
            return
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
