"""All of a data set that is larger than memory, clustered on Dask; its points stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from daskclust.app.systems import ExplorerSystem

Report = Callable[[int, int, str], None]

_SUFFIXES = (".parquet", ".h5", ".csv")


class Done(NamedTuple):
    """Numbers of clusters, of points in none, and of all; the files of labels and of the table."""

    clusters: int
    noise: int
    points: int
    labels: Path
    table: Path

    @property
    def words(self) -> str:
        """What there is now."""
        counts = f"{self.clusters:,} clusters, {self.noise:,} of {self.points:,} points noise"
        return f"{counts}. Points with labels are in {self.labels}, the table of clusters in {self.table}."


def files_of(name: str) -> tuple[Path, Path]:
    """Return the files of points with labels, which has this name, and of the table beside it, in this folder.

    Whoever sees the page chooses the name: it names no other folder, and no file that is there.
    """
    labels = Path(name.strip())
    table = labels.with_name(f"{labels.stem}-clusters{labels.suffix}") if labels.name else labels
    if labels.suffix not in _SUFFIXES or labels.name != name.strip() or "\\" in name:
        raise ValueError(f"give a name such as labels.parquet ({', '.join(_SUFFIXES)}) without a folder, got {name!r}")
    there = next((each for each in (labels, table) if each.exists()), None)
    if there is not None:
        raise ValueError(f"{there} is there already; give another name")
    return labels.absolute(), table.absolute()


def cluster_whole(
    whole: xr.Dataset, system: ExplorerSystem, values: Mapping[str, Any], name: str, report: Report
) -> Done:
    """Cluster all with the current Dask client, or with workers that are started for it; write labels and table."""
    from distributed import default_client

    from daskclust import workers

    labels, table = files_of(name)
    with ExitStack() as own:
        try:
            default_client()
        except ValueError:
            own.enter_context(workers.start())
        return _cluster(whole, system, values, (labels, table), report)


def _cluster(
    whole: xr.Dataset, system: ExplorerSystem, values: Mapping[str, Any], files: tuple[Path, Path], report: Report
) -> Done:
    from daskclust import io, properties, workers
    from daskclust.accessor import ClustAccessor
    from daskclust.core.run.graph import only_needed

    function, options = system.measured
    how = {name: value for name, value in values.items() if name != system.hides}
    with only_needed():  # what is computed, counted and written has steps in common
        found: xr.Dataset = getattr(ClustAccessor(whole), system.name)(**how)
        given = {name: whole[name] for name in found.data_vars if name in whole.data_vars}  # read again, and not kept
        found = workers.persist(found.drop_vars(list(given)), report).assign(given)
        rows: xr.Dataset = getattr(properties, function)(found, **options)
        rows = workers.persist(rows, report) if rows.chunks else rows
        io.write_hits(found, files[0])
        try:
            io.write_hits(rows, files[1])
        except BaseException:
            files[0].unlink()
            raise
        noise = int((found["label"] < 0).sum())
        return Done(rows.sizes["cluster"], noise, found["label"].size, *files)
