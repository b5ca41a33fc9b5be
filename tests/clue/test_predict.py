"""New points take the label of the nearest higher point of the fit."""

import pickle

import awkward as ak
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from cases.clue import Case, cases, is_dyadic, raise_if_dask_computes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import brute

from daskclust import CLUE

RNG = np.random.default_rng(7)
X, NEW = RNG.normal(0, 2, (500, 2)), RNG.normal(0, 3, (300, 2))


def answer(case: Case, clue: CLUE, new: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return what brute force says of new points, which have the columns of `rows` of the fit."""
    columns = {name: [values, values[rows]] for name, values in case.columns.items()}
    groups = [np.concatenate(columns[name]) for name in ("layer", "event") if name in columns]
    lengths = {name: np.broadcast_to(one, len(case.X))[rows] for name, one in case.lengths.items()}
    weight = case.columns.get("sample_weight", np.ones(len(case.X)))
    factor = case.others.get("neighbor_weight", 1.0)
    return brute.clue_labels_of_new(
        case.X, new, clue.density_, clue.labels_, weight, factor, groups, case.others.get("wrap"), **lengths
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), seed=st.integers(0, 10**6))
def test_predict_is_brute_force(case, seed):
    """Where sums are exact; and points of the fit keep their labels, where they are not, too."""
    rng = np.random.default_rng(seed)
    clue, rows = case.fit(), rng.integers(0, len(case.X), 40)
    of_points = [value for value in (case.dc, *case.others.values()) if isinstance(value, np.ndarray)]
    columns = {name: values for name, values in case.columns.items() if name != "sample_weight"}
    if of_points:
        with pytest.raises(ValueError, match="has a length for each point of the fit"):
            clue.predict(case.X, **columns)
        return
    np.testing.assert_array_equal(clue.predict(case.X, **columns), clue.labels_)
    if is_dyadic(case.columns.get("sample_weight")):
        new = (case.X[rows] + rng.integers(-3, 4, (40, case.X.shape[1])) / 4).astype(case.X.dtype)
        found = clue.predict(new, **{name: values[rows] for name, values in columns.items()})
        np.testing.assert_array_equal(found, answer(case, clue, new, rows))


@pytest.mark.parametrize("kernel", ["flat", "exponential"])
def test_predict_on_dask_is_that_in_memory(kernel):
    clue, layers = CLUE(0.5, 3.0, delta_o=1.0, kernel=kernel), (X[:, 0] > 0).astype(int)
    weight, layer = RNG.exponential(1.0, len(X)), (NEW[:, 0] > 0).astype(int)
    expected = clue.fit(X, layer=layers, sample_weight=weight).predict(NEW, layer=layer)
    assert len(set(expected.tolist())) > 5
    for fitted in (X, da.from_array(X, chunks=(130, 2))):
        model = pickle.loads(pickle.dumps(clue.fit(fitted, layer=layers, sample_weight=weight)))
        for new in (NEW, da.from_array(NEW, chunks=((1, 199, 0, 100), 2))):
            with raise_if_dask_computes():
                labels = model.predict(new, layer=layer)
            assert isinstance(labels, np.ndarray if fitted is X and new is NEW else da.Array)
            np.testing.assert_array_equal(np.asarray(labels), expected)


def test_columns_of_new_points_are_as_those_of_the_fit():
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "layer": 1, "z": 1.0, "energy": 1.0, "reach": 0.5})
    clue = CLUE("reach", 3.0, delta_c={1: 0.5}).fit(frame)
    np.testing.assert_array_equal(clue.predict(frame), clue.labels_)
    assert (clue.predict(frame.assign(z=-1.0)) == -1).all()  # the other endcap, where the fit has no points
    assert (clue.predict(frame.assign(layer=2), section=frame["layer"]) == -1).all()
    assert (clue.predict(frame.assign(reach=50.0, x=X[:, 0] + 20.0)) == -1).all()
    both = CLUE("reach", 3.0).fit(pd.concat([frame, frame.assign(z=-1.0)]))
    np.testing.assert_array_equal(both.predict(frame.assign(z=-1.0)), both.labels_[len(X) :])
    with pytest.raises(ValueError, match=r"the fit have \['layer', 'z'\], and new ones \['layer'\]"):
        clue.predict(frame.drop(columns="z"))
    again = clue.rethreshold(rhoc=1e9)
    assert (again.predict(frame) == -1).all()
    lists = ak.unflatten(ak.Array({"x": X[:, 0], "y": X[:, 1]}), [300, 0, 200])
    events = CLUE(0.5, 3.0).fit(lists)
    assert ak.array_equal(events.predict(lists), events.labels_)
    with pytest.raises(ValueError, match=r"the fit have \['event'\], and new ones no layer"):
        events.predict(X)
    with pytest.raises(ValueError, match=r"X\[1, 0\] = inf"):
        CLUE(0.5, 3.0).fit(X).predict([[0.0, 0.0], [np.inf, 0.0]])
