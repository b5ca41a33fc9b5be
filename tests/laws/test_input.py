"""One door for data: any container, type, byte order and layout gives the plain answer or the promised error."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cases.lanes import in_long_lane
from laws.input_cases import check, draw

from daskclust import CLUE, EventBuilder
from daskclust.core.data.columns import for_kernels

CASES = in_long_lane(50_000, otherwise=500)
PARTS = 10


@pytest.mark.slow  # each dtype is compiled
@pytest.mark.parametrize("part", range(PARTS))
def test_any_container_type_and_layout(part):
    rng = np.random.default_rng([16, part])
    results = [check(draw(rng)) for _ in range(CASES // PARTS)]
    assert results.count("equal") > results.count("refused") > 0


RNG = np.random.default_rng(5)
X = RNG.uniform(0, 1, (90, 2))
LAYER = RNG.integers(0, 3, 90)


def lazy(values):
    return da.from_array(values, chunks=(40, *values.shape[1:]))


def test_pixels_in_another_byte_order_touch():
    x, y, toa = np.array([1, 2, 3]), np.array([1, 1, 1]), np.array([0.0, 10.0, 20.0])
    hits = {"x": x.astype(">u2"), "y": y.astype(">u2"), "toa": toa}
    assert EventBuilder(200.0).fit(hits).labels_.tolist() == [0, 0, 0]


def test_blocks_that_are_not_what_dask_says_of_them():
    layer = lazy(LAYER.astype(np.int32)).map_blocks(lambda block: block.astype(">i4"), dtype=np.int32)
    wanted = CLUE(0.1, 3).fit(X, layer=LAYER).labels_
    np.testing.assert_array_equal(CLUE(0.1, 3).fit(lazy(X), layer=layer).labels_.compute(), wanted)


def test_columns_of_a_dask_dataframe_keep_their_types():
    frame = pd.DataFrame({"x": X[:, 0].astype("f4"), "y": X[:, 1].astype("f4"), "event": 2**60 + np.arange(90)})
    frame["name"] = "a text"
    chunked = CLUE(0.1, 1).fit(dd.from_pandas(frame, npartitions=3))
    assert chunked.density_.dtype == CLUE(0.1, 1).fit(frame).density_.dtype == np.float32
    assert chunked.n_clusters_.compute() == CLUE(0.1, 1).fit(frame).n_clusters_ == 90


def test_kernels_get_arrays_of_one_kind():
    base = np.arange(12, dtype=">f8")[::-2]
    base.flags.writeable = False
    array = for_kernels("x", base)
    assert array.dtype.isnative
    assert array.flags.c_contiguous
    assert array.flags.aligned
    assert array.flags.writeable
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert np.shares_memory(for_kernels("x", frozen), frozen)
