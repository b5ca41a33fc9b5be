"""A stand-in for dask-cuda: a worker process for each device of the stand-in driver."""

from __future__ import annotations

from typing import Any

import cupy
from distributed import LocalCluster


class LocalCUDACluster(LocalCluster):
    """Workers that see one device each."""

    def __init__(self, n_workers: int | None = None, device_memory_limit: float = 0.8, **options: Any) -> None:
        n_workers = n_workers or cupy.cuda.runtime.getDeviceCount()
        super().__init__(n_workers=n_workers, processes=True, env={"HOST_CUDA_DEVICES": "1"}, **options)
