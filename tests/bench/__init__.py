"""Benchmarks of the systems on this machine: ``daskclust bench``."""

from daskclust.bench.case import Options
from daskclust.bench.report import markdown, write_report
from daskclust.bench.runner import SYSTEMS, bench, bench_all, options_of
from daskclust.bench.stream import bench_stream

__all__ = ["SYSTEMS", "Options", "bench", "bench_all", "bench_stream", "markdown", "options_of", "write_report"]
