"""``daskclust hca``, which stands in for the program gmhclust."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._console import console, errors, table_of
from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job
from daskclust.cli._options import (
    CellOptions,
    ParametersOf,
    clustering,
    file_argument,
    in_chunks,
    number_or_text,
    reading,
    words_of,
    writing,
)
from daskclust.cli._running import Running
from daskclust.cli._several import check_outputs
from daskclust.io.files import OUTPUTS, READABLE

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from rich.console import Console

    from daskclust.core.run.plan import Cost

logger = logging.getLogger(__name__)

_WRITABLE = (*OUTPUTS, ".npy")
_NOT_GMHC = (".fcs", ".zarr", *(suffix for suffix in READABLE if suffix != ".txt"))
_CELLS = (*_NOT_GMHC, ".lmd", ".txt", ".bin")
_ABOUT = 100_000  # cells of a chunk
_PARAMETERS = ("threshold", "rule", "distance", "normalize", "noise_label")
_ROWS = 10  # of a table
_LARGE = 0.01  # fraction of all cells that makes a cluster of the top large
_PIECE = 1 << 7  # merges printed at a time: Python takes a larger write that its reader breaks off for a whole one

EXAMPLES = """
  # eight populations of at least 30 cells
  daskclust hca tube.fcs --threshold 100 --n-clusters 8 --min-size 30 -o cells.csv
  # ten million cells: a sample is clustered, the others get the nearest of its clusters
  daskclust hca tubes/*.fcs --sample 50000 --seed 1 --threshold 200 --n-clusters 12 --min-size 100 -o cells.parquet
  # lines as gmhclust prints them
  daskclust hca data --threshold 0.5 --assignments asgns --merges - > merges.txt
"""


@dataclass(frozen=True, kw_only=True)
class RunningHca(Running):
    """Options of where a command clusters, and what it writes and shows; its tree, too."""

    merges_output: Annotated[Path | None, writing("The tree, a row each merge; .npy; - prints it.", "--merges")] = None


def hca(
    paths: Annotated[
        list[Path], file_argument("Cells: .fcs, a table (.parquet, .csv, .h5 ...), or a file of gmhclust.", *_CELLS)
    ],
    *,
    given: Annotated[dict[str, Any], ParametersOf("hca:MahalanobisHCA", *_PARAMETERS, required=("threshold",))],
    apriori: Annotated[
        str | None, clustering("A column with apriori clusters; a number or kmeans; none.", default="column apriori")
    ] = None,
    order: Annotated[Literal["height", "groups"] | None, clustering("Of merges.", default="by the file")] = None,
    n_clusters: Annotated[int | None, clustering("Cut the tree into so many clusters.", min=1)] = None,
    height: Annotated[float | None, clustering("Or cut it at a height.", min=0)] = None,
    min_size: Annotated[
        str, clustering("Smaller ones are noise: cells, or a fraction.", parser=number_or_text, metavar="N")
    ] = "1",
    sample: Annotated[
        int | None, clustering("So many cells alone; others get their nearest cluster.", min=1, default="all")
    ] = None,
    seed: Annotated[int, clustering("That draws the sample.", min=0)] = 0,
    file: CellOptions,
    assignments: Annotated[Path | None, reading("Apriori clusters of gmhclust.", default="none")] = None,
    run: RunningHca,
    chunks: Annotated[int | None, in_chunks("100 000")] = None,
) -> None:
    """Cluster cells hierarchically by Mahalanobis distances (MHCA).

    The two nearest clusters are merged until there is one; distances follow the shapes of clusters.
    """
    prints = run.merges_output == Path("-")
    run = replace(run, merges_output=None) if prints else run
    others = [] if assignments is None else [assignments]
    job = Job("Mahalanobis HCA", "cells", paths, run, _WRITABLE, others)
    if "table" in job.outputs:
        check_outputs(paths, {"--table": job.outputs["table"]}, OUTPUTS)  # .npy has labels, or the tree
    if seed and sample is None:
        raise ValueError(f"--seed {seed} draws a --sample; give that, or leave it out")
    if assignments is not None and apriori is not None:
        raise ValueError(f"got --assignments {assignments} and --apriori {apriori}; give one of them")
    has_cut = n_clusters is not None or height is not None
    for name, option in (("output", "-o"), ("table", "--table")):
        if name in job.outputs and not has_cut:
            raise ValueError(f"{option} needs a cut of the tree; give --n-clusters or --height")
    from daskclust.hca.estimator import MahalanobisHCA

    MahalanobisHCA(**given)._plan(1)  # refused before anything else is imported, as is a cut before any work
    import numpy as np

    from daskclust.accessor._hca import cut_of
    from daskclust.core.data.inputs import NOT_CLUSTERED
    from daskclust.core.hierarchy import is_monotone, least_size
    from daskclust.hca.plan import cost_of_points
    from daskclust.io.cytometry.rows import prepared_in_words
    from daskclust.io.cytometry.transform import aside

    cut_of(n_clusters, height, min_size, 0)  # type: ignore[arg-type]
    asked, column = _apriori(apriori)
    opened = partial(_open, assignments=assignments, reading=file.reading | {"apriori": column})
    if run.dry_run:
        trees = asked if isinstance(asked, int) else 1  # as many as apriori clusters are to be made

        def cost(n: int, cells: xr.Dataset | None) -> Cost:
            return cost_of_points(
                np.full(trees, min(n, sample or n) // trees), 10 if cells is None else cells.sizes["channel"]
            )

        estimate(job, opened, cost, chunks, _ABOUT)
        return
    job.is_lazy |= sample is not None
    with job.started():
        cells = job.read(opened, chunks, "hca", _ABOUT, file.data_set)
        channels = cells["channel"].values.tolist()
        beside = aside(range(len(channels)), [(name,) for name in channels]).get(NOT_CLUSTERED)
        if beside and file.channels is None and NOT_CLUSTERED not in cells.attrs and not run.quiet:
            logger.warning(
                "clustered by all columns, %s; scatter and time (%s) are among them: --channels chooses",
                ", ".join(channels), ", ".join(beside),
            )  # fmt: skip
        is_gmhc = paths[0].suffix.lower() not in _NOT_GMHC and "layout" in cells.attrs
        cut = {"n_clusters": n_clusters, "height": height, "min_size": min_size}
        how = {"order": order or ("groups" if is_gmhc else "height"), "apriori": asked, **cut}
        how |= {"sample": sample, "rng": seed} if sample is not None else {}
        result = job.cluster(cells, "hca", given | how, ["label", "linkage", "is_apriori"])
        Z, label = result["linkage"].values, result["label"].values
        job.summary = {
            "cells": int(result["label"].size),
            **{name: result["linkage"].attrs[name] for name in ("threshold", "rule", "distance")},
            **({"sample": len(Z) + 1} if sample is not None else {}),
            "merges": len(Z),
            "merges_within_apriori_clusters": int(result["is_apriori"].sum()),
            "is_monotone": is_monotone(Z),
            "largest_height": float(Z[:, 2].max(initial=0.0)),
        }
        if told := prepared_in_words(cells.attrs):
            job.summary["channels"] = told
        if has_cut:
            job.summary |= {"clusters": int(label.max(initial=-1)) + 1, "noise": int((label < 0).sum())}
            job.none("clusters", lambda: _why(Z, cut))
        if job.outputs.get("output", paths[0]).suffix == ".npy":
            job.write("output", lambda target: _save(label, target))
        else:
            job.save_points(result, "hca")
        job.table(lambda: _table(result, job.summary["clusters"]))
        job.write("merges_output", lambda target: _write_tree(result, target, cells.attrs))
    if prints:
        _print_merges(Z)
    to = errors if prints else console
    job.show(to)
    if not run.as_json and not run.quiet:
        _show_clusters(label, to) if has_cut else _show_top(Z, min_size, to)  # type: ignore[arg-type]
    if sample is not None:
        return  # the explorer clusters all cells
    n, threshold = len(label), given["threshold"]
    shown = {
        "threshold": threshold / n if isinstance(threshold, int) else threshold,  # the explorer's is a fraction
        "rule": given["rule"],
        "distance": given["distance"],
        "n_clusters": n_clusters,
        "height": height,
        "min_size": least_size(min_size, n) if has_cut else None,  # type: ignore[arg-type]
        "apriori": {None: "none", "kmeans": "kmeans"}.get(asked) if asked is not ... else None,
    }
    job.next("hca", shown, reading=words_of(file, CellOptions))


def _why(Z: np.ndarray[Any, Any], cut: dict[str, Any]) -> str:
    """Return how many cells the largest cluster of a cut has."""
    import numpy as np

    from daskclust.core.hierarchy import cut as clusters_of

    largest = np.bincount(clusters_of(Z, **{**cut, "min_size": 1})).max()
    return f"min-size {cut['min_size']:g} exceeds the largest cluster of the cut, {largest} cells"


def _apriori(text: str | None) -> tuple[Any, str | None]:
    """Return apriori clusters as the accessor takes them, and the column that is read as ``apriori``."""
    number = number_or_text(text or "")
    if text in ("none", "kmeans") or isinstance(number, int):
        return {"none": None, "kmeans": "kmeans"}.get(text or "", number), None
    return ..., text


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

    from daskclust.io.outputs.writing import write_points

    Z = result["linkage"].values
    if path.suffix == ".npy":
        _save(Z, path)
        return
    columns = {"id1": Z[:, 0].astype("int64"), "id2": Z[:, 1].astype("int64"), "height": Z[:, 2]}
    columns |= {"size": Z[:, 3].astype("int64"), "is_apriori": result["is_apriori"].values}
    attrs = {**about, **result["linkage"].attrs, "hca": result.attrs["hca"]}
    del attrs["long_name"]
    write_points(xr.Dataset({name: ("merge", values) for name, values in columns.items()}, attrs=attrs), path)


def _table(result: xr.Dataset, count: int) -> xr.Dataset:
    """Return the sizes of clusters, and of each channel mean, spread and extent."""
    from daskclust.io.cytometry.rows import VARIABLES
    from daskclust.io.cytometry.write import columns_of
    from daskclust.properties import cluster_table

    cells = columns_of(result.as_numpy())
    channels = [str(name) for name in cells if name not in VARIABLES]
    return cluster_table(cells, weight=None, coords=channels, n_clusters=count)


def _save(array: np.ndarray[Any, Any], path: Path) -> None:
    import numpy as np

    from daskclust.io.replacing import replacing

    with replacing(path) as stream:
        np.save(stream, array)


# -------------------------------------------------------------------------------------------------------------- summary
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
