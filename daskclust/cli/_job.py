"""What commands that cluster have in common: reading, clustering, writing, and the summary."""

from __future__ import annotations

import importlib
import logging
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskclust.cli._console import console, show, tell
from daskclust.cli._options import SHOWN, names
from daskclust.cli._progress import progress
from daskclust.cli._several import OPTIONS, PIPE, check_outputs, check_source, names_of, shown
from daskclust.core.data.quote import listed, meant
from daskclust.core.device.machine_code.compiling import Clock
from daskclust.io.files import OUTPUTS, READABLE
from daskclust.io.replacing import naming

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from daskclust.cli._running import Running
    from daskclust.io.outputs.own_columns import OwnColumns
    from daskclust.io.rows import Stored

logger = logging.getLogger(__name__)

_DEFAULTS = {"kernel": "flat", "variant": "local", "connectivity": 8, "min_hits": 1, "min_samples": 5}
_DEFAULTS |= {"min_members": 2, "cluster_selection_method": "eom", "cluster_selection_epsilon": 0.0}
_DEFAULTS |= {"rule": "thesis", "distance": "centroid"}  # that the explorer has, too
_STAGES = "starting", "reading", "clustering", "table", "writing"
_SHOWN_CELLS = (*READABLE, ".zarr", ".fcs")  # what the explorer reads of these


class Job:
    """One run of a command: it reads hits, cells ... (the `unit`), clusters, writes, and shows a summary."""

    def __init__(
        self,
        title: str,
        unit: str,
        sources: Sequence[str | Path],
        run: Running,
        suffixes: Sequence[str] = OUTPUTS,
        others: Sequence[Path] = (),  # that are read, too
        *,
        must_exist: bool = True,  # a file that is followed may come later
    ) -> None:
        self.title, self.unit, self.sources, self.run = f"{title}: {names_of(sources)}", unit, sources, run
        self.name, self._only = names_of(sources).rpartition("/")[2], names(run.only)
        found = {name: getattr(run, name, None) for name in OPTIONS}
        self.outputs: dict[str, Path] = {name: path for name, path in found.items() if path is not None}
        check_outputs([*sources, *others], {OPTIONS[name]: path for name, path in self.outputs.items()}, suffixes)
        for source in sources if must_exist else ():
            check_source(source)
        self.summary: dict[str, Any] = {}
        self.more: tuple[str, ...] = ()  # results beside those of the system
        self._own: OwnColumns | None = None
        self._is_converted = False
        self.stages: dict[str, float] = {}
        self.is_lazy, self._clock = run.is_on_dask, Clock()  # is_lazy: points are read chunk by chunk

    @contextmanager
    def started(self) -> Iterator[None]:
        """Show progress, and have a cluster where one is asked for; the time goes into the summary."""
        importlib.import_module("xarray")  # all need it; from here on garbage is looked for
        with progress(f"reading {self.name}", quiet=self.run.quiet) as self.work, ExitStack() as cluster:
            with self.stage("starting") if self.run.is_on_dask else nullcontext():
                cluster.enter_context(self.run.cluster(self.work))
            yield
            if self.run.workers:
                self.work.begin("stopping workers")
        self.summary["seconds_clustering"] = round(self.stages.get("clustering", 0.0), 3)
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
        self,
        reader: Callable[..., xr.Dataset],
        chunks: int | None,
        system: str,
        about: int = 1 << 20,
        data_set: int | None = None,
    ) -> xr.Dataset:
        """Return the points of the source; where that is lazy, in chunks of so many, by default of `about`.

        For an output, its own columns are opened, too.
        """
        from daskclust.io.rows import About
        from daskclust.io.several import joined

        size, found = (chunks or About(about)) if self.is_lazy else None, {}
        with self.stage("reading"):
            for path in map(Path, self.sources):
                self.work.read(path, is_lazy=self.is_lazy)
                found[str(path)] = reader(path, chunks=size)
            ds = joined(found, size) if len(found) > 1 else found[str(path)]
            self.open_own(ds, system, data_set)
        if (told := ds.attrs.get("columns")) and not self.run.quiet:
            logger.warning("columns were taken as %s", told)
        return ds

    def check_columns(self, read: Iterable[str], system: str) -> None:
        """Refuse names of --only that the output will not have, and columns that its format does not hold."""
        from daskclust.accessor._results import RESULTS

        own = {} if self._own is None else self._own.columns
        known = [*(own or read), "event", "source", *RESULTS[system], *self.more]
        chosen = self._only or known
        for name in chosen:
            if name not in known:
                raise ValueError(
                    f"--only names {name!r}, which -o does not have{meant(name, known)}; it has {listed(known)}"
                )
        words = () if self._own is None else self._own.text
        text = [name for name in chosen if name in words]
        if text and self.outputs["output"].suffix == ".fcs":
            numbers = [name for name in own if name not in words]
            raise ValueError(f"-o .fcs holds numbers alone, got {listed(text)}; choose only={[*numbers, 'label']}")

    def cluster(
        self, points: xr.Dataset, system: str, parameters: dict[str, Any], wanted: list[str] | None = None
    ) -> xr.Dataset:
        """Return points with the results of a method of ``ds.clust``, in host memory.

        On workers results stay there: where points are not written, the `wanted` ones alone, and others are made when
        they are asked for. What is read lazily is not kept, but read again when it is written: it may be larger than
        memory.
        """
        from daskclust.accessor import ClustAccessor
        from daskclust.accessor._results import RESULTS
        from daskclust.io import to_device

        n = next(size for name, size in points.sizes.items() if name != "channel")
        name, on_workers = f"clustering {n:,} {self.unit}", self.run.is_on_dask
        if not on_workers:
            self.work.begin(name)
        with self.stage("clustering"):
            with self.work.tasks(name, (n, self.unit)) if on_workers else nullcontext():
                given = to_device(points, "cuda") if self.run.cuda else points
                found: xr.Dataset = getattr(ClustAccessor(given), system)(**parameters)
                found = to_device(found, "cpu") if self.run.cuda else found
            results = set(RESULTS[system])
            own = found.data_vars.keys() & points.data_vars.keys() - results if self.is_lazy else set()
            later = results - set(wanted or results) if self.is_lazy and "output" not in self.outputs else set()
            told, new = (f"clustering {self.name}", (n, self.unit)), found.drop_vars(own | later, errors="ignore")
            # in this process chunk after chunk: one fills a GPU
            done = self.work.compute(new, *told) if on_workers else new.compute(scheduler="synchronous")
            return found.assign({**{name: points[name] for name in own}, **done.data_vars})

    def made(self, table: xr.Dataset) -> xr.Dataset:
        """Return a table of clusters, computed: in memory, or on workers, where it stays."""
        with self.stage("table"):
            size = table.sizes["cluster"], "clusters"
            return self.work.compute(table, f"table of {self.name}", size) if table.chunks else table

    def table(self, make: Callable[[], xr.Dataset]) -> xr.Dataset | None:
        """Make, write and return the table of clusters, if it is asked for."""
        if "table" not in self.outputs:
            return None
        with self.stage("table"):
            table = make()
        table = self.made(table)
        self.save("table", table)
        return table

    def save(self, name: str, data: xr.Dataset) -> None:
        """Write points or a table as an output, if it is asked for."""
        from daskclust.io.outputs.writing import write_points

        self.write(name, lambda path: write_points(data, path))

    def save_points(self, result: xr.Dataset, system: str, *, is_converted: bool = False) -> None:
        """Write all columns of the source under their own names, and the results; of these what --only names."""
        from daskclust.accessor._results import RESULTS
        from daskclust.io.cytometry.write import columns_of

        if "output" not in self.outputs:
            return
        dim, own = result["label"].dims[0], self._own
        # of cells a height would be a channel
        added = ["label"] if system == "hca" else [*RESULTS[system], *self.more]
        columns = {} if own is None else own.columns
        has_all = all(_is_as_read(result, name, column) for name, column in columns.items() if name not in added)
        if own is not None and own.rows == result.sizes[dim] and (is_converted or not has_all):
            added += [name for name in ("event", "source") if name in result.variables and name not in own.columns]
            with self.stage("reading"):
                ds = own.dataset(str(dim), result.chunks.get(dim))
            attrs = {system: result.attrs[system]} if system == "hca" else result.attrs
            result = ds.drop_vars([name for name in added if name in ds]).assign_attrs(attrs).assign(result[added])
        elif system == "hca":
            result = columns_of(result.drop_vars(["point_height", "linkage", "is_apriori", "linkage_column"]))
        self.save("output", result if self._only is None else result[self._only])

    def open_own(
        self, points: xr.Dataset, system: str, data_set: int | None = None, *, is_converted: bool = False
    ) -> None:
        """Open the source's own columns for an output; `is_converted` where points have other names or units."""
        self._is_converted = is_converted
        from daskclust.io.outputs.own_columns import joined_columns, own_columns
        from daskclust.io.schema import LEFT_OUT

        if "output" in self.outputs and self.outputs["output"].suffix != ".npy":
            joins = not points.encoding.get(LEFT_OUT)
            self._own = joined_columns([own_columns(source, data_set, joins=joins) for source in self.sources])
            self.check_columns(map(str, points.variables), system)

    def with_own(self, hits: xr.Dataset) -> xr.Dataset:
        """Return hits that tell their rows with all columns of the source, and what was found; what --only names."""
        from daskclust.readout.columns import ROW

        if ROW in hits:
            rows, own = hits[ROW].data, self._own
            hits = hits.drop_vars(ROW)
            if own is not None and own.rows:
                new = ("label", "energy", "tof", "source")
                added = [name for name in new if name in hits and name not in own.columns]
                added += ["label"] * ("label" not in added)
                found = () if self._is_converted else (name for name in own.columns if name not in new)
                known = {name: hits[name].data for name in found if _is_as_read(hits, name, own.columns[name])}
                hits = own.at(rows, "hit", known).assign(hits[added]).assign_attrs(hits.attrs)
        return hits if self._only is None else hits[self._only]

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
            self.add_rates()
        if with_outputs:
            self.summary |= {name: shown(path) for name, path in self.outputs.items()}
        show(self.summary, self.run.as_json, self.title, to, quiet=self.run.quiet)

    def add_rates(self) -> None:
        """Tell how many points a second were clustered, and how many in all, with start, reading and writing."""
        for name in ("_clustering", ""):
            rate = self.summary[self.unit] / max(self.summary[f"seconds{name}"], 1e-3)
            self.summary[f"{self.unit}_per_second{name}"] = round(rate)

    def next(
        self,
        system: str,
        parameters: Mapping[str, Any],
        *options: str,
        reading: Sequence[str] | None = (),
        has_all: bool = True,
    ) -> None:
        """Say with which command to go on: what shows the same clusters of the output, or of the source.

        Without options to read the source, and where clusters are not those of all its points, the explorer would show
        other ones. An output with columns of --only may lack some that it needs. Of no points it has nothing to show.
        """
        if not self.summary[self.unit]:
            return
        known = _SHOWN_CELLS if system == "hca" else SHOWN
        of_output = () if self._own is None else reading or ()
        source = Path(self.sources[0]) if has_all and reading is not None and len(self.sources) == 1 else None
        output = self.outputs.get("output") if self._only is None else None
        sources = [(output, of_output), (source, reading or ())]
        if system == "hca":  # outputs have channels as they came
            sources.reverse()
        for name, value in parameters.items():
            if value is not None and _DEFAULTS.get(name) != value:
                options += f"--{name.replace('_', '-')}", str(value).removesuffix(".0")
        there = ((path, how) for path, how in sources if path is not None and shown(path) != PIPE and path.exists())
        found = ((path, how) for path, how in there if path.suffix in known)
        path, how = next(found, (None, ()))
        if path is not None and not self.run.as_json and not self.run.quiet:
            tell(f"next: daskclust explore {shlex.join([str(path), '--system', system, *how, *options])}", self._to)


def _is_as_read(data: xr.Dataset, name: str, column: Stored) -> bool:
    """Return whether a variable has the values of a column of the file."""
    if name not in data.variables or data[name].dtype != column.dtype:
        return False
    return column.units in (None, "", data[name].attrs.get("units", "1"))
