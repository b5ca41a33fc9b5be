"""What commands that cluster have in common: where they run, reading, clustering, writing, and the summary."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from daskclust.cli._console import console, show, tell
from daskclust.cli._options import Json, Quiet, check_outputs, running, writing
from daskclust.cli._progress import Work, progress
from daskclust.cli._several import PIPE, names_of, shown
from daskclust.core.device.machine_code.compiling import Clock
from daskclust.io.files import WRITABLE
from daskclust.io.replacing import naming

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

logger = logging.getLogger(__name__)

_OPTIONS = {"output": "-o", "table": "--table", "merges_output": "--merges"}
_STAGES = "starting", "reading", "clustering", "table", "writing"
_SHOWN = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".fcs")  # what the explorer reads of cells
_SHOWN_POINTS = (*_SHOWN, ".h5", ".hdf5", ".npz", ".npy", ".zarr", ".root", ".arborx", ".tpx3", ".t3pa")  # and others


@dataclass(frozen=True, kw_only=True)
class Running:
    """Options of every command that clusters: what it writes, where it clusters, and what it shows."""

    output: Annotated[
        Path | None, writing("Points with labels: .parquet, .csv, .h5, .npz or .zarr.", "--output", "-o")
    ] = None
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


class Job:
    """One run of a command: it reads hits, cells ... (the `unit`), clusters, writes, and shows a summary."""

    def __init__(
        self,
        title: str,
        unit: str,
        sources: Sequence[str | Path],
        run: Running,
        suffixes: Sequence[str] = WRITABLE,
        others: Sequence[Path] = (),  # that are read, too
    ) -> None:
        self.title, self.unit, self.sources, self.run = f"{title}: {names_of(sources)}", unit, sources, run
        self.name = names_of(sources).rpartition("/")[2]
        found = {name: getattr(run, name, None) for name in _OPTIONS}
        self.outputs: dict[str, Path] = {name: path for name, path in found.items() if path is not None}
        check_outputs([*sources, *others], {_OPTIONS[name]: path for name, path in self.outputs.items()}, suffixes)
        self.summary: dict[str, Any] = {}
        self.stages: dict[str, float] = {}
        self._clock = Clock()

    @contextmanager
    def started(self) -> Iterator[None]:
        """Show progress, and have a cluster where one is asked for; the time goes into the summary."""
        with progress(f"reading {self.name}", quiet=self.run.quiet) as self.work, ExitStack() as cluster:
            with self.stage("starting") if self.run.is_on_dask else nullcontext():
                cluster.enter_context(self.run.cluster(self.work))
            yield
            if self.run.workers:
                self.work.begin("stopping workers")
        self.summary["seconds"] = round(self._clock.seconds, 3)
        self.summary["seconds_compiling"] = round(self._clock.compiling, 3)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time spent here, without that of compiling, as that of a stage of the work."""
        clock = Clock()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + clock.seconds

    def read(
        self, reader: Callable[..., xr.Dataset], chunks: int | None, about: int = 1 << 20, **options: Any
    ) -> xr.Dataset:
        """Return the points of the source; where workers cluster, lazy in chunks of so many, by default of `about`."""
        from daskclust.io.rows import About
        from daskclust.io.several import joined

        size, found = (chunks or About(about)) if self.run.is_on_dask else None, {}
        for path in map(Path, self.sources):
            self.work.read(path, is_lazy=self.run.is_on_dask)
            with self.stage("reading"):
                found[str(path)] = reader(path, chunks=size, **options)
        with self.stage("reading"):
            ds = joined(found, size) if len(found) > 1 else found[str(path)]
        if (told := ds.attrs.get("columns")) and not self.run.quiet:
            logger.warning("columns were taken as %s", told)
        return ds

    def cluster(
        self, points: xr.Dataset, system: str, parameters: dict[str, Any], wanted: list[str] | None = None
    ) -> xr.Dataset:
        """Return points with the results of a method of ``ds.clust``, in host memory.

        Where nothing is written, only the `wanted` results are kept. On workers results stay there, and what was read
        is not kept, but read again when it is written: it may be larger than their memory.
        """
        from daskclust.accessor import ClustAccessor
        from daskclust.io import to_device

        n = next(size for name, size in points.sizes.items() if name != "channel")
        name, on_workers = f"clustering {n:,} {self.unit}", self.run.is_on_dask
        if not on_workers:
            self.work.begin(name)
        with self.stage("clustering"):
            with self.work.tasks(name, (n, self.unit)) if on_workers else nullcontext():
                given = to_device(points, "cuda") if self.run.cuda else points
                found: xr.Dataset = getattr(ClustAccessor(given), system)(**parameters)
                found = found if wanted is None or self.outputs else found[wanted]
                found = to_device(found, "cpu") if self.run.cuda else found
            if not on_workers:
                return found.compute(scheduler="synchronous")  # chunk after chunk: one fills a GPU
            again = {column: points[column] for column in found.data_vars if column in points.data_vars}
            done = self.work.compute(found.drop_vars(list(again)), f"clustering {self.name}", (n, self.unit))
            return found.assign({**again, **done.data_vars})

    def made(self, make: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return a table of clusters, computed: in memory, or on workers, where it stays."""
        with self.stage("table"):
            table = make()
            size = table.sizes["cluster"], "clusters"
            return self.work.compute(table, f"table of {self.name}", size) if table.chunks else table

    def table(self, make: Callable[[], xr.Dataset]) -> xr.Dataset | None:
        """Make, write and return the table of clusters, if it is asked for."""
        if "table" not in self.outputs:
            return None
        table = self.made(make)
        self.save("table", table)
        return table

    def save(self, name: str, data: xr.Dataset) -> None:
        """Write points or a table as an output, if it is asked for."""
        from daskclust.io import write_hits

        self.write(name, lambda path: write_hits(data, path))

    def write(self, name: str, write: Callable[[Path], None]) -> None:
        """Write an output, if it is asked for."""
        if name not in self.outputs:
            return
        path = self.outputs[name]
        with ExitStack() as step:
            if self.run.is_on_dask and path.suffix == ".zarr":  # workers write its chunks; other files this process
                step.enter_context(self.work.tasks(f"writing {path.name}"))
            else:
                self.work.write(path)
            with self.stage("writing"), naming(path):
                write(path)

    def none(self, clusters: str, why: Callable[[], str]) -> None:
        """Say in the summary why there are no clusters, where there are none."""
        if not self.summary[clusters]:
            n = self.summary[self.unit]
            with self.stage("clustering"):
                self.summary["reason"] = f"0 {clusters}: {why() if n else f'{self.name} has no {self.unit}'}"

    def show(self, to: Console = console, *, with_outputs: bool = True) -> None:
        """Show the summary, by default with the files that were written."""
        self._to = to
        if self.run.verbose:
            stages = [stage for stage in _STAGES if stage in self.stages]
            self.summary |= {f"seconds_{stage}": round(self.stages[stage], 3) for stage in stages}
            rate = self.summary[self.unit] / max(self.summary["seconds"], 1e-3)
            self.summary[f"{self.unit}_per_second"] = round(rate)
        if with_outputs:
            self.summary |= {name: shown(path) for name, path in self.outputs.items()}
        show(self.summary, self.run.as_json, self.title, to, quiet=self.run.quiet)

    def next(self, system: str, *options: str, reading: Sequence[str] | None = ()) -> None:
        """Say with which command to go on: what shows the output, or the source with the options to read it.

        Without options to read it, the explorer would show other points of the source.
        """
        known = _SHOWN if system == "hca" else _SHOWN_POINTS
        source = None if reading is None or len(self.sources) > 1 else Path(self.sources[0])
        sources = [(self.outputs.get("output"), ()), (source, reading or ())]
        there = ((path, how) for path, how in sources if path is not None and shown(path) != PIPE and path.exists())
        found = ((path, how) for path, how in there if path.suffix in known)
        path, how = next(found, (None, ()))
        if path is not None and not self.run.as_json and not self.run.quiet:
            tell(f"next: daskclust explore {shlex.join([str(path), '--system', system, *how, *options])}", self._to)


# --------------------------------------------------------------------------------------------------------------- errors
def _missing(error: Exception) -> Path | None:
    """Return the file that an error says is not there: libraries other than Python's name it in their text alone."""
    if not isinstance(error, FileNotFoundError):
        return None
    told = re.search(r"'(/[^']+)'|^(/.+) does not exist", str(error))
    name = error.filename or (told and (told[1] or told[2]))
    return Path(name) if name else None
