"""Other programs that answer the same questions, timed on the same points, in turn with this one.

They are looked for, not required. ArborX has no Python interface. Where edges are equally long, programs for HDBSCAN*
differ in the clusters that they make of their hierarchies: so those of this one are made of each, and compared.
"""

import importlib.metadata
import importlib.util
import operator
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from bench.cases import Case
from bench.cases.clue import DC, DELTA, RHOC
from bench.cases.events import DT_MAX
from bench.cases.hdbscan import MIN_CLUSTER_SIZE
from bench.timing import kernel_threads, seconds_of
from daskclust import MahalanobisHCA
from daskclust.core.merge.labels import same_partition
from daskclust.hdbscan.condensed import Selection, condensed_tree, labels_of, walk_down
from daskclust.hdbscan.spanning_tree import spanning_tree

TICK = 1.5625  # ns


class Peer(NamedTuple):
    """Another program."""

    name: str
    package: str
    module: str
    most: int  # points that it is given: more take it too long, or more memory than machines have
    theirs: Callable[[Any, Case, int], Callable[[], Any]]  # of the module, for a case on a number of threads
    agree: Callable[[Any, Any], bool]  # whether both answers are the same
    ours: Callable[[Case], Any] = lambda case: getattr(case.fit(*case.arrays), case.result)


def _cluestering(module, case, _threads):
    X, layer, weight = case.arrays
    batches = np.bincount(layer)
    batches = batches[batches > 0].astype(np.uint32)

    def theirs():
        found = module.clusterer(DC, RHOC, DELTA, DELTA)
        found.choose_kernel("flat", [1.0])  # the paper's: 1 for each neighbour
        found.read_data([X[:, 0], X[:, 1], weight])
        found.run_clue(batch_sample_sizes=batches)
        return np.asarray(found.cluster_ids)

    return theirs


def _rustpix(module, case, _threads):
    """Both go from a file to a table; only the number of clusters is compared."""
    clustering = module.ClusteringConfig(radius=1.5, temporal_window_ns=DT_MAX, min_cluster_size=1)
    extraction = module.ExtractionConfig(super_resolution_factor=1.0, weighted_by_tot=True, min_tot_threshold=0)
    options = {"algorithm": "grid", "collect": True, "clustering_config": clustering, "extraction_config": extraction}
    return lambda: int(module.process_tpx3_neutrons(str(case.file), **options).len())


def _dbscan_of_hits(module, case, threads):
    """Hits touch, and are not more than dt_max apart: a ball of the maximum norm, in ticks along all axes."""
    reach = DT_MAX / TICK
    x, y, toa = case.arrays
    points = np.stack([x * reach, y * reach, toa / TICK], axis=1)
    other = module.DBSCAN(eps=reach, min_samples=1, metric="chebyshev", algorithm="kd_tree", n_jobs=threads)
    return lambda: other.fit(points).labels_


def _dbscan_of_points(module, case, threads):
    facts = case.facts
    other = module.DBSCAN(eps=facts["eps"], min_samples=facts["min_samples"], algorithm="kd_tree", n_jobs=threads)
    return lambda: other.fit(*case.arrays).labels_


def _pairs_and_components(_module, case, _threads):
    (X,), n = case.arrays, len(case.arrays[0])

    def theirs():
        pairs = cKDTree(X).query_pairs(case.facts["eps"], output_type="ndarray")
        graph = coo_matrix((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        return np.asarray(connected_components(graph, directed=False)[1])

    return theirs


def _hfof(module, case, _threads):
    X = case.arrays[0].astype(np.float64)  # it takes no other
    find = module.fof if X.shape[1] == 3 else module.fof2d
    return lambda: np.asarray(find(X, case.facts["eps"]))


def _same_groups(ours, theirs):
    """Compare with labels where those who are alone have one, too."""
    alone = np.bincount(theirs)[theirs] == 1
    return same_partition(ours, np.where(alone, -1, theirs))


def _linkage(module, case, _threads):
    X = case.arrays[0].astype(np.float64)
    linkage = getattr(module, "linkage_vector", None) or module.linkage
    return lambda: linkage(X, method="centroid")


def _euclidean(case):
    """Return our hierarchy, Euclidean below a threshold of all points, so that the question is the same."""
    X = case.arrays[0].astype(np.float64)
    return MahalanobisHCA(len(X)).fit(X).linkage_


def _same_heights(ours, theirs):
    return np.allclose(ours[:, 2], theirs[:, 2], rtol=1e-9)


def _quitefastmst(module, case, threads):
    """Its M does not count the point itself; with 0 it does not return core distances."""
    module.omp_set_num_threads(threads)
    return lambda: module.mst_euclid(*case.arrays, M=case.facts.get("min_samples", 1) - 1)[0]


def _lengths(case):
    return np.sqrt(spanning_tree(*case.arrays, case.facts["min_samples"]).weight)


def _same_lengths(ours, theirs):
    return np.allclose(ours, theirs, rtol=1e-12, atol=0)


def _scikit_learn_hdbscan(module, case, threads):
    other = module.HDBSCAN(MIN_CLUSTER_SIZE, min_samples=case.facts["min_samples"], n_jobs=threads, copy=True)
    columns = ("left_node", "right_node", "value", "cluster_size")

    def theirs():
        tree = other.fit(*case.arrays)._single_linkage_tree_
        return np.stack([tree[name].astype(np.float64) for name in columns], axis=1)

    return theirs


def _hdbscan(module, case, threads):
    """Its `min_samples` does not count the point itself, nor does that of fast_hdbscan; its tree is to be exact."""
    samples = max(case.facts["min_samples"] - 1, 1)
    how = {"min_samples": samples, "core_dist_n_jobs": threads, "approx_min_span_tree": False}
    other = module.HDBSCAN(MIN_CLUSTER_SIZE, **how)

    def theirs():
        return other.fit(*case.arrays).single_linkage_tree_.to_numpy()

    return theirs


def _fast_hdbscan(module, case, _threads):
    samples = max(case.facts["min_samples"] - 1, 1)
    other = module.HDBSCAN(min_cluster_size=MIN_CLUSTER_SIZE, min_samples=samples)
    return lambda: np.asarray(other.fit(*case.arrays)._single_linkage_tree, np.float64)


def _same_clusters(ours, theirs):
    """Compare with the labels that this program makes of their hierarchy."""
    tree = condensed_tree(walk_down(theirs), MIN_CLUSTER_SIZE)
    return np.array_equal(ours, labels_of(tree, Selection())["labels"])


_SCIKIT_LEARN = ("scikit-learn DBSCAN", "scikit-learn", "sklearn.cluster")
_RUSTPIX = (_rustpix, operator.eq, lambda case: len(case.calls["total"]()["size"]))
_HIERARCHY = (_linkage, _same_heights, _euclidean)
_COMPONENTS = (_pairs_and_components, _same_groups)
_TREE = Peer("quitefastmst", "quitefastmst", "quitefastmst", 10**7, _quitefastmst, _same_lengths)
PEERS = {
    "clue": [Peer("CLUEstering, serial", "CLUEstering", "CLUEstering", 10**6, _cluestering, same_partition)],
    "events": [
        Peer("rustpix grid, file to table", "rustpix", "rustpix", 4 * 10**6, *_RUSTPIX),
        Peer(*_SCIKIT_LEARN, 10**5, _dbscan_of_hits, same_partition),
    ],
    "dbscan": [Peer(*_SCIKIT_LEARN, 2 * 10**5, _dbscan_of_points, np.array_equal)],
    "fof": [
        Peer("hfof", "hfof", "hfof", 10**7, _hfof, _same_groups),
        Peer("SciPy cKDTree pairs, connected components", "scipy", "scipy.spatial", 2 * 10**5, *_COMPONENTS),
    ],
    "emst": [_TREE],
    "hdbscan": [
        _TREE._replace(ours=_lengths),
        Peer("fast_hdbscan", "fast_hdbscan", "fast_hdbscan", 2 * 10**5, _fast_hdbscan, _same_clusters),
        Peer("hdbscan", "hdbscan", "hdbscan", 2 * 10**5, _hdbscan, _same_clusters),
        Peer(
            "scikit-learn HDBSCAN", "scikit-learn", "sklearn.cluster", 5 * 10**4, _scikit_learn_hdbscan, _same_clusters
        ),
    ],
    "hca": [
        Peer("fastcluster linkage_vector", "fastcluster", "fastcluster", 44_000, *_HIERARCHY),
        Peer("SciPy linkage", "scipy", "scipy.cluster.hierarchy", 5000, *_HIERARCHY),
    ],
}
"""Programs that can be timed beside this one, by system."""


def bench_peers(name, system, options):
    """Time installed programs that answer the same question, on the CPU, in turn with this one.

    A program that is too slow for a size is given as many points as it can do. Of several ``min_samples`` the first
    counts, of numbers of threads the largest. The result has ``timed``, see `_timed`, and ``missing``: the programs
    that are not installed.
    """
    there = [peer for peer in PEERS[name] if importlib.util.find_spec(peer.module.split(".")[0]) is not None]
    missing = [{"name": peer.name} for peer in PEERS[name] if peer not in there]
    threads = max(number or numba.get_num_threads() for number in options.threads)
    kinds = [kind for kind in options.kinds if kind != "apriori"]  # which no other program has
    options = replace(options, min_samples=options.min_samples[:1])
    with kernel_threads(threads):
        timed = [run for peer in there for kind in kinds for run in _timed(peer, system, kind, threads, options)]
    return {"timed": timed, "missing": missing}


def _timed(peer, system, kind, threads, options):
    """Yield, for each number of points, ``asked``, the points that the program should have had, and times of both."""
    module = importlib.import_module(peer.module)
    version = importlib.metadata.version(peer.package)
    for points, asked in {min(size, peer.most): size for size in sorted(options.sizes)}.items():
        for case in system.cases(kind, points, options):
            ours, theirs = partial(peer.ours, case), peer.theirs(module, case, threads)
            what = {"name": peer.name, "version": version, "threads": threads, "kind": kind, "points": points}
            with redirect_stdout(sys.stderr):  # some say that they are there, and the report is on standard output
                found = in_turn(ours, theirs, peer.agree, min(options.repeats, 3))
            yield what | {"asked": asked, **found}


def in_turn(ours, theirs, agree, repeats):
    """Time both by turns, after a warm-up whose answers are compared; ``ratio`` is theirs over ours, pair by pair."""
    agrees = agree(ours(), theirs())
    ours_s, theirs_s = np.array([(seconds_of(ours), seconds_of(theirs)) for _ in range(repeats)]).T
    times = {"ms": theirs_s * 1e3, "ours_ms": ours_s * 1e3, "ratio": theirs_s / ours_s}
    return {name: float(np.median(values)) for name, values in times.items()} | {"agrees": bool(agrees)}
