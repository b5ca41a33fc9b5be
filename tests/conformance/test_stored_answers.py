"""Other programs' answers on inputs of ours, kept in `tests/data`: CLUE by its authors, and rustpix on raw files."""

from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from daskclust import CLUE, EventBuilder
from daskclust.io import open_tpx3

DATA = Path(__file__).parents[1] / "data"
CLUE_FILES = sorted((DATA / "cluestering").glob("*.csv"))
RUSTPIX_FILES = sorted((DATA / "rustpix").glob("*.csv"))


def test_there_are_stored_answers():
    assert (len(CLUE_FILES), len(RUSTPIX_FILES)) == (2, 2)


@pytest.mark.parametrize("path", CLUE_FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clue_of_its_authors(path, dtype):
    """Their program asks for a seed farther than dc from the nearest higher, for an outlier beyond factor * dc."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    X = np.stack([table[name] for name in table.dtype.names if name.startswith("x")], axis=1).astype(dtype)
    dc, rhoc, factor = (float(part) for part in path.stem.split("_")[1:])
    clue = CLUE(dc, rhoc, delta_c=dc, delta_o=factor * dc, neighbor_weight=0.5)
    weight = table["weight"].astype(dtype)
    for points, weights in ((X, weight), (da.from_array(X, chunks=(70, -1)), da.from_array(weight, chunks=70))):
        fitted = clue.fit(points, sample_weight=weights)
        np.testing.assert_array_equal(np.asarray(fitted.labels_), table["label"])
        np.testing.assert_array_equal(np.asarray(fitted.is_seed_), table["is_seed"] == 1)


@pytest.mark.parametrize("path", RUSTPIX_FILES, ids=lambda path: path.stem)
def test_events_of_rustpix(path):
    """Pixels that touch, and hits not more than 100 ns apart; rustpix gives hits in the order of time, as we do."""
    theirs = np.genfromtxt(path, delimiter=",", names=True)
    hits = open_tpx3(path.with_suffix(".tpx3"))
    for name in ("x", "y"):
        np.testing.assert_array_equal(hits[name], theirs[name])
    np.testing.assert_array_equal(hits["tot"] / 25, theirs["tot"])
    np.testing.assert_array_equal(by_first(EventBuilder(100.0).fit(hits).labels_), by_first(theirs["cluster_id"]))


def by_first(labels):
    """Return clusters named by their first hit."""
    _, first, cluster = np.unique(labels, return_index=True, return_inverse=True)
    return first[cluster]
