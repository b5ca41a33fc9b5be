"""All systems on small data, where there are any those of their field, results as bytes, and what disturbs their steps.

For tests of what an answer must not depend on: chunks, workers, threads, delays, and faults.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from cases.steps import in_chunks
from distributed import Worker, WorkerPlugin
from laws.registry import ENTRIES

from daskclust import datasets, io, systems
from daskclust.core.run.steps import in_turn

ALONE = ("daskclust.core.run.graph", "_alone")
"""What calls each step of a plan on a worker, with the step's function as its first argument."""


@dataclass(frozen=True)
class System:
    """Data in memory, and how they are clustered."""

    data: xr.Dataset
    method: str  # of ``ds.clust``
    parameters: dict[str, Any]
    partitions: tuple[str, ...]  # that suit any chunks of the data

    @property
    def dim(self) -> str:
        return str(next(iter(self.data.variables.values())).dims[0])

    def __len__(self) -> int:
        return int(self.data.sizes[self.dim])

    def cluster(self, rows: int | tuple[int, ...] | None = None, partition: str = "auto") -> xr.Dataset:
        """Return the results: in memory, or lazy ones for chunks of so many rows."""
        data = self.data if rows is None else self.data.chunk({self.dim: rows})
        return getattr(data.clust, self.method)(**self.parameters, partition=partition)


@dataclass(frozen=True)
class Entry:
    """A system of the registry on its own sample, where there are no data of its field."""

    entry: systems.System

    @property
    def partitions(self) -> tuple[str, ...]:
        return ("auto", *self.entry.partitions)

    def __len__(self) -> int:
        return 16 * self.entry.size

    def cluster(self, rows: int | tuple[int, ...] | None = None, partition: str = "auto") -> xr.Dataset:
        run = self.entry.runs[0]
        sample = self.entry.sample(len(self), run, np.float64)
        if rows is not None:
            sample = sample.map(in_chunks(rows))
        how = {} if partition == "auto" else {"partition": partition}
        labels = self.entry.estimator(**run.parameters).fit(sample.X, **sample.columns, **how).labels_
        return xr.Dataset({"label": ("point", labels)})


SYSTEMS: dict[str, System | Entry] = {
    "clue": System(
        datasets.hgcal_event(12, 20, n_noise=600, rng=1),
        "clue",
        {"dc": 2.0, "rhoc": 0.05, "delta_o": 3.0},
        ("auto", "layers", "space"),
    ),
    "events": System(
        datasets.timepix(4000, kind="pion45", rate=40e6, chips=2, rng=2),
        "events",
        {"dt_max": 200.0, "min_hits": 20},
        ("auto", "chunks", "windows"),
    ),
    "dbscan": System(datasets.cosmology_box(5000, rng=3), "dbscan", {"eps": 0.4, "min_samples": 5}, ("auto", "space")),
    "fof": System(datasets.cosmology_box(5000, rng=4), "fof", {"b": 0.2, "min_members": 5}, ("auto", "space")),
    "hca": System(
        datasets.apriori_gaussians(30, 25, channels=5, shuffle=True, rng=5), "hca", {"n_clusters": 7}, ("auto",)
    ),
}


SYSTEMS |= {entry.name: Entry(entry) for entry in ENTRIES if entry.name not in SYSTEMS}


def output(ds: xr.Dataset) -> dict[str, bytes]:
    """Return all variables of a Dataset, computed, as bytes in the order of the points, and its attributes."""
    ds = ds.compute()
    told = {f"attributes of {name}": repr(sorted(v.attrs.items())).encode() for name, v in ds.variables.items()}
    told["attributes"] = repr(sorted(ds.attrs.items())).encode()
    return told | {
        str(name): f"{v.dims} {v.dtype} {v.shape}\n".encode() + np.ascontiguousarray(v.values).tobytes()
        for name, v in ds.variables.items()
    }


def content(path: Path) -> list[bytes]:
    """Return the bytes of a file, or of all of a folder in the order of their names."""
    return [file.read_bytes() for file in ([path] if path.is_file() else sorted(path.rglob("*"))) if file.is_file()]


@functools.cache
def in_memory(name: str) -> dict[str, bytes]:
    """Return the output of a system in memory, in which there are clusters and, but for HCA, noise."""
    result = SYSTEMS[name].cluster()
    assert result["label"].max() >= 5
    assert (name == "hca") == (result["label"].min() == 0)
    return output(result)


def assert_same_output(got: xr.Dataset, name: str) -> None:
    """Demand the output of a system in memory, to the last byte."""
    found, wanted = output(got), in_memory(name)
    differ = sorted(each for each in found.keys() | wanted.keys() if found.get(each) != wanted.get(each))
    assert not differ, f"other bytes than in memory: {', '.join(differ)}"


# --------------------------------------------------------------------------------------------------------------- files
FILES: list[tuple[str, Callable[..., None], str]] = [
    *[("clue", io.write_hits, suffix) for suffix in (".csv", ".npz", ".h5", ".parquet")],
    *[("fof", io.write_particles, suffix) for suffix in (".zarr", ".hdf5", ".parquet")],
    *[("hca", io.write_cells, suffix) for suffix in (".csv", ".fcs", ".parquet")],
]
"""Systems whose results are written, what writes them, and kinds of files."""


def for_file(result: xr.Dataset) -> xr.Dataset:
    """Return what of a result a file can hold."""
    return result.drop_dims(["merge", "linkage_column"], errors="ignore")


# ------------------------------------------------------------------------------------------------------- disturbances
def wrapped(function: Callable[..., Any], around: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``around(function, *args)``, and which pickle takes for the one that it wraps."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return around(function, *args, **kwargs)

    return call


class Around(WorkerPlugin):
    """Worker plugin: ``around(function, *args)`` is called for a function of a module, on workers that start, too.

    Workers are processes here: what is changed is their module.
    """

    idempotent = False

    def __init__(self, where: tuple[str, str], around: Callable[..., Any], name: str = "around") -> None:
        self.where = where
        self.around = around
        self.name = name

    def setup(self, worker: Worker) -> None:
        module = importlib.import_module(self.where[0])
        self.before = getattr(module, self.where[1])
        setattr(module, self.where[1], wrapped(self.before, self.around))

    def teardown(self, worker: Worker) -> None:
        setattr(importlib.import_module(self.where[0]), self.where[1], self.before)


@dataclass(frozen=True)
class Delays:
    """Steps wait a random time, some of them long."""

    seed: int
    scale: float  # the mean, in s

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        rng = np.random.default_rng([self.seed, time.perf_counter_ns()])
        time.sleep(rng.exponential(self.scale))
        return function(*args)


@dataclass(frozen=True)
class Kill:
    """The worker that has done a step dies before it can tell the result."""

    step: str  # the name of its function, as of `Plan`; "" for any
    mark: Path | None = None  # a file that says that it has happened, the first time only; None: each time

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        step = args[0]
        while isinstance(step, functools.partial):
            step = step.args[0] if step.func is in_turn else step.func
        if self.step in ("", getattr(step, "__name__", "").strip("_").removesuffix("_piece")):
            with suppress(FileExistsError):
                if self.mark is not None:
                    self.mark.open("x").close()
                self.fail()
        return result

    def fail(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Gorge(Kill):
    """The worker that has done a step takes more and more memory, until its nanny kills it."""

    def fail(self) -> None:
        end, taken = time.monotonic() + 600, []
        while time.monotonic() < end:
            taken.append(np.ones(1 << 22))  # 32 MiB
            time.sleep(0.02)
        raise AssertionError(f"nobody ended a worker that took {len(taken)} times 32 MiB")
