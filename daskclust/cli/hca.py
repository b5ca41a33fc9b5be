"""``daskclust hca``, which stands in for the program gmhclust."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskclust.cli._frame import console, errors, progress, show, write_all
from daskclust.cli._options import (
    CLUSTERING,
    OUTPUT,
    READING,
    Json,
    Quiet,
    check_outputs,
    one_of,
)
from daskclust.cli._running import Chunks, Cuda, MemoryLimit, Running, Scheduler, Workers

if TYPE_CHECKING:
    import xarray as xr

_WRITABLE = (".parquet", "(.pq)", ".csv", ".npy")
_NOT_GMHC = (".csv", ".tsv", ".parquet", ".pq", ".fcs")
_CUTTING = "Cutting the tree"

MANUALS = {
    "hca": """
Reads
  DATA                          FCS, Parquet, CSV or text: a row for each cell, a column for each channel; or a
                                file of gmhclust
  channels                      numbers of one scale: choose with --channels, transform with --transform. FCS
                                files are compensated by their own matrix
  apriori                       optional column, whole number: an apriori cluster; --apriori takes another
  ASGNS                         the same for a file of gmhclust, a number for each cell

Writes
  standard output               without -o, --labels-out and --json: a line for each merge, as gmhclust has it:
                                the ids of the two clusters, and their distance. Cells are 0 to n - 1, merges
                                follow. The summary is on standard error
  -o                            a row for each merge: id1, id2, height (distance; no unit), size (cells),
                                is_apriori (whether it is within an apriori cluster); .npy: SciPy's linkage
  --labels-out                  the cells in their order with all channels of DATA that were used, and label:
                                the cluster, from 0; noise -1. .npy: labels alone

Keys of --json
  cells, merges                 their numbers
  merges_within_apriori_clusters  as it says
  threshold, rule, distance     as they were given
  is_monotone                   whether no merge is below one before it
  largest_height                of any merge; no unit
  clusters, noise               of the cut, where there is one
  seconds                       time in all, s
  output, labels                files that were written

Examples
  # eight populations of at least 30 cells
  $ daskclust hca tube.fcs 100 --transform arcsinh --n-clusters 8 --min-size 30 --labels-out cells.csv
  # the whole tree, of some channels
  $ daskclust hca cells.csv 100 --channels CD3,CD4 -o tree.parquet
  # lines as gmhclust prints them
  $ daskclust hca data 0.5 asgns > merges.txt
  # apriori clusters from k-means, on four workers
  $ daskclust hca cells.parquet 100 --apriori kmeans --workers 4 -o tree.npy --json
""",
}


def hca(
    path: Annotated[Path, typer.Argument(metavar="DATA", help="Cells: see Reads.")],
    threshold: Annotated[
        str,
        typer.Argument(
            metavar="THRESHOLD",
            help="Cells from which on shapes count in full: a number, 100, or a fraction of all, 0.5.",
        ),
    ],
    assignments: Annotated[
        Path | None,
        typer.Argument(metavar="[ASGNS]", help="Apriori clusters of a file of gmhclust: a number for each cell."),
    ] = None,
    rule: Annotated[
        Literal["thesis", "mahal", "mahal0", "euclid", "euclid_mahal"],
        one_of(
            "For small clusters: thesis (gmhclust); or mahal, mahal0, euclid, euclid_mahal of the R package mhca.",
            CLUSTERING,
        ),
    ] = "thesis",
    distance: Annotated[
        Literal["centroid", "full"],
        one_of("centroid: between centroids; full: the mean over all members.", CLUSTERING),
    ] = "centroid",
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Shapes keep determinant 1.", rich_help_panel=CLUSTERING)
    ] = False,
    apriori: Annotated[
        str | None,
        typer.Option(
            help="A column with apriori clusters, a number of them or kmeans to make some, or none.  "
            "\\[default: the column apriori, if any, unless --channels are chosen]",
            rich_help_panel=CLUSTERING,
        ),
    ] = None,
    noise_label: Annotated[
        int, typer.Option(help="Label of cells that are in no apriori cluster.", rich_help_panel=CLUSTERING)
    ] = -1,
    order: Annotated[
        Literal["height", "groups"] | None,
        one_of(
            "Merges within apriori clusters: by height, or one cluster after the other.  "
            "\\[default: groups for a file of gmhclust, else height]",
            CLUSTERING,
        ),
    ] = None,
    n_clusters: Annotated[
        int | None, typer.Option(help="Cut the tree into so many clusters.", rich_help_panel=_CUTTING)
    ] = None,
    height: Annotated[float | None, typer.Option(help="Or cut it at a height.", rich_help_panel=_CUTTING)] = None,
    min_size: Annotated[
        str,
        typer.Option(help="Smaller clusters are noise: a number of cells, or a fraction.", rich_help_panel=_CUTTING),
    ] = "1",
    channels: Annotated[
        str | None, typer.Option(help="Channels, e.g. CD3,CD4 or CD*.  \\[default: all]", rich_help_panel=READING)
    ] = None,
    transform: Annotated[
        Literal["arcsinh", "none"],
        one_of("none: values as they are; arcsinh: arcsinh(value / cofactor).", READING),
    ] = "none",
    cofactor: Annotated[
        float | None,
        typer.Option(
            help="Of arcsinh, in the unit of the values: 150 for fluorescence, 5 for mass.  \\[default: 150]",
            rich_help_panel=READING,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Table of merges: .parquet, .csv, or .npy.", rich_help_panel=OUTPUT),
    ] = None,
    labels_out: Annotated[
        Path | None,
        typer.Option(help="Cells with labels: .parquet or .csv, or labels alone: .npy.", rich_help_panel=OUTPUT),
    ] = None,
    workers: Workers = 0,
    cuda: Cuda = False,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    chunks: Chunks = 100_000,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster cells hierarchically by Mahalanobis distances (MHCA).

    The two nearest clusters are merged until there is one; distances follow the shapes of clusters.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.cli import _trees as trees

    began = time.perf_counter()
    running = Running(workers, cuda, scheduler, memory_limit)
    for source in (path, assignments):
        if source is not None:
            check_outputs(source, {"-o": output, "--labels-out": labels_out}, _WRITABLE)
    cut = _cut(n_clusters, height, min_size, labels_out)
    parameters: dict[str, Any] = {
        "threshold": _threshold(threshold),
        "rule": rule,
        "distance": distance,
        "normalize": normalize,
        "order": order or "height",
        "noise_label": noise_label,
    }
    _check(parameters, apriori, assignments, transform, cofactor)
    reading = {"channels": channels, "transform": transform, "cofactor": cofactor, "apriori": apriori}
    prints = output is None and labels_out is None and not as_json
    with progress(f"clustering {path.name}", quiet=quiet) as work, running.cluster(work):
        work.read(path)
        cells, is_gmhc = _open(path, assignments, reading, running.chunks(chunks))
        if order is None and is_gmhc:
            parameters["order"] = "groups"
        n = cells.sizes["cell"]
        work.begin(f"clustering {n:,} cells")
        found = ClustAccessor(running.give(cells)).hca(**parameters, **cut, apriori=_apriori(apriori))
        wanted = found if labels_out else found[["label", "linkage", "is_apriori"]]
        result = running.results(wanted, cells, f"clustering {path.name}", (n, "cells"), work)
        Z, label = result["linkage"].values, result["label"].values
        summary = trees.summary_of(result, Z)
        if "n_clusters" in cut or "height" in cut:
            summary |= {"clusters": int(label.max(initial=-1)) + 1, "noise": int((label < 0).sum())}
        write_all(
            [
                (output, lambda target: trees.write_tree(result, target, cells.attrs)),
                (labels_out, lambda target: trees.write_labels(result, label, target)),
            ],
            work,
        )
    if prints:
        trees.print_merges(Z)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary |= {name: str(file) for name, file in (("output", output), ("labels", labels_out)) if file is not None}
    to = errors if prints else console
    show(summary, as_json, f"Mahalanobis HCA: {path}", to, quiet=quiet)
    if not as_json and not quiet:
        trees.show_clusters(label, to) if "clusters" in summary else trees.show_top(Z, cut["min_size"], to)


# ------------------------------------------------------------------------------------------------------------- options
def _threshold(text: str) -> int | float:
    """Return a number of cells, or a fraction of them."""
    number = _number(text)
    if number is None or not (number >= 1 if isinstance(number, int) else 0 < number <= 1):
        raise ValueError(
            f"THRESHOLD must be a number of cells, e.g. 100, or a fraction of them in (0, 1], e.g. 0.5, got {text!r}"
        )
    return number


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _cut(n_clusters: int | None, height: float | None, min_size: str, labels_out: Path | None) -> dict[str, Any]:
    """Return how the tree is cut, as the accessor takes it."""
    from daskclust.core.data.checks import check_whole

    least = _number(min_size)
    if least is None or not (least >= 1 if isinstance(least, int) else 0 < least < 1):
        raise ValueError(f"--min-size must be a number of cells, or a fraction between 0 and 1, got {min_size!r}")
    if n_clusters is not None and height is not None:
        raise ValueError(f"got --n-clusters {n_clusters} and --height {height:g}; give one of them")
    if labels_out is not None and n_clusters is None and height is None:
        raise ValueError("--labels-out needs a cut of the tree; give --n-clusters or --height")
    if height is not None and not height >= 0:
        raise ValueError(f"--height must be 0 or more, got {height:g}")
    if n_clusters is not None:
        check_whole("--n-clusters", n_clusters, 1)
    given = {"n_clusters": n_clusters, "height": height}
    return {"min_size": least, **{name: value for name, value in given.items() if value is not None}}


def _check(
    parameters: dict[str, Any],
    apriori: str | None,
    assignments: Path | None,
    transform: str,
    cofactor: float | None,
) -> None:
    """Refuse wrong options before any work."""
    from daskclust.hca.estimator import MahalanobisHCA

    MahalanobisHCA(**parameters)._plan(1)
    if assignments is not None and apriori is not None:
        raise ValueError(f"{assignments} and --apriori {apriori} both name the apriori clusters; give one of them")
    if cofactor is not None and transform != "arcsinh":
        raise ValueError("--cofactor is for --transform arcsinh; add that, or leave --cofactor out")


def _apriori(text: str | None) -> Any:
    """Return apriori clusters as the accessor takes them; a column is read as ``apriori``."""
    if text == "none":
        return None
    number = None if text is None else _number(text)
    if isinstance(number, int):
        return number
    return "kmeans" if text == "kmeans" else ...


# --------------------------------------------------------------------------------------------------------------- input
def _open(path: Path, assignments: Path | None, reading: dict[str, Any], chunks: int | None) -> tuple[xr.Dataset, bool]:
    """Return the cells of a file, lazy with `chunks`, and whether it is one of gmhclust."""
    from daskclust import io

    suffix = path.suffix.lower()
    channels = None if reading["channels"] is None else [name.strip() for name in reading["channels"].split(",")]
    transform: Any = "arcsinh" if reading["transform"] == "arcsinh" else None
    cofactor = 150.0 if reading["cofactor"] is None else reading["cofactor"]
    column = reading["apriori"] if _apriori(reading["apriori"]) is ... else None
    points = None
    if assignments is not None:
        if suffix in _NOT_GMHC:
            raise ValueError(
                f"{assignments} goes with a file of gmhclust alone; name a column of {path} with --apriori"
            )
        points = io.read_gmhc(path, assignments, chunks=chunks)
    elif suffix == ".txt" and column is None:
        points = _points_in_text(path, chunks)
    if points is None:
        cells = io.read_cells(
            path, channels=channels, apriori=column, transform=transform, cofactor=cofactor, chunks=chunks
        )
        return cells, suffix not in (*_NOT_GMHC, ".txt") and "fcs_version" not in cells.attrs
    if channels is not None:
        known = points["channel"].values.tolist()
        unknown = [name for name in channels if name not in known]
        if unknown:
            raise ValueError(f"{path} has no channel {unknown[0]!r}; the channels are {', '.join(known)}")
        points = points.sel(channel=channels)
    return points if transform is None else io.arcsinh_transform(points, cofactor), True


def _points_in_text(path: Path, chunks: int | None) -> xr.Dataset | None:
    """Return the points of a text of gmhclust, whose two first numbers tell how many follow; None for tables."""
    from daskclust import io

    try:
        return io.read_gmhc(path, chunks=chunks)
    except ValueError:
        return None
