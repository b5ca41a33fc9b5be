"""Benchmarks of the systems on this machine: ``daskclust bench``."""

from daskclust.bench.chunked import bench_chunks, bench_large
from daskclust.bench.clue import bench_clue
from daskclust.bench.dbscan import bench_dbscan
from daskclust.bench.events import bench_events
from daskclust.bench.fitting import compare, fit
from daskclust.bench.hca import bench_hca
from daskclust.bench.merging import bench_merges
from daskclust.bench.model import Parameters, Prediction, best_block, predict
from daskclust.bench.output import markdown, write_report
from daskclust.bench.peers import PEERS, bench_peers
from daskclust.bench.roofline import measure_ceilings
from daskclust.bench.scaling import bench_scaling
from daskclust.bench.stream import bench_stream
from daskclust.bench.thesis import bench_thesis

__all__ = [
    "PEERS",
    "Parameters",
    "Prediction",
    "bench_chunks",
    "bench_clue",
    "bench_dbscan",
    "bench_events",
    "bench_hca",
    "bench_large",
    "bench_merges",
    "bench_peers",
    "bench_scaling",
    "bench_stream",
    "bench_thesis",
    "best_block",
    "compare",
    "fit",
    "markdown",
    "measure_ceilings",
    "predict",
    "write_report",
]
