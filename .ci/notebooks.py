"""Run notebooks from top to bottom, two at a time: `python3 .ci/notebooks.py ENVIRONMENT [NOTEBOOK ...]`.

ENVIRONMENT is the folder of a virtual environment made of binder/environment.yml. One that fails, or takes longer than
three minutes as a whole, fails all. Nothing is written into the notebooks.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 180


def run(environment: Path, notebook: Path) -> bool:
    """Run one, say how it went, and return whether it went well."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [environment / "bin" / "jupyter", *execution(folder), notebook.name],
            cwd=notebook.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
            verdict = "passed" if process.returncode == 0 else "FAILED"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its kernel and workers, too
            output, _ = process.communicate()
            verdict = f"FAILED: not done after {SECONDS} s"
    shown = "" if verdict == "passed" else f"{output}\n"
    print(f"{shown}{notebook.name}: {verdict}, {time.monotonic() - start:.0f} s", flush=True)
    return verdict == "passed"


def execution(folder: str) -> list[str]:
    """Return what Jupyter is told: it meets a kernel at files in `folder`, as another may take a port first."""
    meeting = ["--KernelManager.transport=ipc", f"--KernelManager.ip={folder}/kernel"]
    limit = f"--ExecutePreprocessor.timeout={SECONDS}"
    return ["nbconvert", "--to=notebook", "--execute", limit, *meeting, f"--output-dir={folder}"]


def main() -> None:
    """Run those that are named, or all."""
    environment = Path(sys.argv[1]).absolute()
    notebooks = [Path(name).absolute() for name in sys.argv[2:]] or sorted(ROOT.glob("notebooks/*.ipynb"), reverse=True)
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(lambda notebook: run(environment, notebook), notebooks))
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
