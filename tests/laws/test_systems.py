"""The laws of design.md section 6, for every run of every system of the registry and of the how-to pages."""

from __future__ import annotations

import pickle
from typing import Any

import dask
import numpy as np
import pytest
from cases.lanes import quick_first
from cases.steps import in_chunks
from laws.input_cases import TARGETS
from laws.registry import ENTRIES, RUNS, assert_same, computed, fit, sample_of
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskclust import FriendsOfFriends, machine, workers
from daskclust.app import systems as explorers
from daskclust.core.device import arrays
from daskclust.core.device.kernels import Kernel
from daskclust.core.merge.labels import same_partition
from daskclust.systems import SYSTEMS, Sample, System

N = 150
EXCEPTIONS = {
    name: {"check_all_zero_sample_weights_error": f"weights of zero have a right answer here: {answer}"}
    for name, answer in {"CLUE": "densities of zero", "DBSCAN": "no core points"}.items()
}
EXCEPTIONS["DBSCAN"]["check_sample_weight_equivalence_on_dense_data"] = (
    "clusters are the same, and numbered in the order of points, which it shuffles"
)
EXCEPTIONS["CLUE"]["check_sample_weight_equivalence_on_dense_data"] = (
    "numbers of clusters and ties follow the order of points, which it shuffles, and points of weight 0 are points"
)
WITHOUT_EXPLORER = {"showers"}  # they are of clusters, which are found before
every_run = pytest.mark.parametrize("name", RUNS)
every_system = pytest.mark.parametrize("system", ENTRIES, ids=str)


def of_points(sample: Sample, function: Any) -> Sample:
    """Return a sample with other points and the same columns."""
    return sample._replace(X=Sample(sample.X, {}).map(function).X)


def labels_or_error(name: str, sample: Sample, rows: tuple[int, ...] | None) -> list[int] | str:
    try:
        fitted = fit(name, sample if rows is None else sample.map(in_chunks(rows)))
        return np.asarray(fitted.labels_).tolist()
    except ValueError as error:
        return str(error)


def is_table(sample: Sample) -> bool:
    """Return whether points are named columns, of a detector."""
    return isinstance(sample.X, dict)


@every_run
@pytest.mark.parametrize("seed", quick_first([0, 3, 1, 2], 2))
def test_chunks_do_not_matter(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = N * int(rng.choice([1, 4]))
    sample, partitions = sample_of(name, n), ("", *RUNS[name][0].partitions)
    rows = tuple(np.diff([0, *np.sort(rng.integers(0, n, rng.integers(1, 30))), n]).tolist())  # some have none
    partition = partitions[seed % len(partitions)]
    how = {
        "daskclust.task-seconds": float(rng.choice([0, 1e-5, 3e-5, 0.5])),
        "daskclust.merge-width": int(rng.choice([2, 64])),
    }
    with dask.config.set(how):
        lazy = fit(name, sample.map(in_chunks(rows)), **({"partition": partition} if partition else {}))
        assert_same(computed(lazy), computed(fit(name, sample)))


@every_run
@pytest.mark.parametrize("n", quick_first([N, 90_000]))
def test_threads_do_not_matter(name: str, n: int, threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tasks of seven points, or as few as the kernel says; and of many points, as they are."""
    if n == N:
        run = Kernel.run
        monkeypatch.setattr(Kernel, "run", lambda kernel, n, *args, grain=7: run(kernel, n, *args, grain=min(grain, 7)))
    sample = sample_of(name, n // 40 if name.startswith("hca") else n)
    threads(1)
    wanted = computed(fit(name, sample))
    for _ in range(2):
        threads(2)
        assert_same(computed(fit(name, sample)), wanted)


@every_run
def test_memory_kept_for_the_next_call_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given back is filled with nonsense here: no result may be a part of it, nor need what it held before."""
    keep = arrays._keep

    def spoiled(memory: Any) -> None:
        memory.fill(0xA5)
        keep(memory)

    sample = sample_of(name, 4 * N)
    wanted = computed(fit(name, sample))
    monkeypatch.setattr(arrays, "_LEAST_KEPT", 1)
    monkeypatch.setattr(arrays, "_keep", spoiled)
    found = [fit(name, sample) for _ in range(2)]
    fit(name, sample_of(name, 3 * N))
    for fitted in found:
        assert_same(computed(fitted), wanted)
    fit(name, sample.map(in_chunks((N, 2 * N, N))))
    assert_same(computed(found[0]), wanted)
    arrays.HOST.forget_scratch()


@pytest.mark.parametrize("name", [name for name in RUNS if not name.startswith("clue")])
def test_order_renames(name: str) -> None:
    """Order decides where densities are equal, and those of CLUE often are: its own test has points without ties."""
    order = np.random.default_rng(1).permutation(N)
    before, after = (fit(name, sample_of(name).map(lambda values, by=by: values[by])) for by in (np.arange(N), order))
    assert same_partition(after.labels_, before.labels_[order])


@every_run
def test_labels_are_numbers_of_clusters(name: str) -> None:
    fitted = fit(name, sample_of(name))
    labels = np.unique(fitted.labels_)
    assert fitted.labels_.dtype == np.int64
    assert 1 < len(labels[labels >= 0]) < N
    np.testing.assert_array_equal(labels[labels >= 0], np.arange(labels.max() + 1))
    assert getattr(fitted, "n_clusters_", labels.max() + 1) == labels.max() + 1


@every_run
def test_one_point_and_none(name: str) -> None:
    """Of no points there are no labels, or an error that says so, as scikit-learn demands it of arrays of points."""
    one, none = sample_of(name, 1), sample_of(name).map(lambda values: values[:0])
    for rows in (None, (0, 1, 0)):
        found = labels_or_error(name, one, rows)
        assert found in ([0], [-1]) or "1 points have at most 1 clusters" in found
    for rows in (None, (0, 0)):
        found = labels_or_error(name, none, rows)
        assert found == [] if is_table(none) else "0 sample" in found


@every_run
def test_equal_points(name: str) -> None:
    """All have one label, noise if clusters must be larger; HCA cuts as many clusters as it is asked for."""
    sample = of_points(sample_of(name), lambda values: np.broadcast_to(values[:1], values.shape).copy())
    for column in sample.columns:
        sample.columns[column][:] = sample.columns[column][-1]
    wanted = fit(name, sample)
    lazy = fit(name, sample.map(in_chunks((40, 110))))
    assert_same(computed(lazy), computed(wanted))
    assert len(np.unique(wanted.labels_)) == getattr(wanted, "n_clusters", 1)


@every_run
@pytest.mark.parametrize("rows", [None, (60, 90)], ids=["memory", "dask"])
def test_a_point_that_is_no_number_is_named(name: str, rows: tuple[int, ...] | None) -> None:
    """The row is that of the whole data set, whichever chunk finds it; on dask the error comes with the labels."""
    partitions = ("",) if rows is None else ("", *RUNS[name][0].partitions)
    for value, partition in ((value, each) for value in (np.nan, np.inf) for each in partitions):

        def spoiled(values: np.ndarray, value: float = value) -> np.ndarray:
            values = values.copy()
            if values.dtype.kind == "f":
                values[100] = value
            return values

        sample = of_points(sample_of(name), spoiled)
        given = sample if rows is None else sample.map(in_chunks(rows))
        how = {"partition": partition} if partition else {}
        with pytest.raises(ValueError, match=rf"\[100(, 0)?\] = {value}|{'NaN' if np.isnan(value) else 'infinity'}"):
            np.asarray(fit(name, given, **how).labels_)


def arrays_of(sample: Sample) -> list[np.ndarray]:
    return [*(sample.X.values() if is_table(sample) else [sample.X]), *sample.columns.values()]


@every_run
def test_fits_are_repeated_copied_and_sent(name: str) -> None:
    sample = sample_of(name)
    fitted = fit(name, sample)
    wanted, parameters = computed(fitted), fitted.get_params()
    for found, array in zip(arrays_of(sample), arrays_of(sample_of(name)), strict=True):
        np.testing.assert_array_equal(found, array)  # the input stays as it is
    assert_same(computed(pickle.loads(pickle.dumps(fitted))), wanted)
    assert_same(computed(fit(name, sample)), wanted)
    assert clone(fitted).get_params() == parameters
    assert {key: parameters[key] for key in RUNS[name][1].parameters} == RUNS[name][1].parameters
    np.testing.assert_array_equal(clone(fitted).fit_predict(sample.X, **sample.columns), wanted["labels_"])


@pytest.mark.slow
@parametrize_with_checks(
    [
        *(system.estimator(**system.runs[0].parameters) for system in ENTRIES if system.any_columns),
        FriendsOfFriends(b=0.1, boxsize=1000.0),
    ],
    expected_failed_checks=lambda estimator: EXCEPTIONS.get(type(estimator).__name__, {}),
)
def test_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@every_system
def test_every_name_of_an_entry_exists(system: System) -> None:
    assert system.estimator.__name__ == system.estimator_at.split(":")[1]
    if system.explorer_at is not None:
        assert system.explorer.name == system.name
        assert system.explorer.title == system.title


def test_entries_are_all_that_others_list() -> None:
    assert tuple(SYSTEMS) == workers.SYSTEMS
    assert tuple(explorers.SYSTEMS) == tuple(name for name in SYSTEMS if name not in WITHOUT_EXPLORER)
    assert tuple(machine.describe()["systems"]) == tuple(SYSTEMS)
    assert {call.split()[0].rstrip(",") for call in TARGETS} >= {
        system.estimator.__name__ for system in SYSTEMS.values()
    }
