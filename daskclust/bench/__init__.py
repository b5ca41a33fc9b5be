"""Benchmarks of the systems on this machine: ``daskclust bench``."""

from daskclust.bench.clue import bench_clue
from daskclust.bench.clue import markdown as clue_markdown
from daskclust.bench.dbscan import bench_dbscan
from daskclust.bench.dbscan import markdown as dbscan_markdown
from daskclust.bench.events import bench_events
from daskclust.bench.events import markdown as events_markdown
from daskclust.bench.fitting import compare, fit
from daskclust.bench.hca import bench_hca
from daskclust.bench.hca import markdown as hca_markdown
from daskclust.bench.model import Parameters, Prediction, best_block, predict
from daskclust.bench.scaling import bench_scaling
from daskclust.bench.scaling import markdown as scaling_markdown
from daskclust.bench.stream import bench_stream
from daskclust.bench.thesis import bench_thesis
from daskclust.bench.thesis import markdown as thesis_markdown

__all__ = [
    "Parameters",
    "Prediction",
    "bench_clue",
    "bench_dbscan",
    "bench_events",
    "bench_hca",
    "bench_scaling",
    "bench_stream",
    "bench_thesis",
    "best_block",
    "clue_markdown",
    "compare",
    "dbscan_markdown",
    "events_markdown",
    "fit",
    "hca_markdown",
    "predict",
    "scaling_markdown",
    "thesis_markdown",
]
