"""The authors' 2020 program: density, nearest higher, seeds and labels of every reference file, however computed."""

import dask.array as da
import numpy as np
import pytest
from cases.clue import assert_same_results, results

from daskclust import CLUE
from daskclust.core.space.partition import Partition

NAMES = (
    *("aniso_1000_20_20_50_50", "circles_1000_20_20_90_12", "moons_1000_20_20_150_15"),
    *("sissa_1000_20_20_80_25", "sissa_4000_20_10_80_80", "sissa_4000_20_30_80_80"),
    *(f"toyDetector_{n}_{dc}_5_8" for n in (1000, 5000) for dc in ("3_5", "5_10")),
)


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


def chunked(parameters, X, columns, rows, partition):
    columns = {key: da.from_array(values, chunks=rows) for key, values in columns.items()}
    return CLUE(**parameters).fit(da.from_array(X, chunks=(rows, 2)), **columns, partition=partition)


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


def test_every_reference_file_is_listed(reference_files):
    assert {path.stem for path in reference_files.glob("*.csv")} == set(NAMES)


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_reference(reference_files, name, dtype):
    """In memory, in blocks, with given planes, and shuffled."""
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, dtype)
    assert_equals_reference(CLUE(**parameters).fit(X, **columns), table)
    planes = tuple(
        np.linspace(x.min(), x.max(), many + 2)[1:-1].astype(float) for x, many in zip(X.T, (2, 3), strict=True)
    )
    halo = 1.001 * (parameters["dc"] + max(parameters["delta_c"], parameters["delta_o"]))
    for partition in ("space", Partition(cuts=planes, period=(0.0, 0.0), halo=halo)):
        assert_equals_reference(chunked(parameters, X, columns, -(-len(X) // 5), partition), table)
    order = np.random.default_rng(7).permutation(len(X))
    X, columns = X[order], {key: values[order] for key, values in columns.items()}
    wanted = CLUE(**parameters).fit(X, **columns)
    assert_same_results(chunked(parameters, X, columns, 300, "space"), wanted)
