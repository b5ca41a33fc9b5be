"""Other programs beside this one: what is compared is right, how fast is not asked."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

from bench import peers
from bench.report import peer_tables
from bench.runner import SYSTEMS, options_of


def timed(name, *sizes, **given):
    """Return what is timed, and what is missing."""
    options = options_of(name, {"sizes": sizes, "repeats": 1, **given})
    return peers.bench_peers(name, SYSTEMS[name], options).values()


@pytest.mark.parametrize("system", SYSTEMS)
def test_installed_programs_give_the_same_answers(system):
    before = numba.get_num_threads()
    runs, missing = timed(system, 600, 300, min_samples=(5, 7), threads=(1,))
    assert numba.get_num_threads() == before
    assert len({run["name"] for run in runs}) + len(missing) == len(peers.PEERS[system])
    kinds = [kind for kind in SYSTEMS[system].kinds if kind != "apriori"]  # which no other program has
    for name in {run["name"] for run in runs}:
        mine = [run for run in runs if run["name"] == name]
        assert [(run["kind"], run["points"]) for run in mine] == [(kind, n) for kind in kinds for n in (300, 600)]
    for run in runs:
        assert run["agrees"] is True
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
