"""On dask nothing is computed before it is asked for, but for one pass that looks for planes."""

from __future__ import annotations

import numpy as np
from cases.dbscan import Case
from cases.steps import Steps

from daskclust.dbscan.plan import DbscanPlan

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 12, (300, 2))
WEIGHT = RNG.integers(1, 8, 300) / 4
CASES = {"dbscan": Case(X, 0.8, 4), "friends": Case(X, 0.6, min_members=3)}
ROWS = (70, 70, 70, 70, 20)


def test_steps_are_named_and_points_stay_where_they_are():
    for case, system in ((CASES["dbscan"], "dbscan"), (CASES["friends"], "fof")):
        lazy = case.chunked(ROWS, case.partition([4.0, 8.0]))
        with Steps() as steps:
            lazy.labels_.compute(optimize_graph=False)
        ours = [name for name in steps.names if name.startswith(f"daskclust-{system}")]
        assert {f"daskclust-{system}-{step}" for step in ("local", "merge", "finish")} <= set(ours)
        assert ours.count(f"daskclust-{system}-merge") == 1
        assert ours.count(f"daskclust-{system}-local") == 3


def test_what_goes_up_is_of_faces_and_clusters():
    """Frontiers grow with these, not with points; coordinates are of points that other chunks have as well."""
    rng = np.random.default_rng(0)
    sizes = []
    for n in (1000, 16_000):
        eps = 1.5 / np.sqrt(n)
        case, plan = Case(rng.random((n, 2)), eps, 5), DbscanPlan(eps, 5, 1, (0.0, 0.0))
        chunks = case.partition([0.5], [0.5]).split({"X": case.X}, 0)
        frontiers = [plan.local(plan.measure(chunk))[1] for chunk in chunks]
        for chunk, frontier in zip(chunks, frontiers, strict=True):
            rows = np.searchsorted(chunk.ids, frontier.members)
            np.testing.assert_array_equal(frontier.places, chunk.columns["X"][rows])
            assert all(part.dtype == np.int64 for part in frontier._replace(places=frontier.members))
        sizes.append(sum(len(frontier.members) for frontier in frontiers))
    assert sizes[1] < 6 * sizes[0]
