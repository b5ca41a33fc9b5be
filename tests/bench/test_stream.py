"""The online benchmark at its smallest size: what comes out is right, how fast is not asked."""

import json
import time

import numpy as np

from bench import repeated, stream
from bench.report import markdown
from daskclust.io import open_tpx3


def test_a_stream_is_the_offline_answer():
    began = time.perf_counter()
    report = stream.bench_stream(2e5, 1.0, buffer=1000)
    whole = time.perf_counter() - began
    assert report["equal"] is True
    assert report["hits_in"] == report["hits_out"] == report["hits_sent"] >= 80_000
    assert report["late_hits"] == 0
    assert report["clusters"] > 0
    assert report["largest_backlog"] <= 1000 + 2e5 * 20e-6  # a round, and what its disorder makes wait
    # nobody is done before all has been sent, of which the last 40th of a template is sent at its beginning; on a busy
    # machine the first bytes, from which the report counts, are seen late
    assert whole >= 0.95 * report["hits_sent"] / 2e5
    assert 0 < report["seconds"] <= whole
    assert report["mhits_per_second"] == report["hits_in"] / report["seconds"] / 1e6
    assert json.loads(json.dumps(report))["parameters"]["rate"] == 2e5
    assert f"| hits in | {report['hits_in']:,} |" in markdown(report)


def test_words_are_later(tmp_path):
    words, hits = stream.template(5000, 1e6)
    stream.later(words, 10**9).tofile(tmp_path / "later.tpx3")
    later = open_tpx3(tmp_path / "later.tpx3")
    assert np.ptp(later["toa"].values - hits["toa"].values) == 0
    for name in ("x", "y", "tot"):
        np.testing.assert_array_equal(later[name], hits[name])


def test_repeated_hits_are_found_again():
    report = repeated.bench_repeated(("pion45", "lead_subset"), (20_000,), 3, buffer=7_000)
    for run in report["runs"]:
        assert run["equal"] is True
        assert run["points"] == 60_000
        assert run["late_hits"] == 0
        assert run["mhits_per_second"]["from disk"] == 60_000 / run["seconds"] / 1e6
    assert report["runs"][1]["mean_size"] > 10 * report["runs"][0]["mean_size"]
    json.dumps(report)
    assert markdown(report).splitlines()[-1].endswith("| True |")
