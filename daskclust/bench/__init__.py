"""Benchmarks of the systems on this machine: ``daskclust bench``."""

from daskclust.bench.clue import bench_clue
from daskclust.bench.clue import markdown as clue_markdown
from daskclust.bench.events import bench_events
from daskclust.bench.events import markdown as events_markdown

__all__ = ["bench_clue", "bench_events", "clue_markdown", "events_markdown"]
