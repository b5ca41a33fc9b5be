"""Our own decoders against damaged files: one kind of file in a process of its own, whose memory is bounded.

``PYTHONPATH=tests python -m fuzz.readers KIND --times 10 --seed 7 --folder cases`` writes a few valid files of the
kind, damages them in ways that follow from the seed, and reads each. A reader may give a result, or an error that names
the file. What else happens is told in JSON lines, and the file stays in the folder; of a crash or a hang it is the last
one.

``RLIMIT_AS`` holds the whole process, so that a header cannot ask for all of the machine's memory. And no case may take
more than a constant and a multiple of its file, as counted by tracemalloc: Python and NumPy, untouched pages too.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fuzz import files as fuzz_files
from fuzz.mutations import damaged

# Measured: the valid files here, of 0.1 to 250 kB, take up to 4.2 MB, for buffers that are no smaller for small files.
# Larger ones take up to 26 bytes for each byte: the text of gmhclust, "1 2 ", becomes a list of Python's texts. Four
# times either is allowed.
ROOM, MULTIPLE = 16 << 20, 100
# Beyond what the process has when it has read valid files.
ADDRESS_SPACE = 1 << 30
SECONDS = 60  # of one case, which takes milliseconds: so long only where it hangs
MOST_FAILURES = 12


class Kind(NamedTuple):
    """One way to read files of one format."""

    make: Callable[[Path], list[Path]]  # writes valid files into a folder
    read: Callable[[Path], Any]  # calls the public reader, and computes what is lazy
    cases: int = 200  # damaged files of one test: so many as take about a second


def _tpx3(**options: Any) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        from daskclust.io import open_tpx3

        return open_tpx3(path, **options).compute()

    return read


def _tpx3_triggers(path: Path) -> Any:
    from daskclust.io import open_tpx3_triggers

    return open_tpx3_triggers(path)


def _tpx3_backend(path: Path) -> Any:
    import xarray as xr

    with xr.open_dataset(path, engine="tpx3", hits_per_chunk=30) as ds:
        ds.isel(hit=slice(5, 40, 3)).load()
        return ds.load()


def _tpx3_stream(path: Path) -> Any:
    """Bytes of a readout, cut anywhere."""
    from daskclust.io import WordReader

    reader, data = WordReader(), path.read_bytes()
    for start in range(0, len(data), 999):
        reader.feed(data[start : start + 999])
    return reader.close()


def _t3pa(path: Path) -> Any:
    from daskclust.io import open_t3pa

    return open_t3pa(path)


def _katherine(path: Path) -> Any:
    from daskclust.io import open_katherine

    return open_katherine(path, frame=0)


def _gmhc(path: Path) -> Any:
    from daskclust.io import read_gmhc

    return read_gmhc(path, chunks=50).compute()


def _assignments(path: Path) -> Any:
    """The damaged file is that of the assignments, beside points that are valid."""
    from daskclust.io import read_gmhc

    return read_gmhc(fuzz_files.points_of_assignments(path), path)


KINDS = {
    "tpx3": Kind(fuzz_files.tpx3, _tpx3()),
    "tpx3-lazy": Kind(fuzz_files.tpx3, _tpx3(chunks=40, layout="quad", phase_correction=True), cases=25),
    "tpx3-backend": Kind(fuzz_files.tpx3, _tpx3_backend, cases=50),
    "tpx3-triggers": Kind(fuzz_files.tpx3, _tpx3_triggers),
    "tpx3-stream": Kind(fuzz_files.tpx3, _tpx3_stream),
    "t3pa": Kind(fuzz_files.t3pa, _t3pa),
    "katherine": Kind(fuzz_files.katherine, _katherine),
    "gmhc": Kind(fuzz_files.gmhc, _gmhc),
    "gmhc-assignments": Kind(fuzz_files.assignments, _assignments),
}


def _address_space() -> int:
    """Return the bytes of addresses that this process has."""
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) << 10 for line in stream if line.startswith("VmSize:"))


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
        said = "" if is_clear(error, path) else f"{type(error).__name__}: {str(error)[:300]}{_where(error)}"
    finally:
        faulthandler.cancel_dump_traceback_later()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = path.stat().st_size
    if peak > ROOM + MULTIPLE * size:
        said += f" [allocated {peak} bytes for a file of {size}, allowed are {ROOM + MULTIPLE * size}]"
    return said


def _where(error: BaseException) -> str:
    """Return the last places of ours that an error passed."""
    import traceback

    frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    return f" at {' > '.join(frames[-4:])}"


def run(name: str, cases: int, seed: int, folder: Path) -> int:
    """Try `cases` damaged files of a kind, and return the number of failures, each told on a line of its own."""
    kind = KINDS[name]
    warnings.simplefilter("error", RuntimeWarning)  # numbers that were cast into something else are no result
    folder.mkdir(parents=True, exist_ok=True)
    valid = kind.make(folder / "valid")
    for path in valid:
        kind.read(path)  # imports what is needed; an error here is one of the test
    used = _address_space() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (used, used))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failures = 0
    for path in valid:
        failures += _report(name, "valid", try_case(kind, path), path)
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


def _report(name: str, case: int | str, said: str, path: Path) -> int:
    """Tell of a failure; return 1 for one, 0 for none."""
    if not said:
        return 0
    print(json.dumps({"kind": name, "case": case, "said": said, "file": os.fspath(path)}), flush=True)  # noqa: T201
    return 1


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="damage files of a kind, and read them")
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--times", type=int, default=1, help="how many times as many as in a test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    faulthandler.enable()
    import dask

    with dask.config.set(scheduler="synchronous"):
        sys.exit(1 if run(given.kind, given.times * KINDS[given.kind].cases, given.seed, given.folder) else 0)


if __name__ == "__main__":
    main()
