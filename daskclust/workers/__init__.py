"""Workers for clustering: a Dask cluster on this machine, on its GPUs, or one that is there already."""

from daskclust.workers._compile import SYSTEMS, compile_kernels
from daskclust.workers._connect import stop
from daskclust.workers._persist import following, persist
from daskclust.workers._start import start

__all__ = ["SYSTEMS", "compile_kernels", "following", "persist", "start", "stop"]
