"""``daskclust clue``."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job
from daskclust.cli._options import (
    Chunks,
    ColumnOptions,
    ParametersOf,
    clustering,
    file_argument,
    in_unit_of,
    names,
    number_or_text,
    pairs_of,
    reading,
    running,
    words_of,
)
from daskclust.cli._running import Running
from daskclust.core.data.quote import listed, meant
from daskclust.io.files import READABLE

if TYPE_CHECKING:
    import xarray as xr

logger = logging.getLogger(__name__)

_WITHOUT = {"energy": "no energy column: every hit weighs 1", "layer": "no layer column: all hits are on one layer"}

EXAMPLES = """
  # hits of a file, with their clusters
  daskclust clue hits.csv --dc 1.3 --rhoc 5 -o clusters.parquet
  # your own names of columns, millimetres that become cm, a table of clusters
  daskclust clue my.csv --columns px=x,py=y,E=energy --units x=mm,y=mm --dc 2 --rhoc 1 --table t.csv
  # distances that differ by the column thickness, thresholds that are a column
  daskclust clue hits.parquet --section thickness --dc 120=1.3,300=1.8 --rhoc noise_cut --neighbor-weight 0.5
  # showers of the clusters, by CMS's CLUE3D
  daskclust clue hits.parquet --dc 1.5 --rhoc 0.05 --delta-o 3 --showers -o showers.parquet
  # in eta and phi, which wraps around
  daskclust clue hits.csv --dc 0.1 --rhoc 5 --coordinates eta,phi --wrap phi=6.283185307
"""


def clue(
    paths: Annotated[
        list[Path], file_argument("Hits of a calorimeter: .csv, .parquet, .h5, .root, .npz ...", *READABLE)
    ],
    *,
    given: Annotated[
        dict[str, Any], ParametersOf("clue:CLUE", "dc", "rhoc", "delta_c", "delta_o", "kernel", "neighbor_weight")
    ],
    wrap: Annotated[
        list[str] | None, clustering("Period of an axis, phi=6.283; repeatable.", metavar="TEXT", default="open")
    ] = None,
    section: Annotated[
        str | None,
        clustering("Column of sections, for --dc 120=1.3,300=1.8.", metavar="NAME", default="section or layer"),
    ] = None,
    showers: Annotated[bool, clustering("Find showers of the clusters with CLUE3D, too.", "--showers")] = False,
    clue3d: Annotated[
        str | None, clustering("Its parameters: critical_density=1,outlier_multiplier=3.", default="CMS's")
    ] = None,
    coordinates: Annotated[str | None, reading("Columns of the axes, e.g. eta,phi; 1 to 4.", default="x,y")] = None,
    file: ColumnOptions,
    run: Running,
    partition: Annotated[
        Literal["auto", "layers", "space", "chunks"], running("How --workers divide the hits; chunks: as they come.")
    ] = "auto",
    chunks: Chunks = None,
) -> None:
    """Cluster calorimeter hits with CLUE.

    Seeds are hits of high density, far from any of higher density; other hits follow the nearest one of higher density.
    """
    job = Job("CLUE", "hits", paths, run)
    of_showers = _of_showers(clue3d) if showers or clue3d else None
    job.more = () if of_showers is None else ("shower",)
    axes = names(coordinates)
    sides = pairs_of("--wrap", ",".join(wrap) if wrap else None, "phi=6.283185307")
    periods: Any = {axis: number_or_text(side) for axis, side in sides.items()} if sides else None
    from daskclust.clue.estimator import CLUE

    CLUE(**given, wrap=periods)._plan(tuple(axes or ("x", "y")))  # refused before anything else is imported, or read
    from daskclust.clue.plan import CluePlan
    from daskclust.core.merge.labels import count_clusters
    from daskclust.io import read_hits
    from daskclust.properties import cluster_table

    needs = {name: given[name] for name in ("dc", "rhoc", "delta_c", "delta_o")}
    naming = file.naming("calorimeter", paths, **needs, section=section, coordinates=axes)
    if run.dry_run:
        estimate(job, partial(read_hits, **naming), lambda *_: CluePlan.cost, chunks)
        return
    with job.started():
        hits = job.read(partial(read_hits, **naming), chunks, "clue")
        if of_showers is not None:
            from daskclust.accessor._showers import check_hits

            check_hits(hits)
        given = in_unit_of(hits[(axes or ["x"])[0]].attrs.get("units"), given)
        options = {"wrap": periods, "coordinates": axes, "partition": partition}
        options |= {} if section is None else {"section": section}
        result = job.cluster(hits, "clue", {**given, **options}, ["label", "is_seed"])
        if of_showers is not None:
            result = job.cluster(result, "showers", of_showers)
        words = [said for name, said in _WITHOUT.items() if name not in hits]
        if words and result["label"].size and not run.quiet:
            logger.warning("%s", "; ".join(words))
        n, (count, noise) = int(result["label"].size), count_clusters(result["label"].data)
        job.summary = {"hits": n, "clusters": count, "noise": noise}
        if of_showers is not None:
            job.summary["showers"] = count_clusters(result["shower"].data)[0]
        job.none("clusters", lambda: _why(result, given["rhoc"]))
        if 2 * count > n > 1 and isinstance(given["dc"], float):
            unit = result[(axes or ("x",))[0]].attrs.get("units", "the unit of the file")
            few = f"few hits are within dc {given['dc']:g} {unit} of another"
            job.summary["reason"] = f"{few}: are --units and --dc right?"
        job.save_points(result, "clue", is_converted=file.units is not None)
        weight = "energy" if "energy" in result else None

        def table() -> xr.Dataset:
            made = cluster_table(result, weight=weight)
            return made if of_showers is None else made.assign(shower=made.clust.showers(**of_showers)["label"])

        job.table(table)
    job.show()
    # the explorer has numbers alone, for hits along two or three axes that are open
    by_hit = any(isinstance(given[name], str | dict) for name in needs)
    is_shown = not (by_hit or periods or given.pop("neighbor_weight") != 1.0)
    if is_shown and len(axes or "xy") in (2, 3) and "toa" not in hits:
        job.next("clue", {"coordinates": coordinates, **given}, reading=words_of(file, ColumnOptions))


def _of_showers(text: str | None) -> dict[str, Any]:
    """Return parameters of CLUE3D as they stand in an option."""
    from daskclust.clue3d.estimator import CLUE3D

    pairs, known = pairs_of("--clue3d", text, "critical_density=1") or {}, CLUE3D().get_params()
    for name in pairs.keys() - known.keys():
        raise ValueError(f"--clue3d names {name!r}{meant(name, known)}; CLUE3D has {listed(known)}")
    flags = {"true": True, "false": False}
    given: dict[str, Any] = {name: flags.get(value.lower(), number_or_text(value)) for name, value in pairs.items()}
    CLUE3D(**given)._plan()
    return given


def _why(result: xr.Dataset, rhoc: float | str) -> str:
    """Return why no hit is a seed: one of the highest density, if it had that of a seed, would be."""
    largest = float(result["density"].max())
    if isinstance(rhoc, str):
        return f"no density reaches that of its hit in the column {rhoc}; the largest density is {largest:.6g}"
    return f"rhoc {rhoc:g} exceeds the largest density, {largest:.6g}"
