"""Other programs that answer the same questions, timed on the same points, in turn with this one.

They are looked for, not required. hdbscan and ArborX are none of them: the one asks another question, the other has no
Python interface.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.bench import clue, dbscan, events, hca
from daskclust.bench._report import check_kinds, table
from daskclust.bench._timing import kernel_threads, seconds_of
from daskclust.core.merge.labels import same_partition

_TICK = 1.5625  # ns


class Task(NamedTuple):
    """What this program and its peers are to do."""

    kind: str
    data: Any  # as the system's benchmark makes it
    min_samples: int | None
    threads: int


class Duel(NamedTuple):
    """Two calls with the same question, and whether their answers are the same."""

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    agree: Callable[[Any, Any], bool]


class Peer(NamedTuple):
    """Another program.

    Parameters
    ----------
    name : str
        What it is called in reports.
    module, package : str
        What is imported, and the distribution that it comes in.
    install : str
        How it is installed.
    most : int
        Points that it is given at most: more take it too long, or more memory than machines have.
    duel : function
        Makes both calls for a task.
    """

    name: str
    module: str
    package: str
    install: str
    most: int
    duel: Callable[[Any, Task], Duel]


# ----------------------------------------------------------------------------------------------------------------- clue
def _cluestering(module: Any, task: Task) -> Duel:
    X, layer, weight = task.data
    batches = np.bincount(layer)
    batches = batches[batches > 0].astype(np.uint32)

    def theirs() -> NDArray[Any]:
        found = module.clusterer(clue.DC, clue.RHOC, clue.DELTA, clue.DELTA)
        found.choose_kernel("flat", [1.0])  # the paper's: 1 for each neighbour
        found.read_data([X[:, 0], X[:, 1], weight])
        found.run_clue(batch_sample_sizes=batches)
        return np.asarray(found.cluster_ids)

    return Duel(lambda: clue.fit_of(*task.data).labels_, theirs, same_partition)


# --------------------------------------------------------------------------------------------------------------- events
def _rustpix(module: Any, task: Task) -> Duel:
    _, path = task.data
    clustering = module.ClusteringConfig(radius=1.5, temporal_window_ns=events.DT_MAX, min_cluster_size=1)
    extraction = module.ExtractionConfig(super_resolution_factor=1.0, weighted_by_tot=True, min_tot_threshold=0)

    def theirs() -> int:
        options = {"clustering_config": clustering, "extraction_config": extraction}
        return int(module.process_tpx3_neutrons(str(path), algorithm="grid", collect=True, **options).len())

    return Duel(lambda: len(events.table_of(path)["size"]), theirs, lambda ours, other: ours == other)


def _dbscan_of_hits(_module: Any, task: Task) -> Duel:
    """Hits touch, and are not more than dt_max apart: a ball of the maximum norm, in ticks along all axes."""
    from daskclust import EventBuilder

    hits, _ = task.data
    reach = events.DT_MAX / _TICK
    points = np.stack([hits["x"].values * reach, hits["y"].values * reach, hits["toa"].values / _TICK], axis=1)
    options = {"min_samples": 1, "metric": "chebyshev", "algorithm": "kd_tree", "n_jobs": task.threads}
    return Duel(
        lambda: EventBuilder(events.DT_MAX).fit(hits).labels_,
        lambda: _scikit_learn(points, reach, **options),
        same_partition,
    )


# ------------------------------------------------------------------------------------------------------- dbscan and fof
def _scikit_learn(X: Any, eps: float, **options: Any) -> Any:
    cluster = importlib.import_module("sklearn.cluster")
    return cluster.DBSCAN(eps=eps, **options).fit(X).labels_


def _ours(task: Task) -> Any:
    X, eps = task.data
    return dbscan.estimator_of(eps, task.min_samples).fit(X).labels_


def _dbscan_of_points(_module: Any, task: Task) -> Duel:
    X, eps = task.data
    options = {"min_samples": task.min_samples, "algorithm": "kd_tree", "n_jobs": task.threads}
    return Duel(partial(_ours, task), lambda: _scikit_learn(X, eps, **options), np.array_equal)


def _pairs_and_components(_module: Any, task: Task) -> Duel:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    X, eps = task.data
    n = len(X)

    def theirs() -> NDArray[Any]:
        pairs = cKDTree(X).query_pairs(eps, output_type="ndarray")
        graph = coo_matrix((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        return np.asarray(connected_components(graph, directed=False)[1])

    return Duel(partial(_ours, task), theirs, _same_groups)


def _hfof(module: Any, task: Task) -> Duel:
    X, eps = task.data
    return Duel(partial(_ours, task), lambda: np.asarray(module.fof(X.astype(np.float64), eps)), _same_groups)


def _pyfof(module: Any, task: Task) -> Duel:
    X, eps = task.data

    def theirs() -> NDArray[Any]:
        label = np.empty(len(X), np.int64)
        for number, members in enumerate(module.friends_of_friends(X.astype(np.float64), eps)):
            label[members] = number
        return label

    return Duel(partial(_ours, task), theirs, _same_groups)


def _same_groups(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Compare with labels where those who are alone have one, too."""
    alone = np.bincount(theirs)[theirs] == 1
    return same_partition(ours, np.where(alone, -1, theirs))


# ------------------------------------------------------------------------------------------------------------------ hca
def _fastcluster(module: Any, task: Task) -> Duel:
    return _of_centroids(task, partial(module.linkage_vector, method="centroid"))


def _scipy_linkage(_module: Any, task: Task) -> Duel:
    from scipy.cluster.hierarchy import linkage

    return _of_centroids(task, partial(linkage, method="centroid"))


def _of_centroids(task: Task, linkage: Callable[..., Any]) -> Duel:
    """Below a threshold of all points distances are Euclidean, so that the question is the same."""
    from daskclust import MahalanobisHCA

    X = task.data.X.astype(np.float64)
    return Duel(lambda: MahalanobisHCA(len(X)).fit(X).linkage_, lambda: linkage(X), _same_heights)


def _same_heights(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Compare the heights of all merges."""
    return bool(np.allclose(ours[:, 2], theirs[:, 2], rtol=1e-9))


_SCIKIT_LEARN, _SCIPY = ("sklearn", "scikit-learn", "pip install scikit-learn"), ("scipy", "scipy", "pip install scipy")
PEERS: dict[str, tuple[Peer, ...]] = {
    "clue": (
        Peer(
            "CLUEstering, serial", "CLUEstering", "CLUEstering",
            "pip install CLUEstering, with a C++20 compiler, CMake and Boost", 10**6, _cluestering,
        ),
    ),
    "events": (
        Peer("rustpix grid, file to table", "rustpix", "rustpix", "pip install rustpix", 4 * 10**6, _rustpix),
        Peer("scikit-learn DBSCAN", *_SCIKIT_LEARN, 10**5, _dbscan_of_hits),
    ),
    "dbscan": (Peer("scikit-learn DBSCAN", *_SCIKIT_LEARN, 2 * 10**5, _dbscan_of_points),),
    "fof": (
        Peer("SciPy cKDTree pairs, connected components", *_SCIPY, 2 * 10**5, _pairs_and_components),
        Peer("hfof", "hfof", "hfof", "make in a clone of github.com/pec27/hfof, and its folder on PYTHONPATH",
             4 * 10**6, _hfof),
        Peer("pyfof", "pyfof", "pyfof", "pip install pyfof", 10**5, _pyfof),
    ),
    "hca": (
        Peer("fastcluster linkage_vector", "fastcluster", "fastcluster", "pip install fastcluster",
             44_000, _fastcluster),
        Peer("SciPy linkage", *_SCIPY, 5000, _scipy_linkage),
    ),
}  # fmt: skip
"""Programs that can be timed beside this one, by system."""

_USUAL_KINDS = {"clue": ("calorimeter",), "events": events.KINDS, "hca": ("gaussian", "cytometry")}


# --------------------------------------------------------------------------------------------------------------- timing
def bench_peers(
    system: str,
    sizes: Sequence[int],
    *,
    kinds: Sequence[str] | None = None,
    min_samples: int = 10,
    threads: int = 0,
    repeats: int = 3,
) -> dict[str, Any]:
    """Time installed programs that answer the same question, on the CPU, in turn with this one.

    Parameters
    ----------
    system : {"clue", "events", "dbscan", "fof", "hca"}
        Whose peers, see `PEERS`.
    sizes : sequence of int
        Numbers of points. A program that is too slow for one is given fewer, as many as it can do.
    kinds : sequence of str, optional
        Points, as of the system's benchmark; all of them by default. Those of ``"apriori"`` have no peer.
    min_samples : int, default 10
        For ``"dbscan"``.
    threads : int, default 0
        For this program and for those that can be told; 0: as numba has it.
    repeats : int, default 3
        Pairs of runs after a warm-up of both; medians are reported.

    Returns
    -------
    dict
        ``timed``: for each program, kind and number of points its name and version, ``asked``, the points that it
        should have had, ``ms``, ``ours_ms``, ``ratio``, the median of their time over ours, pair by pair, and
        ``agrees``: whether the answers are the same (labels up to names; of rustpix the number of clusters; of
        hierarchies, here those of Euclidean distances on both sides, the heights). ``missing``: names of those
        that are not installed, and how they are.

    Raises
    ------
    ValueError
        For unknown systems and kinds.
    """
    import numba

    if system not in PEERS:
        raise ValueError(f"systems with peers are {', '.join(PEERS)}, got {system!r}")
    known = _USUAL_KINDS.get(system, dbscan.KINDS)
    kinds = known if kinds is None else [kind for kind in kinds if kind != "apriori"]
    check_kinds(kinds, known)
    missing = [{"name": peer.name, "install": peer.install} for peer in PEERS[system] if not _is_there(peer)]
    number, timed = threads or int(numba.get_num_threads()), []
    with kernel_threads(number):
        for peer in filter(_is_there, PEERS[system]):
            module = importlib.import_module(peer.module)
            what = {"name": peer.name, "version": _version(peer), "threads": number}
            for kind in kinds:
                for points, asked in {min(size, peer.most): size for size in sorted(sizes)}.items():
                    with _task(system, kind, points, min_samples, number) as task:
                        found = _in_turn(peer.duel(module, task), repeats)
                    timed.append({**what, "kind": kind, "points": points, "asked": asked, **found})
    return {"timed": timed, "missing": missing}


def _is_there(peer: Peer) -> bool:
    return importlib.util.find_spec(peer.module) is not None


def _version(peer: Peer) -> str:
    try:
        return importlib.metadata.version(peer.package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@contextmanager
def _task(system: str, kind: str, points: int, min_samples: int, threads: int) -> Iterator[Task]:
    """Make the points of a task; a file of them is there as long as this is open."""
    least = min_samples if system == "dbscan" else None
    with tempfile.TemporaryDirectory() as folder:
        data: Any
        if system == "clue":
            data = clue.points_of(points)
        elif system == "events":
            path = Path(folder, "hits.tpx3")
            events.write_file(path, kind, points)
            data = events.read_file(path), path
        elif system == "hca":
            data = hca.points_of(kind, points)
        else:
            data = dbscan.points_of(kind, points)
        yield Task(kind, data, least, threads)


def _in_turn(duel: Duel, repeats: int) -> dict[str, Any]:
    """Time both by turns, after a warm-up whose answers are compared."""
    agrees = duel.agree(duel.ours(), duel.theirs())
    pairs = [(seconds_of(duel.ours), seconds_of(duel.theirs)) for _ in range(repeats)]
    return {
        "ms": statistics.median(theirs for _, theirs in pairs) * 1e3,
        "ours_ms": statistics.median(ours for ours, _ in pairs) * 1e3,
        "ratio": statistics.median(theirs / ours for ours, theirs in pairs),
        "agrees": bool(agrees),
    }


def markdown(peers: dict[str, Any]) -> str:
    """Return times beside those of other programs as a Markdown table, and what is not installed below it."""
    head = ("program", "points of", "points", "threads", "its time (ms)", "ours (ms)", "times ours", "same answer")
    rows = [
        (
            f"{run['name']} {run['version']}",
            run["kind"],
            f"{run['points']:,}" + (f" (of {run['asked']:,})" if run["points"] < run["asked"] else ""),
            run["threads"],
            f"{run['ms']:.1f}",
            f"{run['ours_ms']:.1f}",
            f"{run['ratio']:.1f}",
            "yes" if run["agrees"] else "no",
        )
        for run in peers["timed"]
    ]
    parts = [table(head, rows, words=2)] if rows else []
    if any(run["points"] < run["asked"] for run in peers["timed"]):
        parts.append("Fewer points than asked for: more would take that program too long.")
    if peers["missing"]:
        names = "; ".join(f"{peer['name']} ({peer['install']})" for peer in peers["missing"])
        parts.append(f"Not installed, so not timed: {names}.")
    return "\n\n".join(parts)
