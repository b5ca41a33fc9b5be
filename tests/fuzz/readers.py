"""Readers against damaged files: one kind of file in a process of its own, whose memory is bounded.

``python -m fuzz.readers KIND --times 10 --seed 7 --folder cases`` in ``tests`` writes a few valid files of the kind,
damages them in ways that follow from the seed, and reads each. A reader may give a result, or an error that names the
file. What else happens is told in JSON lines, and the file stays in the folder; of a crash or hang it is the last one.

Memory is bounded in two ways. ``RLIMIT_AS`` holds the whole process, so that a claim of a header cannot take all of the
machine's. And no case may take more than a constant and a multiple of its file: as counted by tracemalloc (Python and
NumPy, untouched pages too), by Arrow's pool, and by the resident pages of the process (libraries in C).
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import shutil
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import files as fuzz_files
from fuzz.mutations import damage

# Measured: the valid files here, of 0.1 to 250 kB, take up to 4.2 MB, for buffers that are no smaller for small files.
# Larger ones take up to 26 bytes for each byte, where they are not compressed: the text of gmhclust, "1 2 ", becomes a
# list of Python's texts. Four times either is allowed, and what is compressed may be all that HDF5's filters make.
ROOM = 16 << 20
PLAIN, COMPRESSED = 100, 2000
# A chunk of a zarr store may have 64 MB, however few bytes it is stored in, and is in memory three times.
ZARR_ROOM = ROOM + (3 << 26)
# Beyond what the process has when it has read valid files.
ADDRESS_SPACE = 1 << 30
SECONDS = 60  # of one case, which takes milliseconds: so long only where it hangs
MOST_FAILURES = 12


@dataclass(frozen=True)
class Kind:
    """One way to read files of one format.

    Parameters
    ----------
    make : function of a folder
        Writes valid files, or folders, and returns their paths.
    read : function of a path
        Calls the public reader, and computes what is lazy.
    multiple : int
        Bytes that may be allocated for each byte of the file.
    room : int
        Bytes that may be allocated whatever the file has.
    cases : int
        Damaged files of one test: so many as take about a second.
    """

    make: Callable[[Path], list[Path]]
    read: Callable[[Path], Any]
    multiple: int = PLAIN
    room: int = ROOM
    cases: int = 200


def _hits(**options: Any) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        from daskclust.io import read_hits

        return read_hits(path, **options).compute()

    return read


def _particles(chunks: int | None = 50) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        from daskclust.io import open_particles

        return open_particles(path, chunks=chunks).compute()

    return read


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


def _fcs(chunks: int | None = None) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        from daskclust.io import open_fcs

        return open_fcs(path, data_set=0, chunks=chunks).compute()

    return read


def _cells(chunks: int | None = None) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        from daskclust.io import read_cells

        return read_cells(path, chunks=chunks).compute()

    return read


def _gmhc(path: Path) -> Any:
    from daskclust.io import read_gmhc

    return read_gmhc(path, chunks=50).compute()


def _assignments(path: Path) -> Any:
    """The damaged file is that of the assignments, beside points that are valid."""
    from daskclust.io import read_gmhc

    return read_gmhc(fuzz_files.points_of_assignments(path), path)


def _calibration(path: Path) -> Any:
    from daskclust.io import read_calibration

    good = fuzz_files.good_matrix(path)
    return read_calibration(path, good, good, good)


KINDS = {
    "tpx3": Kind(fuzz_files.tpx3, _tpx3()),
    "tpx3-lazy": Kind(fuzz_files.tpx3, _tpx3(chunks=40, layout="quad", phase_correction=True), cases=25),
    "tpx3-backend": Kind(fuzz_files.tpx3, _tpx3_backend, cases=50),
    "tpx3-triggers": Kind(fuzz_files.tpx3, _tpx3_triggers),
    "tpx3-stream": Kind(fuzz_files.tpx3, _tpx3_stream),
    "t3pa": Kind(fuzz_files.t3pa, _t3pa),
    "katherine": Kind(fuzz_files.katherine, _katherine),
    "hits-csv": Kind(fuzz_files.hits_csv, _hits()),
    "hits-txt": Kind(fuzz_files.hits_txt, _hits()),
    "hits-parquet": Kind(fuzz_files.hits_parquet, _hits(), COMPRESSED),
    "hits-parquet-lazy": Kind(fuzz_files.hits_parquet, _hits(chunks=50), COMPRESSED, cases=80),
    "hits-hdf5": Kind(fuzz_files.hits_hdf5, _hits(), COMPRESSED),
    "hits-hdf5-lazy": Kind(fuzz_files.hits_hdf5, _hits(chunks=50), COMPRESSED, cases=100),
    "hits-root": Kind(fuzz_files.hits_root, _hits(), COMPRESSED, cases=100),
    "hits-rntuple": Kind(fuzz_files.hits_rntuple, _hits(), COMPRESSED, cases=100),
    "hits-npy": Kind(fuzz_files.hits_npy, _hits()),
    "hits-npz": Kind(fuzz_files.hits_npz, _hits(), COMPRESSED),
    "gadget": Kind(fuzz_files.gadget, _particles(), COMPRESSED, cases=100),
    "particles-parquet": Kind(fuzz_files.particles_parquet, _particles(None), COMPRESSED),
    "particles-npy": Kind(fuzz_files.particles_npy, _particles(), cases=80),
    "particles-zarr": Kind(fuzz_files.particles_zarr, _particles(), COMPRESSED, ZARR_ROOM, cases=40),
    "particles-arborx": Kind(fuzz_files.particles_arborx, _particles(), cases=100),
    "fcs": Kind(fuzz_files.fcs, _fcs()),
    "fcs-lazy": Kind(fuzz_files.fcs, _fcs(50), cases=100),
    "cells-fcs": Kind(fuzz_files.fcs_single, _cells()),
    "cells-csv": Kind(fuzz_files.cells_csv, _cells()),
    "cells-parquet": Kind(fuzz_files.cells_parquet, _cells(50), COMPRESSED, cases=100),
    "gmhc": Kind(fuzz_files.gmhc, _gmhc),
    "gmhc-assignments": Kind(fuzz_files.assignments, _assignments),
    "calibration": Kind(fuzz_files.calibration, _calibration, cases=25),
}


_pools: list[Any] = []  # a buffer that waits for Python's garbage collection needs its pool


class Meter:
    """What one case allocates, by the largest of three counts."""

    def __enter__(self) -> Meter:
        import pyarrow as pa

        self.pool = pa.proxy_memory_pool(pa.system_memory_pool())
        pa.set_memory_pool(self.pool)
        _pools.append(self.pool)
        tracemalloc.start()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self.resident = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.peak = max(traced, self.pool.max_memory(), _status("VmHWM") - self.resident)


def _status(name: str) -> int:
    """Return a size of this process in bytes."""
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) << 10 for line in stream if line.startswith(f"{name}:"))


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(inside.stat().st_size for inside in path.rglob("*") if inside.is_file())


def is_clear(error: BaseException, path: Path) -> bool:
    """Return whether an error is one of ours: of a class that says what to do with it, and it names the file.

    Subclasses of ValueError (UnicodeDecodeError, JSONDecodeError ...) are a library's, which no reader meant to raise.
    """
    return (type(error) is ValueError or isinstance(error, OSError)) and path.name in str(error)


def try_case(kind: Kind, path: Path) -> str:
    """Read one file; return what is wrong, "" for nothing."""
    with Meter() as meter:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            kind.read(path)
            said = ""
        except BaseException as error:  # MemoryError, KeyboardInterrupt of a handler and pytest's own are faults, too
            said = "" if is_clear(error, path) else f"{type(error).__name__}: {str(error)[:300]}{_where(error)}"
        finally:
            faulthandler.cancel_dump_traceback_later()
    allowed = kind.room + kind.multiple * size_of(path)
    if meter.peak > allowed:
        said += f" [allocated {meter.peak} bytes for a file of {size_of(path)}, allowed are {allowed}]"
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
    used = _status("VmSize") + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (used, used))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failures = 0
    for path in valid:
        failures += _report(name, "valid", try_case(kind, path), path)
    for number in range(cases):
        rng = np.random.default_rng([seed, number])
        source = valid[int(rng.integers(len(valid)))]
        path = folder / f"case{number}{source.suffix}"
        damage(source, path, rng)
        wrong = _report(name, number, try_case(kind, path), path)
        failures += wrong
        if not wrong:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
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
