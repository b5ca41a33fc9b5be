"""Run the tests of CUDA code without a GPU: ``python tests/host_cuda/run.py [pytest's arguments]``.

Numba-cuda's kernels are compiled for the host and run on a stand-in for NVIDIA's driver, which is built here with the C
compiler `cc`, or the one that CC names. There are two devices, or as many as HOST_CUDA_DEVICES says. What is compiled
stays in a folder under NUMBA_CACHE_DIR or the folder of temporary files.
"""

from __future__ import annotations

import getpass
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPORTS = HERE / "driver" / "exports.map"
FLAGS = ["-std=gnu11", "-O2", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", f"-Wl,--version-script={EXPORTS}"]
MAKE_CODE = ["path/fake_gpu/objects.py", "path/fake_gpu/translate.py"]
LIBRARIES = ["-ldl", "-lpthread", "-lm"]


def main() -> int:
    """Build what is missing, and run pytest."""
    environment = prepared()
    if isinstance(environment, str):
        sys.stderr.write(f"tests/host_cuda/run.py: {environment}\n")
        return 2
    given = sys.argv[1:]
    chosen = given if any(Path(one.split("::")[0]).exists() for one in given) else [*given, "tests"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "fake_gpu.plugin",
        "-p",
        "pytester",
        "-m",
        "gpu or host_cuda",
        *chosen,
    ]
    return subprocess.run(command, env=environment, cwd=Path.cwd(), check=False).returncode


def prepared() -> dict[str, str] | str:
    """Build what is missing; return the environment with the stand-in, or why there is none."""
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is missing: pip install -e '.[test,ptx]'"
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return "there is no C compiler; install gcc or clang, or let CC name one"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(tempfile.gettempdir()) / f"host-cuda-{getpass.getuser()}")
    try:
        library = build(compiler, folder)
    except subprocess.CalledProcessError as error:
        return f"{compiler} cannot build the stand-in driver:\n{error.stderr}"
    return os.environ | {
        "HOST_CUDA": "1",  # tests are as large as a host computes
        "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", library),
        "PATH": before("PATH", HERE / "bin"),
        "PYTHONPATH": before("PYTHONPATH", HERE / "path"),
        "NUMBA_CACHE_DIR": str(folder / f"kernels-{digest(HERE / name for name in MAKE_CODE)}"),
    }


def before(name: str, folder: Path) -> str:
    """Return a list of folders of the environment with another one before them."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get(name)]))


def digest(files: Iterable[Path]) -> str:
    """Return a name for what these files say."""
    return hashlib.blake2s(b"".join(file.read_bytes() for file in sorted(files)), digest_size=6).hexdigest()


def build(compiler: str, folder: Path) -> Path:
    """Return the folder with the stand-in for libcuda; it is built unless it is there."""
    sources = sorted((HERE / "driver").iterdir())
    library = folder / f"driver-{digest(sources)}"
    if (library / "libcuda.so").exists():
        return library
    library.mkdir(parents=True, exist_ok=True)
    made = library / f"made-{os.getpid()}.so"
    files = [str(source) for source in sources if source.suffix == ".c"]
    subprocess.run([compiler, *FLAGS, "-o", str(made), *files, *LIBRARIES], check=True, capture_output=True, text=True)
    made.replace(library / "libcuda.so.1")
    (library / "libcuda.so").unlink(missing_ok=True)
    (library / "libcuda.so").symlink_to("libcuda.so.1")
    return library


if __name__ == "__main__":
    sys.exit(main())
