"""Make the files of `tests/data/pymepix` again: `python tests/data/make_pymepix.py`, with pymepix.

It is on no index of packages: its folder (github.com/CFEL-CMI/pymepix, 8ee4c81 of March 2024) must be on the path.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import xarray as xr

FOLDER = Path(__file__).parent / "pymepix"


def make() -> None:
    """Write hits and triggers as raw words of Timepix3, and let pymepix make its file of them."""
    from pymepix.processing.rawfilesampler import RawFileSampler

    from daskclust import datasets
    from daskclust.io import write_tpx3

    FOLDER.mkdir(exist_ok=True)
    hits = datasets.timepix(400, kind="pion45", rate=2e4, start=1e6, rng=2026)
    triggers = xr.Dataset({"time": ("trigger", 1e6 - 100 + 2e6 * np.arange(9))})
    write_tpx3(hits, FOLDER / "run.tpx3", triggers=triggers)
    words = np.fromfile(FOLDER / "run.tpx3", "<u8")
    words = words[words & 0xFFFFFFFF != int.from_bytes(b"TPX3", "little")]  # pymepix has no chunks
    raw = FOLDER / "run.raw"
    np.concatenate([np.array([10**18], "<u8"), words]).tofile(raw)
    (FOLDER / "run.hdf5").unlink(missing_ok=True)
    RawFileSampler(str(raw), str(FOLDER / "run.hdf5"), number_of_processes=1).run()
    raw.unlink()
    (FOLDER / "run.hdf5.gz").write_bytes(gzip.compress((FOLDER / "run.hdf5").read_bytes(), mtime=0))
    (FOLDER / "run.hdf5").unlink()


if __name__ == "__main__":
    make()
