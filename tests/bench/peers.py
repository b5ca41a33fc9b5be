"""Other programs that answer the same questions, timed on the same points, in turn with this one.

They are looked for, not required. hdbscan asks another question, and ArborX has no Python interface.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from daskclust.bench.case import Case, Options, System
from daskclust.bench.clue import DC, DELTA, RHOC
from daskclust.bench.events import DT_MAX
from daskclust.bench.timing import kernel_threads, seconds_of
from daskclust.core.merge.labels import same_partition

_TICK = 1.5625  # ns


def _fitted(case: Case) -> Any:
    return getattr(case.fit(*case.arrays), case.result)


class Peer(NamedTuple):
    """Another program."""

    name: str
    module: str  # that is imported
    package: str  # that it comes in
    install: str
    most: int  # points that it is given: more take it too long, or more memory than machines have
    theirs: Callable[[Any, Case, int], Callable[[], Any]]  # of the module, for a case on a number of threads
    agree: Callable[[Any, Any], bool]  # whether both answers are the same
    ours: Callable[[Case], Any] = _fitted


# ------------------------------------------------------------------------------------------------------ clue and events
def _cluestering(module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    X, layer, weight = case.arrays
    batches = np.bincount(layer)
    batches = batches[batches > 0].astype(np.uint32)

    def theirs() -> NDArray[Any]:
        found = module.clusterer(DC, RHOC, DELTA, DELTA)
        found.choose_kernel("flat", [1.0])  # the paper's: 1 for each neighbour
        found.read_data([X[:, 0], X[:, 1], weight])
        found.run_clue(batch_sample_sizes=batches)
        return np.asarray(found.cluster_ids)

    return theirs


def _rustpix(module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    """Both go from a file to a table; only the number of clusters is compared."""
    clustering = module.ClusteringConfig(radius=1.5, temporal_window_ns=DT_MAX, min_cluster_size=1)
    extraction = module.ExtractionConfig(super_resolution_factor=1.0, weighted_by_tot=True, min_tot_threshold=0)
    options = {"algorithm": "grid", "collect": True, "clustering_config": clustering, "extraction_config": extraction}
    return lambda: int(module.process_tpx3_neutrons(str(case.file), **options).len())


def _dbscan_of_hits(module: Any, case: Case, threads: int) -> Callable[[], Any]:
    """Hits touch, and are not more than dt_max apart: a ball of the maximum norm, in ticks along all axes."""
    reach = DT_MAX / _TICK
    x, y, toa = case.arrays
    points = np.stack([x * reach, y * reach, toa / _TICK], axis=1)
    other = module.DBSCAN(eps=reach, min_samples=1, metric="chebyshev", algorithm="kd_tree", n_jobs=threads)
    return lambda: other.fit(points).labels_


# ------------------------------------------------------------------------------------------------------- dbscan and fof
def _dbscan_of_points(module: Any, case: Case, threads: int) -> Callable[[], Any]:
    facts = case.facts
    other = module.DBSCAN(eps=facts["eps"], min_samples=facts["min_samples"], algorithm="kd_tree", n_jobs=threads)
    return lambda: other.fit(*case.arrays).labels_


def _pairs_and_components(_module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    (X,), n = case.arrays, len(case.arrays[0])

    def theirs() -> NDArray[Any]:
        pairs = cKDTree(X).query_pairs(case.facts["eps"], output_type="ndarray")
        graph = coo_matrix((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        return np.asarray(connected_components(graph, directed=False)[1])

    return theirs


def _hfof(module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    X = case.arrays[0].astype(np.float64)
    return lambda: np.asarray(module.fof(X, case.facts["eps"]))


def _pyfof(module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    X = case.arrays[0].astype(np.float64)

    def theirs() -> NDArray[Any]:
        label = np.empty(len(X), np.int64)
        for number, members in enumerate(module.friends_of_friends(X, case.facts["eps"])):
            label[members] = number
        return label

    return theirs


def _same_groups(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Compare with labels where those who are alone have one, too."""
    alone = np.bincount(theirs)[theirs] == 1
    return same_partition(ours, np.where(alone, -1, theirs))


# ------------------------------------------------------------------------------------------------------------------ hca
def _linkage(module: Any, case: Case, _threads: int) -> Callable[[], Any]:
    X = case.arrays[0].astype(np.float64)
    linkage = getattr(module, "linkage_vector", None) or module.linkage
    return lambda: linkage(X, method="centroid")


def _euclidean(case: Case) -> Any:
    """Return our hierarchy, Euclidean below a threshold of all points, so that the question is the same."""
    from daskclust import MahalanobisHCA

    X = case.arrays[0].astype(np.float64)
    return MahalanobisHCA(len(X)).fit(X).linkage_


def _same_heights(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return bool(np.allclose(ours[:, 2], theirs[:, 2], rtol=1e-9))


_SCIKIT_LEARN = ("scikit-learn DBSCAN", "sklearn.cluster", "scikit-learn", "pip install scikit-learn")
_CLUESTERING = "pip install CLUEstering, with a C++20 compiler, CMake and Boost"
_HFOF = "make in a clone of github.com/pec27/hfof, and its folder on PYTHONPATH"
_RUSTPIX = (_rustpix, operator.eq, lambda case: len(case.calls["total"]()["size"]))
_HIERARCHY = (_linkage, _same_heights, _euclidean)
PEERS: dict[str, tuple[Peer, ...]] = {
    "clue": (
        Peer("CLUEstering, serial", "CLUEstering", "CLUEstering", _CLUESTERING, 10**6, _cluestering, same_partition),
    ),
    "events": (
        Peer("rustpix grid, file to table", "rustpix", "rustpix", "pip install rustpix", 4 * 10**6, *_RUSTPIX),
        Peer(*_SCIKIT_LEARN, 10**5, _dbscan_of_hits, same_partition),
    ),
    "dbscan": (Peer(*_SCIKIT_LEARN, 2 * 10**5, _dbscan_of_points, np.array_equal),),
    "fof": (
        Peer(
            "SciPy cKDTree pairs, connected components", "scipy.spatial", "scipy", "pip install scipy", 2 * 10**5,
            _pairs_and_components, _same_groups,
        ),
        Peer("hfof", "hfof", "hfof", _HFOF, 4 * 10**6, _hfof, _same_groups),
        Peer("pyfof", "pyfof", "pyfof", "pip install pyfof", 10**5, _pyfof, _same_groups),
    ),
    "hca": (
        Peer("fastcluster linkage_vector", "fastcluster", "fastcluster", "pip install fastcluster", 44_000,
             *_HIERARCHY),
        Peer("SciPy linkage", "scipy.cluster.hierarchy", "scipy", "pip install scipy", 5000, *_HIERARCHY),
    ),
}  # fmt: skip
"""Programs that can be timed beside this one, by system."""


# --------------------------------------------------------------------------------------------------------------- timing
def bench_peers(name: str, system: System, options: Options) -> dict[str, Any]:
    """Time installed programs that answer the same question, on the CPU, in turn with this one.

    A program that is too slow for a size is given as many points as it can do. Of several ``min_samples`` the first
    counts, of numbers of threads the largest. The result has ``timed``: for each program, kind and number of points its
    name and version, ``asked``, the points that it should have had, ``ms``, ``ours_ms``, ``ratio``, the median of their
    time over ours, pair by pair, and ``agrees``: whether the answers are the same; and ``missing``: names of those that
    are not installed, and how they are.
    """
    missing = [{"name": peer.name, "install": peer.install} for peer in PEERS[name] if not _is_there(peer)]
    number = max(options.threads or (0,)) if 0 not in options.threads else 0
    number = number or int(numba.get_num_threads())
    options = replace(options, min_samples=options.min_samples[:1])
    with kernel_threads(number):
        timed = [
            run
            for peer in filter(_is_there, PEERS[name])
            for kind in options.kinds
            if kind != "apriori"  # which no other program has
            for run in _timed(peer, system, kind, number, options)
        ]
    return {"timed": timed, "missing": missing}


def _timed(peer: Peer, system: System, kind: str, threads: int, options: Options) -> Iterator[dict[str, Any]]:
    module = importlib.import_module(peer.module)
    what = {"name": peer.name, "version": _version(peer), "threads": threads, "kind": kind}
    for points, asked in {min(size, peer.most): size for size in sorted(options.sizes)}.items():
        for case in system.cases(kind, points, options):
            ours, theirs = partial(peer.ours, case), peer.theirs(module, case, threads)
            found = in_turn(ours, theirs, peer.agree, min(options.repeats, 3))
            yield {**what, "points": points, "asked": asked, **found}


def in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], agree: Callable[[Any, Any], bool], repeats: int
) -> dict[str, Any]:
    """Time both by turns, after a warm-up whose answers are compared."""
    agrees = agree(ours(), theirs())
    ours_s, theirs_s = np.array([(seconds_of(ours), seconds_of(theirs)) for _ in range(repeats)]).T
    times = {"ms": theirs_s * 1e3, "ours_ms": ours_s * 1e3, "ratio": theirs_s / ours_s}
    return {name: float(np.median(values)) for name, values in times.items()} | {"agrees": bool(agrees)}


def _is_there(peer: Peer) -> bool:
    return importlib.util.find_spec(peer.module.split(".")[0]) is not None


def _version(peer: Peer) -> str:
    try:
        return importlib.metadata.version(peer.package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
