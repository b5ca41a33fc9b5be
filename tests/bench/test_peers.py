"""Other programs beside this one: what is compared is right, how fast is not asked."""

from __future__ import annotations

import importlib.util
import operator
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from daskclust import CLUE, EventBuilder, FriendsOfFriends
from daskclust.bench import SYSTEMS, Options, options_of, peers
from daskclust.bench.peers import PEERS
from daskclust.bench.report import peer_tables
from daskclust.datasets import timepix

COLUMNS = {"name", "version", "kind", "points", "asked", "threads", "ms", "ours_ms", "ratio", "agrees"}


def timed(name, *sizes, **given):
    """Return what is timed, and what is missing."""
    options = options_of(name, {"sizes": sizes, "repeats": 1, **given})
    return peers.bench_peers(name, SYSTEMS[name], options).values()


def without(monkeypatch, *names):
    """Let programs not be there."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else find(name))


def with_module(monkeypatch, name, **functions):
    """Let a program be there that has these functions."""
    module = SimpleNamespace(**functions, __spec__=True)  # which is what find_spec returns
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("system", "name", "kinds"),
    [
        ("events", "scikit-learn DBSCAN", ["gamma", "lead"]),
        ("dbscan", "scikit-learn DBSCAN", ["cosmo", "ss2d", "ss3d", "uniform2d"]),
        ("fof", "SciPy cKDTree pairs, connected components", ["cosmo", "ss2d"]),
        ("hca", "SciPy linkage", ["gaussian", "cytometry"]),
        ("hca", "fastcluster linkage_vector", ["cytometry"]),
    ],
)
def test_installed_programs_give_the_same_answers(system, name, kinds):
    if name.startswith("fastcluster"):
        pytest.importorskip("fastcluster")
    before = numba.get_num_threads()
    runs, _ = timed(system, 600, 300, kinds=kinds, min_samples=(5, 7), threads=(1,))
    assert numba.get_num_threads() == before
    mine = [run for run in runs if run["name"] == name]
    assert [(run["kind"], run["points"]) for run in mine] == [(kind, n) for kind in kinds for n in (300, 600)]
    for run in mine:
        assert set(run) == COLUMNS
        assert run["agrees"] is True
        assert (run["asked"], run["threads"]) == (run["points"], 1)
        assert run["version"][0].isdigit()
        assert run["ratio"] == run["ms"] / run["ours_ms"]  # of one pair of runs


def test_another_answer_is_told(monkeypatch):
    wrong = SimpleNamespace(fit=lambda X: SimpleNamespace(labels_=np.zeros(len(X), np.int64)))
    monkeypatch.setattr("sklearn.cluster.DBSCAN", lambda **_: wrong)
    monkeypatch.setattr("scipy.cluster.hierarchy.linkage", lambda X, method: np.ones((len(X) - 1, 4)))
    runs, _ = timed("hca", 100, kinds=["cytometry"])
    assert [run["agrees"] for run in runs if run["name"] == "SciPy linkage"] == [False]
    (run,), _ = timed("dbscan", 300, kinds=["cosmo"])
    assert run["agrees"] is False
    assert peer_tables({"timed": [run], "missing": []})[0].splitlines()[-1].endswith("| no |")


def test_the_median_is_that_of_pairs(monkeypatch):
    times = iter([1.0, 10.0, 2.0, 4.0, 1.0, 6.0])
    monkeypatch.setattr(peers, "seconds_of", lambda _call: next(times))
    found = peers.in_turn(lambda: 1, lambda: 1, operator.eq, 3)
    assert found == {"ms": 6000.0, "ours_ms": 1000.0, "ratio": 6.0, "agrees": True}


def test_slow_programs_are_given_fewer_points(monkeypatch):
    slow = PEERS["dbscan"][0]._replace(most=250)
    monkeypatch.setitem(peers.PEERS, "dbscan", (slow,))
    runs, _ = timed("dbscan", 200, 300, 400, kinds=["cosmo"])
    assert [(run["points"], run["asked"]) for run in runs] == [(200, 200), (250, 400)]
    table, fewer = peer_tables({"timed": runs, "missing": []})
    assert "| 250 (of 400) |" in table
    assert "Fewer points than asked for" in fewer


def test_what_is_not_installed_is_named(monkeypatch):
    without(monkeypatch, "fastcluster", "scipy")
    runs, missing = timed("hca", 100)
    assert runs == []
    assert [peer["name"] for peer in missing] == ["fastcluster linkage_vector", "SciPy linkage"]
    (text,) = peer_tables({"timed": [], "missing": missing})
    assert text.startswith("Not installed, so not timed: fastcluster linkage_vector (pip install fastcluster);")


def test_apriori_clusters_have_no_peer():
    assert next(iter(timed("hca", 100, kinds=["apriori"]))) == []


# ------------------------------------------------------------------------------------------ programs that are not here
def test_cluestering(monkeypatch):
    """As its 2.11 is called: layers are batches, the flat kernel counts each neighbour once."""
    asked = {}

    class Clusterer:
        def __init__(self, *parameters):
            asked["parameters"] = parameters

        def choose_kernel(self, *kernel):
            asked["kernel"] = kernel

        def read_data(self, columns):
            self.columns = columns

        def run_clue(self, *, batch_sample_sizes):
            layer = np.repeat(np.arange(len(batch_sample_sizes)), batch_sample_sizes)
            x, y, weight = self.columns
            clue = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0)
            self.cluster_ids = clue.fit(np.stack([x, y], 1), layer=layer, sample_weight=weight).labels_

    with_module(monkeypatch, "CLUEstering", clusterer=Clusterer)
    (run,), _ = timed("clue", 20_000)
    assert run["agrees"] is True
    assert run["version"] == "unknown"
    assert asked == {"parameters": (3.0, 8.0, 5.0, 5.0), "kernel": ("flat", [1.0])}
    (case,) = SYSTEMS["clue"].cases("calorimeter", 20_000, Options())
    assert case.arrays[1].tolist() == sorted(case.arrays[1])  # batches are ranges of points


def test_rustpix(monkeypatch):
    """As its 1.4 is called: by a raw file, which must have triggers."""
    seen = []

    def process(path, *, algorithm, collect, clustering_config, extraction_config):
        from daskclust.io import open_tpx3, open_tpx3_triggers

        assert (algorithm, collect, clustering_config["temporal_window_ns"]) == ("grid", True, 200.0)
        seen.append(open_tpx3_triggers(path).sizes["trigger"])
        clusters = EventBuilder(200.0).fit(open_tpx3(path)).n_clusters_
        return SimpleNamespace(len=lambda: clusters)

    with_module(monkeypatch, "rustpix", process_tpx3_neutrons=process, ClusteringConfig=dict, ExtractionConfig=dict)
    runs, _ = timed("events", 3000, kinds=["gamma"])
    assert [run["agrees"] for run in runs if run["name"].startswith("rustpix")] == [True]
    assert min(seen) >= 1


@pytest.mark.parametrize("module", ["hfof", "pyfof"])
def test_programs_for_halos(monkeypatch, module):
    """One labels particles that are alone, the other lists members."""

    def fof(X, linking_length):
        label = FriendsOfFriends(linking_length).fit(X).labels_
        return np.where(label < 0, label.max() + 1 + np.arange(len(label)), label)

    def friends_of_friends(X, linking_length):
        label = fof(X, linking_length)
        return [np.flatnonzero(label == number) for number in np.unique(label)]

    with_module(monkeypatch, module, fof=fof, friends_of_friends=friends_of_friends)
    runs, _ = timed("fof", 500, kinds=["cosmo"])
    assert [run["agrees"] for run in runs if run["name"] == module] == [True]


def test_hits_of_a_maximum_norm_are_those_of_the_rule():
    """Times at exactly dt_max: in ticks they are whole numbers."""
    hits = timepix(2000, kind="gamma", rng=0)
    gaps = np.diff(np.sort(hits["toa"].values)) / peers._TICK
    assert (gaps == np.round(gaps)).all()
    assert peers.DT_MAX / peers._TICK == 128
