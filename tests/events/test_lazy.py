"""On dask nothing is computed before it is asked for, and results have the chunks of the hits."""

import pickle

import numpy as np
import pytest
from cases.events import VARIANTS, Case, dense
from cases.steps import assert_steps

from daskclust.core.space.partition import Partition

CASE = Case(dense(300, 3, ticks=1500), 40.0, {"min_hits": 2})
WANTED = CASE.answer()


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_goes_between_workers_can_be_pickled(variant):
    """Every step of the plan on a copy of its input, as other processes get it."""
    case = Case(CASE.hits, CASE.dt_max, {"variant": variant})
    columns = {name: case.hits[name] for name in ("toa", "x", "y", "chip")}
    chunks = Partition(cuts=(np.array([500.3, 1000.3]),), period=(0.0,)).split(columns, 0, "toa")
    wanted = {"labels": case.answer()}
    assert_steps(case.estimator()._plan(), chunks, wanted, lambda thing: pickle.loads(pickle.dumps(thing)))


def test_frontiers_hold_no_more_than_what_is_open():
    """Hits in quiet windows send nothing up but a count."""
    hits = dense(200, 1, ticks=10)
    hits["toa"] = hits["toa"] + np.repeat([0, 1e6, 2e6, 3e6], 50)
    plan = Case(hits, 100.0).estimator()._plan()
    chunks = Partition(cuts=(np.arange(1, 4) * 1e6 - 10.3,), period=(0.0,)).split(hits, 0, "toa")
    before = None
    for measure in [plan.measure(chunk) for chunk in chunks]:
        _, frontier = plan.local(measure, before)
        before = plan.carry(measure, before)
        assert len(frontier.edges) == 0
        assert len(before.hits.toa) <= 50
