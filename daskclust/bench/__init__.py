"""Benchmarks of the systems on this machine: ``daskclust bench``."""

from daskclust.bench.clue import bench_clue
from daskclust.bench.dbscan import bench_dbscan
from daskclust.bench.events import bench_events
from daskclust.bench.hca import bench_hca
from daskclust.bench.output import markdown, write_report
from daskclust.bench.peers import PEERS, bench_peers
from daskclust.bench.roofline import measure_ceilings
from daskclust.bench.stream import bench_stream
from daskclust.bench.thesis import bench_thesis

__all__ = [
    "PEERS",
    "bench_clue",
    "bench_dbscan",
    "bench_events",
    "bench_hca",
    "bench_peers",
    "bench_stream",
    "bench_thesis",
    "markdown",
    "measure_ceilings",
    "write_report",
]
