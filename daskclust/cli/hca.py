"""``daskclust hca``, which stands in for the program gmhclust."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskclust.cli._console import console, errors, table_of
from daskclust.cli._estimate import KEYS, estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import (
    WRITABLE,
    Cells,
    Output,
    Table,
    check_outputs,
    clustering,
    in_chunks,
    number_of,
    reading,
    writing,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import xarray as xr
    from rich.console import Console

    from daskclust.core.run.plan import Cost

_WRITABLE = (*WRITABLE, ".npy")
_NOT_GMHC = (".csv", ".tsv", ".parquet", ".pq", ".fcs")
_ROWS = 10  # of a table
_LARGE = 0.01  # fraction of all cells that makes a cluster of the top large
_PIECE = 1 << 7  # merges printed at a time: Python takes a larger write that its reader breaks off for a whole one

MANUAL = f"""
Reads
  FILE            FCS, Parquet, CSV or text: a row for each cell, a column for each channel; or a file of gmhclust
  channels        numbers of one scale. --transform auto: arcsinh(value / --cofactor) of FCS files, and others as they
                  are. FCS files are compensated by their own matrix, with --compensate also an error where it cannot be
                  used. Their time and scatter are not clustered, unless --channels names them
  apriori         optional column, whole number: an apriori cluster; --apriori takes another
  --assignments   the same for a file of gmhclust, a number for each cell

Writes
  standard output    where no file is written, without --json: a line for each merge, as gmhclust has it: the ids of the
                     two clusters, and their distance. Cells are 0 to n - 1, merges follow. The summary is on standard
                     error
  -o              the cells in their order with all channels of FILE that were used, and label: the cluster, from 0;
                  noise -1. .npy: labels alone
  --table         a row for each cluster: cluster (the label), size, and of each channel the mean, _rms, _min, _max
  --merges        a row for each merge: id1, id2, height (distance; no unit), size (cells), is_apriori (whether it is
                  within an apriori cluster); .npy: SciPy's linkage

Keys of --json
  cells, merges, merges_within_apriori_clusters    their numbers
  threshold, rule, distance      as they were given
  channels       of FCS files: what was done to them, and which are not clustered
  is_monotone, largest_height    whether no merge is below one before it; height of the highest
  clusters, noise                of the cut, where there is one
  seconds, seconds_compiling    time without compiling kernels, and that of compiling, s
  seconds_starting, seconds_reading, seconds_clustering, seconds_table, seconds_writing    with --verbose, s
  cells_per_second               with --verbose: cells by seconds
  output, table, merges_output   files that were written
  reason                         why the cut has no clusters, where it has none{KEYS}

Examples
  # eight populations of at least 30 cells
  daskclust hca tube.fcs --threshold 100 --n-clusters 8 --min-size 30 -o cells.csv
  # lines as gmhclust prints them
  daskclust hca data --threshold 0.5 --assignments asgns > merges.txt
"""


def hca(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Cells: .fcs, .parquet, .csv, or a file of gmhclust.")],
    *,
    threshold: Annotated[str, clustering("Cells from which on shapes count in full: 100; or 0.5 of all.")],
    rule: Annotated[
        Literal["thesis", "mahal", "mahal0", "euclid", "euclid_mahal"],
        clustering("thesis, mahal, mahal0, euclid, euclid_mahal: small clusters.", metavar="NAME"),
    ] = "thesis",
    distance: Annotated[
        Literal["centroid", "full"],
        clustering("centroid, or full: mean of all members.", metavar="NAME"),
    ] = "centroid",
    normalize: Annotated[bool, clustering("Shapes keep determinant 1.", "--normalize")] = False,
    apriori: Annotated[
        str | None,
        clustering(
            "A column with apriori clusters; a number or kmeans; none.",
            default="column apriori",
        ),
    ] = None,
    noise_label: Annotated[int, clustering("Label of cells that are in no apriori cluster.")] = -1,
    order: Annotated[
        Literal["height", "groups"] | None,
        clustering(
            "height, or groups: one by one.",
            default="by the file",
            metavar="NAME",
        ),
    ] = None,
    n_clusters: Annotated[int | None, clustering("Cut the tree into so many clusters.", min=1)] = None,
    height: Annotated[float | None, clustering("Or cut it at a height.", min=0)] = None,
    min_size: Annotated[str, clustering("Smaller ones are noise: cells, or a fraction.")] = "1",
    file: Cells,
    assignments: Annotated[Path | None, reading("Apriori clusters of gmhclust.", default="none")] = None,
    output: Output = None,
    table: Table = None,
    merges: Annotated[Path | None, writing("The tree, a row each merge; .npy too: SciPy's linkage.")] = None,
    chunks: Annotated[int | None, in_chunks("100 000")] = None,
    run: Running,
) -> None:
    """Cluster cells hierarchically by Mahalanobis distances (MHCA).

    The two nearest clusters are merged until there is one; distances follow the shapes of clusters.
    """
    from daskclust.hca.estimator import MahalanobisHCA
    from daskclust.io.cytometry.rows import prepared_in_words

    outputs = {"-o": output, "--table": table, "--merges": merges}
    job = Job("Mahalanobis HCA", "cells", path, run, outputs, _WRITABLE)
    if assignments is not None:
        check_outputs([assignments], outputs, _WRITABLE)
    needing = next((option for option in ("-o", "--table") if outputs[option] is not None), None)
    cut, number = _cut(n_clusters, height, min_size, needing), number_of(threshold)
    if number is None:
        raise ValueError(f"--threshold must be a number of cells, or a fraction of them such as 0.5, got {threshold!r}")
    parameters: dict[str, Any] = {
        "threshold": number,
        "rule": rule,
        "distance": distance,
        "normalize": normalize,
        "order": order or "height",
        "noise_label": noise_label,
    }
    MahalanobisHCA(**parameters)._plan(1)  # refused before any work
    if assignments is not None and apriori is not None:
        raise ValueError(f"got --assignments {assignments} and --apriori {apriori}; give one of them")
    column = apriori if _apriori(apriori) is ... else None
    opened = partial(_open, assignments=assignments, reading=file.reading | {"apriori": column})
    if run.dry_run:
        estimate(job, opened, _cost_of(number_of(apriori or "")), chunks, 100_000)
        return
    with job.started():
        cells = job.read(opened, chunks, 100_000)
        if order is None and path.suffix.lower() not in _NOT_GMHC and "layout" in cells.attrs:
            parameters["order"] = "groups"
        parameters |= {**cut, "apriori": _apriori(apriori)}
        result = job.cluster(cells, "hca", parameters, None if output or table else ["label", "linkage", "is_apriori"])
        Z, label = result["linkage"].values, result["label"].values
        job.summary = _summary(result, Z)
        if told := prepared_in_words(cells.attrs):
            job.summary["channels"] = told
        if "n_clusters" in cut or "height" in cut:
            job.summary |= {"clusters": int(label.max(initial=-1)) + 1, "noise": int((label < 0).sum())}
            job.none("clusters", lambda: _why(Z, cut))
        job.write(output, lambda target: _write_labels(result, label, target))
        if table is not None:
            clusters = job.table(lambda: _table(result, job.summary["clusters"]))
            job.save(clusters, table)
        job.write(merges, lambda target: _write_tree(result, target, cells.attrs))
    prints = not any(outputs.values()) and not run.as_json
    if prints:
        _print_merges(Z)
    to = errors if prints else console
    job.show(to, output=output, table=table, merges_output=merges)
    if not run.as_json and not run.quiet:
        _show_clusters(label, to) if "clusters" in job.summary else _show_top(Z, cut["min_size"], to)
    job.next(output, "hca", reading=file.words)


def _why(Z: np.ndarray[Any, Any], cut: dict[str, Any]) -> str:
    """Return how many cells the largest cluster of a cut has."""
    import numpy as np

    from daskclust.core.hierarchy import cut as clusters_of

    largest = np.bincount(clusters_of(Z, **{**cut, "min_size": 1})).max()
    return f"min-size {cut['min_size']:g} exceeds the largest cluster of the cut, {largest} cells"


def _cost_of(groups: int | float | None) -> Callable[[int, xr.Dataset | None], Cost]:
    """Return what gives the cost of a cell: of one tree, or of as many as apriori clusters are to be made."""

    def cost(n: int, cells: xr.Dataset | None) -> Cost:
        import numpy as np

        from daskclust.hca.plan import cost_of_points

        parts = groups if isinstance(groups, int) else 1
        return cost_of_points(np.full(parts, n // parts), 10 if cells is None else cells.sizes["channel"])

    return cost


# ------------------------------------------------------------------------------------------------------------- options
def _cut(n_clusters: int | None, height: float | None, min_size: str, needing: str | None) -> dict[str, Any]:
    """Return how the tree is cut, as the accessor takes it."""
    least = number_of(min_size)
    if least is None or not (least >= 1 if isinstance(least, int) else 0 < least < 1):
        raise ValueError(f"--min-size must be a number of cells, or a fraction between 0 and 1, got {min_size!r}")
    if n_clusters is not None and height is not None:
        raise ValueError(f"got --n-clusters {n_clusters} and --height {height:g}; give one of them")
    cut = {name: value for name, value in (("n_clusters", n_clusters), ("height", height)) if value is not None}
    if needing is not None and not cut:
        raise ValueError(f"{needing} needs a cut of the tree; give --n-clusters or --height")
    return {"min_size": least, **cut}


def _apriori(text: str | None) -> Any:
    """Return apriori clusters as the accessor takes them; a column is read as ``apriori``."""
    if text == "none":
        return None
    number = None if text is None else number_of(text)
    if isinstance(number, int):
        return number
    return "kmeans" if text == "kmeans" else ...


# --------------------------------------------------------------------------------------------------------------- files
def _open(path: Path, assignments: Path | None, reading: dict[str, Any], chunks: int | None) -> xr.Dataset:
    from daskclust import io
    from daskclust.io.cytometry.files import prepared

    suffix, apriori = path.suffix.lower(), reading["apriori"]
    if assignments is not None and suffix in _NOT_GMHC:
        raise ValueError(f"{assignments} goes with a file of gmhclust alone; name a column of {path} with --apriori")
    if assignments is None and (suffix != ".txt" or apriori is not None):
        return io.read_cells(path, chunks=chunks, **reading)
    try:
        points = io.read_gmhc(path, assignments, chunks=chunks)
    except ValueError:
        if assignments is not None:
            raise
        return io.read_cells(path, chunks=chunks, **reading)  # a table: the two first numbers do not tell its length
    return prepared(points, str(path), **{name: value for name, value in reading.items() if name != "apriori"})


def _write_tree(result: xr.Dataset, path: Path, about: dict[Any, Any]) -> None:
    import xarray as xr

    from daskclust.io.growing import write_points

    Z = result["linkage"].values
    if path.suffix == ".npy":
        _save(Z, path)
        return
    names = result["linkage_column"].values.tolist()
    columns = {name: Z[:, k] if name == "height" else Z[:, k].astype("int64") for k, name in enumerate(names)}
    columns["is_apriori"] = result["is_apriori"].values
    attrs = {**about, **result["linkage"].attrs, "hca": result.attrs["hca"]}
    del attrs["long_name"]
    write_points(xr.Dataset({name: ("merge", values) for name, values in columns.items()}, attrs=attrs), path)


def _write_labels(result: xr.Dataset, label: np.ndarray[Any, Any], path: Path) -> None:
    from daskclust.io import write_cells

    if path.suffix == ".npy":
        _save(label, path)
        return
    write_cells(_labelled(result), path)


def _labelled(result: xr.Dataset) -> xr.Dataset:
    """Return cells with labels; heights of points would be a channel, were the file read again."""
    return result.drop_vars(["point_height", "linkage", "is_apriori", "linkage_column"]).as_numpy()


def _table(result: xr.Dataset, count: int) -> xr.Dataset:
    """Return the sizes of clusters, and of each channel mean, spread and extent."""
    from daskclust.io.cytometry.write import columns_of
    from daskclust.properties import cluster_table

    cells = columns_of(_labelled(result))
    channels = [str(name) for name in cells if name not in ("label", "apriori", "population")]
    return cluster_table(cells, weight=None, coords=channels, n_clusters=count)


def _save(array: np.ndarray[Any, Any], path: Path) -> None:
    import numpy as np

    from daskclust.core.data.files import replacing

    with replacing(path) as stream:
        np.save(stream, array)


# -------------------------------------------------------------------------------------------------------------- summary
def _summary(result: xr.Dataset, Z: np.ndarray[Any, Any]) -> dict[str, Any]:
    from daskclust.core import hierarchy as tree

    return {
        "cells": int(result["label"].size),
        **{name: result["linkage"].attrs[name] for name in ("threshold", "rule", "distance")},
        "merges": len(Z),
        "merges_within_apriori_clusters": int(result["is_apriori"].sum()),
        "is_monotone": tree.is_monotone(Z),
        "largest_height": float(Z[:, 2].max(initial=0.0)),
    }


def _print_merges(Z: np.ndarray[Any, Any]) -> None:
    """Print a line for each merge: the ids of the two clusters, and their distance with all digits."""
    for start in range(0, len(Z), _PIECE):
        rows = Z[start : start + _PIECE]
        lines = zip(rows[:, :2].astype("int64").tolist(), rows[:, 2].tolist(), strict=True)
        print("".join(f"{first} {second} {height!r}\n" for (first, second), height in lines), end="")


def _show_clusters(label: np.ndarray[Any, Any], to: Console) -> None:
    import numpy as np

    sizes = np.bincount(label[label >= 0])
    table = table_of("Largest clusters", ["label", "cells", "of all"])
    for k in np.argsort(-sizes, kind="stable")[:_ROWS].tolist():
        table.add_row(str(k), f"{sizes[k]:,}", f"{sizes[k] / len(label):.2%}")
    to.print(table)


def _show_top(Z: np.ndarray[Any, Any], min_size: int | float, to: Console) -> None:
    from daskclust.core import hierarchy as tree

    n = len(Z) + 1
    least = tree.least_size(min_size if min_size != 1 else _LARGE, n)
    if least > n or n == 1:
        return
    top = tree.condense(Z, _ROWS + 1, least)
    leaves = len(top.linkage) + 1
    title = f"Top of the tree: merges of clusters of {least:,} cells or more"
    table = table_of(title, ["id", "height", "cells", "of", "and"])
    for row in range(leaves - 2, -1, -1):
        node = leaves + row
        sides = sorted(top.sizes[top.linkage[row, :2].astype(int)].tolist(), reverse=True)
        counts = [f"{count:,}" for count in (top.sizes[node], *sides)]
        table.add_row(str(top.nodes[node]), f"{top.linkage[row, 2]:g}", *counts)
    if leaves > 1:
        to.print(table)
