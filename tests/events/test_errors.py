"""What event building refuses."""

import numpy as np
import pandas as pd
import pytest
from cases.events import HITS, VARIANTS, Case, assert_labels, lazy

from daskclust import EventBuilder
from daskclust.core.space.partition import Partition


def with_value(name, row, value):
    values = HITS[name].astype(float)
    values[row] = value
    return {**HITS, name: values}


@pytest.mark.parametrize("make", [dict, lazy], ids=["memory", "dask"])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("x", 1.5, r"x must be whole numbers, got float64; .*: x\[47\] = 1\.5"),
        ("y", np.nan, r"y\[47\] = nan"),
        ("chip", 0.25, r"chip\[47\] = 0\.25"),
        ("x", 1e19, r"x\[47\] = 1e\+19"),
    ],
)
def test_values(make, name, value, words):
    with pytest.raises(ValueError, match=words):
        np.asarray(EventBuilder(100.0).fit(make(with_value(name, 47, value))).labels_)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, lazy, lambda hits: Case(hits).dataset()])
def test_missing_columns(make):
    for name in ("x", "y", "toa"):
        hits = {key: values for key, values in HITS.items() if key != name}
        with pytest.raises(ValueError, match=rf"there is no column '{name}'; needed are x, y, toa, there are .*chip"):
            EventBuilder(100.0).fit(make(hits))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (np.zeros((5, 2)), ValueError, r"shape \(n, 3\): x, y, toa.*got \(5, 2\)"),
        ([1.0, 2.0, 3.0], ValueError, r"got \(3,\)"),
        (np.zeros(5), TypeError, "hits must be a Dataset.*ndarray"),
        ("run.tpx3", TypeError, "hits must be a Dataset.*str"),
        ({**HITS, "toa": HITS["toa"].astype(str)}, ValueError, "toa must be numbers, got dtype <U"),
        ({**HITS, "toa": HITS["toa"] + 0j}, ValueError, "Complex data not supported: toa is complex128"),
        ({**HITS, "x": HITS["x"] > 2}, ValueError, "x must be whole numbers, got bool"),
        ({**HITS, "toa": HITS["toa"][:, None]}, ValueError, r"toa must have one dimension, got shape \(90, 1\)"),
        ({**HITS, "y": np.zeros((90, 2), int)}, ValueError, r"y must have one value for each.*\(90, 2\)"),
    ],
)
def test_shapes_and_types(data, error, words):
    with pytest.raises(error, match=words):
        EventBuilder(100.0).fit(data)


@pytest.mark.parametrize("variant", VARIANTS)
def test_chunks_out_of_order(variant):
    """The last chunk too."""
    for order in ((1, 0), (0, 2, 1), (0, 1, 3, 2)):
        parts = np.array_split(np.arange(90), len(order))
        sizes = tuple(len(parts[k]) for k in order)
        case = Case(HITS, 100.0, {"variant": variant}).reordered(np.concatenate([parts[k] for k in order]))
        with pytest.raises(ValueError, match=r'hit \d+ has a hit at toa .*, earlier than .*partition="windows"'):
            case.chunked(sizes).labels_.compute()
        assert_labels(case.chunked(sizes, "windows"), case.answer())


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ("space", 'partition must be "auto", "chunks", "windows" or a Partition, got .space'),
        (Partition(groups=2), "2 groups of layers, but the points have no layer"),
        (Partition(cuts=(np.array([1.0]), np.array([1.0])), period=(0.0, 0.0)), "cuts 2 axes.*the points have 1 axes"),
    ],
)
def test_partitions(partition, words):
    with pytest.raises(ValueError, match=words):
        EventBuilder(100.0).fit(lazy(HITS), partition=partition)


def test_whole_times_beyond_float64():
    hits = {**HITS, "toa": np.arange(90) + 2**60}
    for given in (hits, lazy(hits)):
        with pytest.raises(ValueError, match=r"toa\[\d+\] = \d+ is beyond 2\*\*53"):
            np.asarray(EventBuilder(100.0).fit(given).labels_)
    small = {**HITS, "toa": np.round(HITS["toa"]).astype(np.int64)}
    wanted = EventBuilder(100.0).fit({**small, "toa": small["toa"].astype(float)}).labels_
    assert_labels(EventBuilder(100.0).fit(small), wanted)
