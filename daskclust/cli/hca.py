"""``daskclust hca``, which stands in for the program gmhclust."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from daskclust.cli._frame import check_outputs, cluster, console, errors, progress, show

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

_WRITABLE = (".parquet", "(.pq)", ".csv", ".npy")
_NOT_GMHC = (".csv", ".tsv", ".parquet", ".pq", ".fcs")
_ROWS = 10  # of a table
_LARGE = 0.01  # fraction of all cells that makes a cluster of the top large
_PIECE = 1 << 10  # merges that are printed at a time, fewer than fill a pipe
_SIGPIPE = 141  # exit status of a program whose reader has enough


def hca(
    path: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="Cells: a file of gmhclust (binary or text), FCS, Parquet, CSV."),
    ],
    threshold: Annotated[
        str, typer.Argument(help="Cells from which on shapes count in full: a number, 100, or a fraction, 0.5.")
    ],
    assignments: Annotated[
        Path | None,
        typer.Argument(metavar="[ASGNS]", help="Apriori clusters of a file of gmhclust: a number for each cell."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Table of merges: .parquet, .csv, or .npy as SciPy has it.")
    ] = None,
    labels_out: Annotated[
        Path | None, typer.Option(help="Cells with labels: .parquet or .csv, or labels alone: .npy.")
    ] = None,
    n_clusters: Annotated[int | None, typer.Option(help="Cut the tree into so many clusters.")] = None,
    height: Annotated[float | None, typer.Option(help="Or cut it at a height.")] = None,
    min_size: Annotated[str, typer.Option(help="Smaller clusters are noise: a number of cells, or a fraction.")] = "1",
    rule: Annotated[str, typer.Option(help="thesis, mahal, mahal0, euclid or euclid_mahal.")] = "thesis",
    distance: Annotated[str, typer.Option(help="centroid, or full: the mean of all members.")] = "centroid",
    normalize: Annotated[bool, typer.Option("--normalize", help="Shapes keep determinant 1.")] = False,
    order: Annotated[
        str | None,
        typer.Option(
            help="Merges within apriori clusters: by height, or groups, one cluster after the other.  "
            "\\[default: groups for a file of gmhclust, else height]"
        ),
    ] = None,
    apriori: Annotated[
        str | None,
        typer.Option(
            help="A column with apriori clusters, a number of them or kmeans to make some, or none.  "
            "\\[default: the column apriori, if any, unless --channels are chosen]"
        ),
    ] = None,
    noise_label: Annotated[int, typer.Option(help="Label of cells that are in no apriori cluster.")] = -1,
    channels: Annotated[str | None, typer.Option(help="Channels, e.g. CD3,CD4 or CD*.  \\[default: all]")] = None,
    transform: Annotated[str | None, typer.Option(help="arcsinh, or none.  \\[default: none]")] = None,
    cofactor: Annotated[
        float | None, typer.Option(help="Of arcsinh: 150 for fluorescence, 5 for mass.  \\[default: 150]")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    workers: Annotated[int, typer.Option(help="Dask workers; 0: in memory, on all cores.")] = 0,
    chunks: Annotated[int, typer.Option(help="Cells a chunk, with --workers.")] = 100_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Cluster cells hierarchically by Mahalanobis distances (MHCA).

    Without -o, --labels-out and --json it prints a line for each merge, as gmhclust does: the ids of the two clusters
    and their distance, with all digits. Cells are 0 to n - 1, merges follow. The summary is on standard error then. The
    answer is the same with any number of workers and chunks.
    """
    from daskclust.accessor import ClustAccessor

    began = time.perf_counter()
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
    _check(parameters, apriori, assignments, transform, cofactor, device, workers)
    reading = {"channels": channels, "transform": transform, "cofactor": cofactor, "apriori": apriori}
    prints = output is None and labels_out is None and not as_json
    with cluster(workers), progress(f"clustering {path.name}", quiet=as_json) as work:
        cells, is_gmhc = _open(path, assignments, reading, chunks if workers else None)
        if order is None and is_gmhc:
            parameters["order"] = "groups"
        result = ClustAccessor(_on(device, cells)).hca(**parameters, **cut, apriori=_apriori(apriori))
        if workers:
            result = work.compute(result if labels_out else result[["label", "linkage", "is_apriori"]])
        Z, label = result["linkage"].values, result["label"].as_numpy().values
        summary = _summary(result, Z)
        if "n_clusters" in cut or "height" in cut:
            summary |= {"clusters": int(label.max(initial=-1)) + 1, "noise": int((label < 0).sum())}
        _write_tree(result, output, cells.attrs)
        _write_labels(result, label, labels_out)
    if prints:
        _print_merges(Z)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary |= {name: str(file) for name, file in (("output", output), ("labels", labels_out)) if file is not None}
    to = errors if prints else console
    show(summary, as_json, f"Mahalanobis HCA: {path}", to)
    if not as_json:
        _show_clusters(label, to) if "clusters" in summary else _show_top(Z, cut["min_size"], to)


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
    from daskclust.core.checks import check_whole

    least = _number(min_size)
    if least is None or not (least >= 1 if isinstance(least, int) else 0 < least < 1):
        raise ValueError(f"--min-size must be a number of cells, or a fraction between 0 and 1, got {min_size!r}")
    if n_clusters is not None and height is not None:
        raise ValueError(f"give --n-clusters or --height, and not both; got {n_clusters} and {height:g}")
    if labels_out is not None and n_clusters is None and height is None:
        raise ValueError("--labels-out needs a cut: give --n-clusters or --height")
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
    transform: str | None,
    cofactor: float | None,
    device: str,
    workers: int,
) -> None:
    """Refuse wrong options before any work."""
    from daskclust.hca.estimator import MahalanobisHCA

    MahalanobisHCA(**parameters)._plan(1)
    if assignments is not None and apriori is not None:
        raise ValueError(f"give {assignments} or --apriori {apriori}, and not both: each names the apriori clusters")
    if transform not in (None, "none", "arcsinh"):
        raise ValueError(f"--transform must be arcsinh or none, got {transform!r}")
    if cofactor is not None and transform != "arcsinh":
        raise ValueError("--cofactor is for --transform arcsinh; add that, or leave it out")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"--device must be cpu or cuda, got {device!r}")
    if device == "cuda" and workers:
        raise ValueError("--device cuda clusters in this process; leave --workers out")


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
            raise ValueError(f"{assignments} goes with a file of gmhclust; name a column of {path} with --apriori")
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


def _on(device: str, cells: xr.Dataset) -> xr.Dataset:
    if device == "cpu":
        return cells
    from daskclust.core.arrays import cupy_module

    return cells.assign(X=cells["X"].copy(data=cupy_module().asarray(cells["X"].values)))


# -------------------------------------------------------------------------------------------------------------- output
def _summary(result: xr.Dataset, Z: np.ndarray[Any, Any]) -> dict[str, Any]:
    from daskclust.core import tree

    attrs = result["linkage"].attrs
    return {
        "cells": int(result["label"].size),
        "threshold": attrs["threshold"],
        "rule": attrs["rule"],
        "distance": attrs["distance"],
        "merges": len(Z),
        "merges_within_apriori_clusters": int(result["is_apriori"].sum()),
        "is_monotone": tree.is_monotone(Z),
        "largest_height": float(Z[:, 2].max(initial=0.0)),
    }


def _print_merges(Z: np.ndarray[Any, Any]) -> None:
    """Print a line for each merge; a reader that has enough, as ``head`` does, is no error."""
    try:
        for start in range(0, len(Z), _PIECE):
            rows = Z[start : start + _PIECE]
            lines = zip(rows[:, :2].astype(np.int64).tolist(), rows[:, 2].tolist(), strict=True)
            print("".join(f"{first} {second} {height!r}\n" for (first, second), height in lines), end="")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the end
        raise SystemExit(_SIGPIPE) from None


def _write_tree(result: xr.Dataset, path: Path | None, about: dict[Any, Any]) -> None:
    import xarray as xr

    from daskclust.core.files import replacing
    from daskclust.io import write_hits

    if path is None:
        return
    Z = result["linkage"].values
    if path.suffix == ".npy":
        with replacing(path) as stream:
            np.save(stream, Z)
        return
    names = result["linkage_column"].values.tolist()
    columns = {name: Z[:, k] if name == "height" else Z[:, k].astype(np.int64) for k, name in enumerate(names)}
    columns["is_apriori"] = result["is_apriori"].values
    attrs = {**about, **result["linkage"].attrs, "hca": result.attrs["hca"]}
    del attrs["long_name"]
    write_hits(xr.Dataset({name: ("merge", values) for name, values in columns.items()}, attrs=attrs), path)


def _write_labels(result: xr.Dataset, label: np.ndarray[Any, Any], path: Path | None) -> None:
    from daskclust.core.files import replacing
    from daskclust.io import write_cells

    if path is None:
        return
    if path.suffix == ".npy":
        with replacing(path) as stream:
            np.save(stream, label)
        return
    # heights of points would be a channel, were the file read again
    write_cells(result.drop_vars(["point_height", "linkage", "is_apriori", "linkage_column"]).as_numpy(), path)


def _show_clusters(label: np.ndarray[Any, Any], to: Console) -> None:
    """Show the largest clusters."""
    sizes = np.bincount(label[label >= 0])
    table = Table(title="Largest clusters", title_justify="left")
    for head in ("label", "cells", "of all"):
        table.add_column(head, justify="right")
    for k in np.argsort(-sizes, kind="stable")[:_ROWS].tolist():
        table.add_row(str(k), f"{sizes[k]:,}", f"{sizes[k] / len(label):.2%}")
    to.print(table)


def _show_top(Z: np.ndarray[Any, Any], min_size: int | float, to: Console) -> None:
    """Show the last merges of large clusters."""
    from daskclust.core import tree

    n = len(Z) + 1
    least = tree.least_size(min_size if min_size != 1 else _LARGE, n)
    if least > n or n == 1:
        return
    top = tree.condense(Z, _ROWS + 1, least)
    leaves = len(top.linkage) + 1
    table = Table(title=f"Top of the tree: merges of clusters of {least:,} cells or more", title_justify="left")
    for head in ("id", "height", "cells", "of", "and"):
        table.add_column(head, justify="right")
    for row in range(leaves - 2, -1, -1):
        node = leaves + row
        sides = sorted(top.sizes[top.linkage[row, :2].astype(int)].tolist(), reverse=True)
        counts = [f"{count:,}" for count in (top.sizes[node], *sides)]
        table.add_row(str(top.nodes[node]), f"{top.linkage[row, 2]:g}", *counts)
    if leaves > 1:
        to.print(table)
