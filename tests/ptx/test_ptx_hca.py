"""Compile and assemble the CUDA kernels of Mahalanobis clustering, without a GPU."""

import numpy as np
import pytest

from daskclust import MahalanobisHCA
from daskclust.core.space.partition import Chunk
from daskclust.hca.plan import LAST, HcaPlan, rule_of
from ptx.recorder import check, names, stand_in

pytestmark = pytest.mark.ptx


@pytest.fixture
def recorder(monkeypatch):
    from daskclust.core.space import extent
    from daskclust.hca import clusters, levels, plan

    monkeypatch.setattr(levels, "multiprocessors", lambda: 132)
    monkeypatch.setattr(levels, "LARGE", 100)
    return stand_in(monkeypatch, plan, extent, clusters)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kernel_assembles(recorder, tmp_path, monkeypatch, dtype):
    """With and without apriori clusters; what the CUDA path of work gives on the CPU is what the CPU's gives."""
    rng = np.random.default_rng(0)
    X, apriori = rng.normal(size=(200, 5)).astype(dtype), rng.integers(-1, 9, 200)
    plan = HcaPlan(rule_of("mahal", 20.0, "full", False))
    for labels in (None, apriori):
        columns = {"X": X} if labels is None else {"X": X, "apriori": np.where(labels < 0, LAST, labels)[:, None]}
        with monkeypatch.context() as patched:
            found = plan.merge([plan.local(plan.measure(Chunk(columns)))[1]])
            patched.undo()
        hca = MahalanobisHCA(20, rule="mahal", distance="full").fit(X, apriori=labels)
        np.testing.assert_array_equal(found.Z, hca.linkage_)
    compiled = check(recorder.launched, tmp_path, monkeypatch)
    assert compiled
    assert names(recorder.launched) >= {"_survey_point", "place", "shape_roots", "link_sets", "close_set"}
