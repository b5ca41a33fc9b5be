"""The authors' 2020 program: density, nearest higher, seeds and labels of every reference file, however computed."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from cases.clue import RESULTS, assert_same_results, results

from daskclust import CLUE
from daskclust.core.space.partition import Partition

# clusters and noise points of each file, as counted from the program's output
COUNTS = {
    "aniso_1000_20_20_50_50": (3, 106),
    "circles_1000_20_20_90_12": (11, 59),
    "moons_1000_20_20_150_15": (2, 59),
    "sissa_1000_20_20_80_25": (5, 139),
    "sissa_4000_20_10_80_80": (5, 911),
    "sissa_4000_20_30_80_80": (5, 499),
    "toyDetector_1000_3_5_5_8": (41, 590),
    "toyDetector_1000_5_10_5_8": (94, 35),
    "toyDetector_5000_3_5_5_8": (204, 2250),
    "toyDetector_5000_5_10_5_8": (364, 105),
}


def load(folder, name):
    """Return the table of a reference file and its parameters."""
    with open(folder / f"{name}.csv") as lines:
        names = next(lines).strip().split(",")
        columns = dict(zip(names, np.loadtxt(lines, delimiter=",").T, strict=True))
    dc, delta_o, delta_c, rhoc = (float(part) for part in name.split("_")[-4:])
    return columns, {"dc": dc, "rhoc": rhoc, "delta_c": delta_c, "delta_o": delta_o}


def inputs(table, dtype):
    X = np.stack([table["x"], table["y"]], axis=1).astype(dtype)
    return X, {"layer": table["layer"].astype(np.int32), "sample_weight": table["weight"].astype(dtype)}


def assert_equals_reference(clue, table):
    got = results(clue)
    np.testing.assert_array_equal(got["density"], table["rho"])
    np.testing.assert_array_equal(got["nearest_higher"], table["nh"])
    np.testing.assert_array_equal(got["is_seed"], table["isSeed"] == 1)
    np.testing.assert_array_equal(got["labels"], table["clusterId"])
    printed = np.where(table["nh"] < 0, np.inf, table["delta"])  # the program writes 999 for infinity, six digits else
    # it computes in float32: in float64 distances differ by the rounding of its coordinates, and no answer does
    rounding = 0.0 if got["delta"].dtype == np.float32 else 4 * np.spacing(np.float32(abs(table["x"]).max()))
    np.testing.assert_allclose(got["delta"], printed, rtol=5e-6, atol=rounding)


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize("name", COUNTS)
def test_in_memory(reference_files, name, dtype):
    assert {path.stem for path in reference_files.glob("*.csv")} == set(COUNTS)
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, dtype)
    clue = CLUE(**parameters).fit(X, **columns)
    assert_equals_reference(clue, table)
    assert (clue.n_clusters_, np.sum(clue.labels_ == -1)) == COUNTS[name]


@pytest.mark.parametrize("name", COUNTS)
def test_by_blocks_of_space(reference_files, name):
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, np.float64)
    rows = -(-len(X) // 5)
    chunks = {key: da.from_array(values, chunks=rows) for key, values in columns.items()}
    clue = CLUE(**parameters).fit(da.from_array(X, chunks=(rows, 2)), **chunks, partition="space")
    assert_equals_reference(clue, table)


@pytest.mark.parametrize(("name", "cuts"), [("toyDetector_5000_5_10_5_8", (2, 3)), ("sissa_1000_20_20_80_25", (0, 4))])
def test_by_given_planes(reference_files, name, cuts):
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, np.float64)
    planes = tuple(
        np.linspace(x.min(), x.max(), many + 2)[1:-1].astype(float) for x, many in zip(X.T, cuts, strict=True)
    )
    halo = 1.001 * (parameters["dc"] + max(parameters["delta_c"], parameters["delta_o"]))
    chunks = {key: da.from_array(values, chunks=700) for key, values in columns.items()}
    partition = Partition(cuts=planes, period=(0.0, 0.0), halo=halo)
    clue = CLUE(**parameters).fit(da.from_array(X, chunks=(700, 2)), **chunks, partition=partition)
    assert_equals_reference(clue, table)


@pytest.mark.parametrize("name", ["toyDetector_1000_5_10_5_8", "circles_1000_20_20_90_12"])
def test_shuffled_on_dask_equals_shuffled_in_memory(reference_files, name):
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, np.float64)
    order = np.random.default_rng(7).permutation(len(X))
    X, columns = X[order], {key: values[order] for key, values in columns.items()}
    wanted = CLUE(**parameters).fit(X, **columns)
    chunks = {key: da.from_array(values, chunks=300) for key, values in columns.items()}
    got = CLUE(**parameters).fit(da.from_array(X, chunks=(300, 2)), **chunks, partition="space")
    assert_same_results(got, wanted)
    assert all(len(results(got)[key]) == len(X) for key in RESULTS)
