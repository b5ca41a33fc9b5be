"""The thesis's experiments at their smallest size: what they measure is right, how fast is not asked."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

from daskclust import MahalanobisHCA
from daskclust.bench import bench_thesis, markdown
from daskclust.cli import app
from daskclust.datasets import cytometry
from daskclust.hca import levels
from daskclust.metrics import point_heights


def test_thesis():
    before = levels.NEIGHBOURS
    report = bench_thesis(300, total=400, group_sizes=[20, 100], threads=1)
    assert before == levels.NEIGHBOURS
    assert [(run["kind"], run["neighbours"]) for run in report["neighbours"]] == [
        (kind, known) for kind in ("gaussian", "cytometry") for known in (1, 2, 3)
    ]
    assert [(run["size"], run["groups"], run["points"]) for run in report["ratios"]] == [(20, 20, 400), (100, 4, 400)]
    assert all(run["total_ms"] > 0 for run in (*report["neighbours"], *report["ratios"]))
    X = cytometry(300, 14, rng=0)["X"].values
    heights = [point_heights(MahalanobisHCA(rule=rule).fit(X).linkage_) for rule in ("thesis", "mahal")]
    found = {each["kind"]: each["correlation"] for each in report["heights"]}
    np.testing.assert_allclose(found["cytometry"], np.corrcoef(heights)[0, 1])
    assert len(markdown(report).split("\n\n")) == 3
    json.dumps(report)


def test_no_apriori_clusters_are_larger_than_all_points():
    ratios = bench_thesis(100, total=300, group_sizes=[100, 200, 500], threads=1)["ratios"]
    assert [(run["size"], run["groups"]) for run in ratios] == [(100, 3), (200, 1)]


def test_command(tmp_path):
    path = tmp_path / "thesis.json"
    result = CliRunner().invoke(app, ["bench", "thesis", "--sizes", "200,200", "--threads", "1", "-o", str(path)])
    assert result.exit_code == 0, result.output
    assert "nearest known" in result.output
    assert json.loads(path.read_text())["parameters"]["total"] == 200
