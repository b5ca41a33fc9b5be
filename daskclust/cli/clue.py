"""``daskclust clue``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from daskclust.cli._frame import check_writable, cluster, progress, show


def clue(
    path: Annotated[Path, typer.Argument(metavar="IN", help="Hits: CSV, Parquet, ROOT, .npy or .npz.")],
    dc: Annotated[float, typer.Option(help="Radius of the local density, in the unit of the coordinates.")],
    rhoc: Annotated[str, typer.Option(help="Density of seeds: a number, or the name of a column with one a hit.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Hits with results: .parquet, .csv or .npz.")
    ] = None,
    delta_c: Annotated[float | None, typer.Option(help="Separation of seeds.  \\[default: dc]")] = None,
    delta_o: Annotated[float | None, typer.Option(help="Separation of outliers.  \\[default: delta-c]")] = None,
    kernel: Annotated[str, typer.Option(help="flat, gaussian or exponential.")] = "flat",
    neighbor_weight: Annotated[float, typer.Option(help="Factor for neighbours: 1 in the paper, 0.5 in CMSSW.")] = 1.0,
    coordinates: Annotated[str | None, typer.Option(help="Columns, e.g. x,y or eta,phi.  \\[default: x,y]")] = None,
    wrap: Annotated[
        list[str] | None, typer.Option(help="Period of an axis, e.g. phi=6.283185307; may be repeated.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns of a file without a header.")] = None,
    table: Annotated[Path | None, typer.Option(help="Also write a table with a row for each cluster.")] = None,
    workers: Annotated[int, typer.Option(help="Dask workers; 0: in memory, on all cores.")] = 0,
    chunks: Annotated[int, typer.Option(help="Hits a chunk, with --workers.")] = 1_000_000,
    partition: Annotated[str, typer.Option(help="How chunks are divided: auto, layers, space or chunks.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Cluster calorimeter hits with CLUE.

    Points of different layers are never neighbours; energies are the weights. Columns: x, y, and layer, energy where
    there are any. The answer is the same with any number of workers and chunks.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.io import read_hits, write_hits

    began = time.perf_counter()
    parameters: dict[str, Any] = {
        "dc": dc,
        "rhoc": _number_or_name(rhoc),
        "delta_c": delta_c,
        "delta_o": delta_o,
        "kernel": kernel,
        "neighbor_weight": neighbor_weight,
        "coordinates": _names(coordinates),
        "wrap": dict(map(_period, wrap or [])) or None,
        "partition": partition,
    }
    check_writable(output, table)
    with cluster(workers), progress(f"clustering {path.name}", quiet=as_json) as work:
        hits = read_hits(path, columns=_names(columns), chunks=chunks if workers else None)
        result = ClustAccessor(hits).clue(**parameters)
        if workers:
            result = work.compute(result)
        summary = _summary(result)
        for target, data in ((output, result), (table, None)):
            if target is not None:
                write_hits(_table_of(result, summary) if data is None else data, target)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    if output is not None:
        summary["output"] = str(output)
    show(summary, as_json, f"CLUE: {path}")


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _period(text: str) -> tuple[str, float]:
    axis, _, period = text.partition("=")
    try:
        return axis.strip(), float(period)
    except ValueError:
        raise ValueError(f"--wrap must be AXIS=PERIOD, e.g. phi=6.283185307, got {text!r}") from None


def _table_of(result: Any, summary: dict[str, Any]) -> Any:
    from daskclust.properties import cluster_table

    table = cluster_table(result, weight="energy" if "energy" in result else None, n_clusters=summary["clusters"])
    return table.compute().drop_vars([name for name, values in table.variables.items() if values.ndim == 0])


def _summary(result: Any) -> dict[str, Any]:
    """Count hits, clusters and noise of a result in memory or on workers."""
    label = result["label"]
    return {
        "hits": int(label.size),
        "clusters": int(result["is_seed"].sum()),
        "noise": int((label < 0).sum()),
    }
