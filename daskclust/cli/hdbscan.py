"""``daskclust hdbscan``: clusters of different densities, without a distance to choose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import Axes, Box, Chunks, ParametersOf, box_of, file_argument, in_unit_of, names
from daskclust.cli.points import OF_KINDS, PARTICLES, Reading, box_in_words, count_of, table_of_points
from daskclust.io.files import READABLE

EXAMPLES = """
  # clusters of 50 points and more
  daskclust hdbscan places.csv --min-cluster-size 50 -o labels.parquet
  # a periodic box, smooth densities, a table of clusters
  daskclust hdbscan snapshot.hdf5 --min-cluster-size 20 --min-samples 10 --boxsize 100 --table clusters.parquet
"""

_OPTIONS = (
    "min_cluster_size", "min_samples", "cluster_selection_method", "cluster_selection_epsilon", "max_cluster_size",
    "alpha", "allow_single_cluster",
)  # fmt: skip

_NOT_EXPLORED = {"max_cluster_size": None, "alpha": 1.0, "allow_single_cluster": False}  # the explorer has the defaults


def hdbscan(
    paths: Annotated[list[Path], file_argument(OF_KINDS, *PARTICLES, *READABLE)],
    *,
    given: Annotated[dict[str, Any], ParametersOf("hdbscan:HDBSCAN", *_OPTIONS)],
    boxsize: Box = None,
    coordinates: Axes = None,
    file: Reading,
    run: Running,
    chunks: Chunks = None,
) -> None:
    """Cluster points with HDBSCAN*, whatever their density.

    A cluster is what stays together over the longest range of distances. The same for any order of points.
    """
    job = Job("HDBSCAN*", "points", paths, run)
    from daskclust.core.data.checks import check_whole

    check_whole("min_cluster_size", given["min_cluster_size"], 2, clamp=True)  # before anything else is imported
    axes = names(coordinates)
    parameters: dict[str, Any] = {**given, "boxsize": box_of(boxsize), "coordinates": axes}
    reader = file.reader(paths, coordinates=axes)
    if run.dry_run:
        from daskclust.hdbscan.plan import TreePlan

        estimate(job, reader, lambda *_: TreePlan(1, 1, 1.0, ()).cost, chunks)
        return
    with job.started():
        points = job.read(reader, chunks, "hdbscan")
        file.question(points)
        given = in_unit_of(points[(axes or ["x"])[0]].attrs.get("units"), given)
        parameters |= given
        result = job.cluster(points, "hdbscan", parameters, ["label", "probability", "outlier_score"])
        label = result["label"]
        count = count_of(label)
        job.summary = {"points": int(label.size), "clusters": count, "noise": int((label.data < 0).sum())}
        job.none("clusters", lambda: f"no {given['min_cluster_size']} points stay together apart from all others")
        job.save_points(result, "hdbscan", is_converted=file.units is not None)
        job.table(lambda: table_of_points(result, parameters, count))
    job.show()
    if any(given[name] != default for name, default in _NOT_EXPLORED.items()):
        return
    size, samples = given["min_cluster_size"], given["min_samples"]
    more = ["--min-samples", str(size if samples is None else samples)]
    more += ["--coordinates", coordinates] if coordinates else []
    box = points.attrs.get("boxsize") if parameters["boxsize"] == "auto" else parameters["boxsize"]
    explored = {name: given[name] for name in given if name not in ("min_samples", *_NOT_EXPLORED)}
    job.next("hdbscan", explored, *more, *box_in_words(box), reading=file.words)
