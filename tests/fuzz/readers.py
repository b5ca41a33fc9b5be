"""Our own decoders against damaged files: one kind of file in a process of its own, whose memory is bounded.

``PYTHONPATH=tests python -m fuzz.readers KIND TIMES SEED FOLDER`` writes a few valid files of the kind, damages them in
ways that follow from the seed, and reads each: so many times as many as in a test. A reader may give a result, or an
error that names the file. What else happens is told in JSON lines, and the file stays in the folder; of a crash or a
hang it is the last one.

``RLIMIT_AS`` holds the whole process, so that a header cannot ask for all of the machine's memory. And no case may take
more than a constant and a multiple of its file, as counted by tracemalloc: Python and NumPy, untouched pages too.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr
from fuzz import files
from fuzz.mutations import damaged

from daskclust import io

# Measured: the valid files here, of 0.1 to 250 kB, take up to 4.2 MB, for buffers that are no smaller for small files.
# Larger ones take up to 26 bytes for each byte: the text of gmhclust, "1 2 ", becomes a list of Python's texts. Four
# times either is allowed.
ROOM, MULTIPLE = 16 << 20, 100
# Beyond what the process has when it has read valid files.
ADDRESS_SPACE = 1 << 30
SECONDS = 60  # of one case, which takes milliseconds: so long only where it hangs
MOST_FAILURES = 12


def _backend(path: Path) -> xr.Dataset:
    """Read through xarray."""
    with xr.open_dataset(path, engine="tpx3", hits_per_chunk=30) as ds:
        ds.isel(hit=slice(5, 40, 3)).load()
        return ds.load()


def _stream(reader: io.WordReader | io.KatherineReader, path: Path) -> Any:
    """Read bytes of a readout, cut anywhere."""
    data = path.read_bytes()
    for start in range(0, len(data), 999):
        reader.feed(data[start : start + 999])
    return reader.close()


def _assignments(path: Path) -> xr.Dataset:
    """Read assignments beside points that are valid."""
    return io.read_gmhc(files.points_of_assignments(path), path)


class Kind(NamedTuple):
    """One way to read files of one format."""

    make: Callable[[Path], list[Path]]  # writes valid files into a folder
    read: Callable[[Path], Any]
    cases: int = 200  # damaged files of one test: so many as take about a second


_lazy = partial(io.open_tpx3, chunks=40, layout="quad", phase_correction=True)
KINDS = {
    "tpx3": Kind(files.tpx3, io.open_tpx3),
    "tpx3-lazy": Kind(files.tpx3, lambda path: _lazy(path).compute(), cases=25),
    "tpx3-backend": Kind(files.tpx3, _backend, cases=50),
    "tpx3-triggers": Kind(files.tpx3, io.open_tpx3_triggers),
    "tpx3-stream": Kind(files.tpx3, lambda path: _stream(io.WordReader(), path)),
    "t3pa": Kind(files.t3pa, io.open_t3pa),
    "katherine": Kind(files.katherine, partial(io.open_katherine, frame=0)),
    "katherine-stream": Kind(files.katherine, lambda path: _stream(io.KatherineReader(frames=True), path)),
    "pixet": Kind(files.pixet, io.open_pixet),
    "fcs": Kind(files.fcs, partial(io.open_fcs, data_set=0)),
    "fcs-lazy": Kind(files.fcs, lambda path: io.open_fcs(path, data_set=0, chunks=50).compute(), cases=100),
    "gmhc": Kind(files.gmhc, lambda path: io.read_gmhc(path, chunks=50).compute()),
    "gmhc-assignments": Kind(files.assignments, _assignments),
}


def is_clear(error: BaseException, path: Path) -> bool:
    """Return whether an error is one of ours: of a class that says what to do with it, and it names the file.

    Subclasses of ValueError (UnicodeDecodeError, JSONDecodeError ...) are a library's, which no reader meant to raise.
    """
    return (type(error) is ValueError or isinstance(error, OSError)) and path.name in str(error)


def try_case(kind: Kind, path: Path) -> str:
    """Read one file; return what is wrong, "" for nothing."""
    tracemalloc.start()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        kind.read(path)
        said = ""
    except BaseException as error:  # MemoryError, KeyboardInterrupt of a handler and pytest's own are faults, too
        frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
        told = f"{type(error).__name__}: {str(error)[:300]} at {' > '.join(frames[-4:])}"
        said = "" if is_clear(error, path) else told
    finally:
        faulthandler.cancel_dump_traceback_later()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    allowed = ROOM + MULTIPLE * path.stat().st_size
    return said if peak <= allowed else f"{said} [allocated {peak} bytes, allowed are {allowed}]"


def run(name: str, cases: int, seed: int, folder: Path) -> int:
    """Try `cases` damaged files of a kind, and return the number of failures, each told on a line of its own."""
    kind = KINDS[name]
    warnings.simplefilter("error", RuntimeWarning)  # numbers that were cast into something else are no result
    folder.mkdir(parents=True, exist_ok=True)
    valid = kind.make(folder / "valid")
    for path in valid:
        kind.read(path)  # imports what is needed; an error here is one of the test
    _bound_memory()
    failures = sum(_report(name, "valid", try_case(kind, path), path) for path in valid)
    for number in range(cases):
        rng = np.random.default_rng([seed, number])
        source = valid[int(rng.integers(len(valid)))]
        path = folder / f"case{number}{source.suffix}"
        path.write_bytes(damaged(source.read_bytes(), source.suffix, rng))
        wrong = _report(name, number, try_case(kind, path), path)
        failures += wrong
        if not wrong:
            path.unlink()
        if failures >= MOST_FAILURES:
            break
    return failures


def _bound_memory() -> None:
    """Let this process have not much more memory than it has now."""
    with open("/proc/self/status") as stream:
        used = next(int(line.split()[1]) << 10 for line in stream if line.startswith("VmSize:"))
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, used + ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _report(name: str, case: int | str, said: str, path: Path) -> int:
    """Tell of a failure; return 1 for one, 0 for none."""
    if said:
        entry = {"kind": name, "case": case, "said": said, "file": os.fspath(path)}
        print(json.dumps(entry), flush=True)  # noqa: T201
    return int(bool(said))


if __name__ == "__main__":
    faulthandler.enable()
    given_kind, times, seed, folder = sys.argv[1:]
    with dask.config.set(scheduler="synchronous"):
        sys.exit(1 if run(given_kind, int(times) * KINDS[given_kind].cases, int(seed), Path(folder)) else 0)
