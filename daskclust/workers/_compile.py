"""Compile kernels ahead of the first task: by running each system on a few points."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from distributed import Worker, WorkerPlugin

from daskclust.core.device.arrays import cupy_module

SYSTEMS = ("clue", "events", "dbscan", "hca")
_N = 200  # points

Give = Callable[[Any], Any]


def compile_kernels(systems: str | Sequence[str] = "all", *, cuda: bool = False) -> None:
    """Compile the kernels of systems, in memory and on Dask, for the usual kinds of points.

    Machine code for the CPU is kept in numba's cache, beside the package or, where that cannot be written, in the
    user's folder; ``NUMBA_CACHE_DIR`` names another. With an empty cache a system takes some ten seconds.

    Parameters
    ----------
    systems : str or sequence of str, default "all"
        ``"clue"``, ``"events"``, ``"dbscan"``, ``"hca"``, or ``"all"``.
    cuda : bool, default False
        Whether they are compiled for this process's GPU, and not for the CPU.

    Raises
    ------
    ValueError
        For unknown systems.
    ImportError
        Where CuPy is missing, with `cuda`.
    """
    import dask

    names = checked_systems(systems)
    give = cupy_module().asarray if cuda else np.asarray
    with dask.config.set(scheduler="synchronous"):
        for name in names:
            _RUNS[name](give)


class CompileKernels(WorkerPlugin):
    """Worker plugin: kernels are compiled, or loaded from numba's cache, as a worker starts.

    Parameters
    ----------
    systems : sequence of str
        As of `compile_kernels`.
    cuda : bool
        For the worker's GPU.
    """

    name = "daskclust-compile-kernels"
    idempotent = False

    def __init__(self, systems: Sequence[str], cuda: bool = False) -> None:
        self.systems = tuple(systems)
        self.cuda = cuda

    async def setup(self, worker: Worker) -> None:
        """Compile in a thread of the worker's, which goes on talking to its scheduler."""
        await asyncio.to_thread(compile_kernels, self.systems, cuda=self.cuda)


def checked_systems(systems: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of systems, checked; of ``"all"`` each."""
    names = SYSTEMS if systems == "all" else (systems,) if isinstance(systems, str) else tuple(systems)
    for name in names:
        if name not in SYSTEMS:
            raise ValueError(f"systems are {', '.join(SYSTEMS)}, or all; got {name!r}")
    return names


# ------------------------------------------------------------------------------------------------ each on a few points
def _clue(give: Give) -> None:
    from daskclust import CLUE

    for X, column in _points(2, give):
        clue, layer = CLUE(dc=1.0, rhoc=2.0), give(np.arange(_N) // (_N // 2))
        for group in (layer, 5 * layer):  # with gaps they are numbered anew
            clue.fit(X, layer=group, sample_weight=column)
        clue.fit(_lazy(X), layer=_lazy(layer), sample_weight=_lazy(column)).labels_.compute()
        clue.fit(_lazy(X), partition="space").labels_.compute()


def _events(give: Give) -> None:
    from daskclust import EventBuilder
    from daskclust.datasets import timepix

    hits = timepix(_N, rng=0)
    columns = {name: give(hits[name].values) for name in ("x", "y", "toa")}
    for variant in ("local", "global", "static"):
        builder = EventBuilder(200.0, variant=variant)
        builder.fit(columns)
        builder.fit({name: _lazy(column) for name, column in columns.items()}).labels_.compute()


def _dbscan(give: Give) -> None:
    from daskclust import DBSCAN, FriendsOfFriends

    for d in (2, 3):
        for X, _ in _points(d, give):
            for boxsize in (None, 8.0):
                for estimator in (FriendsOfFriends(0.5, boxsize=boxsize), DBSCAN(0.5, boxsize=boxsize)):
                    estimator.fit(X)
                    estimator.fit(_lazy(X)).labels_.compute()


def _hca(give: Give) -> None:
    from daskclust import MahalanobisHCA

    for X, _ in _points(4, give):
        apriori = give(np.arange(_N) % 3)
        MahalanobisHCA().fit(X)
        MahalanobisHCA().fit(X, apriori=apriori)


_RUNS: dict[str, Callable[[Give], None]] = {"clue": _clue, "events": _events, "dbscan": _dbscan, "hca": _hca}


def _points(d: int, give: Give) -> Iterator[tuple[Any, Any]]:
    """Yield points (n, d) and a column (n,) in each dtype."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        yield give(rng.uniform(0, 8, (_N, d)).astype(dtype)), give(rng.uniform(0, 1, _N).astype(dtype))


def _lazy(array: Any) -> Any:
    """Return an array as a dask array of two chunks."""
    import dask.array as da

    return da.from_array(array, chunks=(_N // 2, *array.shape[1:]), asarray=False)
