"""What this machine has: versions, processor, GPUs, and what is missing to use them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from daskclust.core.device.cuda_compiler import INSTALL, misfit_here
from daskclust.systems import SYSTEMS

_PACKAGES = (
    "daskclust", "numpy", "numba", "scipy", "scikit-learn", "dask", "distributed", "xarray", "pandas", "pyarrow",
    "holoviews", "datashader", "panel", "uproot", "pooch", "cupy-cuda13x", "cupy-cuda12x", "numba-cuda", "dask-cuda",
)  # fmt: skip
_GPU_PACKAGES = (("numba-cuda", "numba_cuda"), ("cupy", "cupy"), ("dask-cuda", "dask_cuda"))
_DRIVER = (
    "no GPU was found (nvidia-smi names none): it needs NVIDIA's driver, 525 or newer (580 for CUDA 13), and "
    "CUDA_VISIBLE_DEVICES, if set, must name it"
)


class NoGPUError(RuntimeError):
    """A GPU is asked for, and the driver, a GPU or a package is missing; it says which, and what to do."""


def describe() -> dict[str, dict[str, str]]:
    """Return versions of packages, facts of the processor, GPUs or what is missing for one, and the systems."""
    systems = {name: f"{each.title}, {each.estimator_at.replace(':', '.')}" for name, each in SYSTEMS.items()}
    return {"versions": _versions(), "processor": _processor(), "gpu": _gpu(), "systems": systems}


def _versions() -> dict[str, str]:
    from importlib import metadata

    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _processor() -> dict[str, str]:
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    from llvmlite.binding import get_host_cpu_name
    from numba import get_num_threads

    from daskclust.core.device.machine_code import shipped

    return {
        "model": model,
        "compiled for": get_host_cpu_name(),
        "machine code": shipped.describe(),
        "cores": str(len(os.sched_getaffinity(0))),
        "threads of kernels": str(get_num_threads()),
        "memory": f"{memory:.1f} GiB",
    }


def gpus() -> list[str]:
    """Return name, memory and driver of each GPU that ``CUDA_VISIBLE_DEVICES`` allows; none without a driver."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    found = [line.strip() for line in asked.stdout.strip().splitlines()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    numbers = [name for name in visible.split(",") if name.strip()]
    return [found[int(name)] if name.strip().isdigit() and int(name) < len(found) else name for name in numbers]


def missing_for_cuda(dask: bool = True) -> list[str]:
    """Return what keeps this process from using a GPU, with `dask` also its workers, each with its remedy."""
    missing = []
    if not gpus():
        missing.append(_DRIVER)
    wanted = _GPU_PACKAGES if dask else _GPU_PACKAGES[:2]
    absent = [package for package, module in wanted if importlib.util.find_spec(module) is None]
    if absent:
        missing.append(f"{' and '.join(absent)} missing: {INSTALL}")
    if "numba-cuda" not in absent and (found := misfit_here()):
        missing.append(found)
    return missing


def check_gpu(dask: bool = False) -> None:
    """Raise an error with all that is missing where this process, with `dask` also its workers, can use no GPU."""
    missing = missing_for_cuda(dask)
    if missing:
        raise no_gpu("workers with GPUs cannot start here" if dask else "no GPU can be used here", missing)


def no_gpu(where: str, missing: Sequence[str]) -> NoGPUError:
    """Return an error of what `missing_for_cuda` found: what it is, and behind a semicolon what to do."""
    faults, remedies = zip(*[each.split(": ", 1) for each in missing], strict=True)
    return NoGPUError(f"{where}: {', and '.join(faults)}; {', and '.join(remedies)}")


def _gpu() -> dict[str, str]:
    """Return the devices or what is missing, and each package's state."""
    facts = {f"device {k}": name for k, name in enumerate(gpus())} or {"driver": _DRIVER}
    for package, module in _GPU_PACKAGES:
        facts[package] = f"missing: {INSTALL}" if importlib.util.find_spec(module) is None else "installed"
    if facts["numba-cuda"] == "installed":
        facts["numba-cuda"] = misfit_here() or "installed"
    return facts
