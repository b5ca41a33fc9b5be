"""What this machine has: versions, processor, GPUs, and what is missing to use them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from pathlib import Path

_PACKAGES = (
    "daskclust",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "dask",
    "distributed",
    "xarray",
    "pandas",
    "pyarrow",
)
_OPTIONAL = (
    "holoviews",
    "datashader",
    "panel",
    "uproot",
    "pooch",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "numba-cuda",
    "dask-cuda",
)


def describe() -> dict[str, dict[str, str]]:
    """Return facts about this machine by section: versions, processor, gpu.

    Returns
    -------
    dict of dict of str
        ``versions`` of packages, ``processor`` with model, cores and memory, ``gpu`` with devices or what is missing.
    """
    return {"versions": _versions(), "processor": _processor(), "gpu": _gpu()}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _processor() -> dict[str, str]:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    from numba import get_num_threads

    return {
        "model": model,
        "cores": str(len(os.sched_getaffinity(0))),
        "threads of kernels": str(get_num_threads()),
        "memory": f"{pages:.1f} GiB",
    }


def _gpu() -> dict[str, str]:
    """Look for a driver, then for the packages, and say what to install."""
    facts = {}
    try:
        asked = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        for k, line in enumerate(asked.stdout.strip().splitlines()):
            facts[f"device {k}"] = line.strip()
    except (OSError, subprocess.SubprocessError):
        facts["driver"] = (
            "none found: nvidia-smi does not run; a GPU needs NVIDIA's driver, 525 or newer (580 for CUDA 13)"
        )
    for package, module in (("numba-cuda", "numba_cuda"), ("cupy", "cupy"), ("dask-cuda", "dask_cuda")):
        if importlib.util.find_spec(module) is None:
            facts[package] = 'missing: pip install "daskclust[gpu]" (CUDA 13) or "daskclust[gpu12]" (CUDA 12)'
        else:
            facts[package] = "installed"
    return facts
