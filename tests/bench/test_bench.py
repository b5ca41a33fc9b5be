"""Benchmarks at their smallest size: what they measure is right, how fast is not asked."""

import json

import numba
import numpy as np
import pytest
from cases.lanes import quick_first

from bench.command import main
from bench.report import markdown
from bench.runner import SYSTEMS, bench, options_of

SMALL = {
    "clue": {"sizes": (2000, 4000)},
    "events": {"sizes": (3000,), "kinds": ("gamma", "lead")},
    "fof": {"sizes": (1000,)},
    "dbscan": {"sizes": (1000, 2000), "min_samples": (2, 5)},
    "emst": {"sizes": (1000, 2000)},
    "hdbscan": {"sizes": (1000,), "min_samples": (1, 5)},
    "hca": {"sizes": (200, 400), "groups": ((3, 100), (2, 50))},
}


def small(name, **given):
    return bench(name, options_of(name, {"repeats": 1, "threads": (1,), **SMALL[name], **given}))


@pytest.mark.parametrize("name", quick_first(SYSTEMS, 2))
def test_every_run_has_figures_a_floor_and_a_line(name):
    before, given = numba.get_num_threads(), SMALL[name]
    report = small(name, threads=(1, 0, 1))  # of each number one run
    assert numba.get_num_threads() == before
    kinds = given.get("kinds", SYSTEMS[name].kinds)
    amounts = [n for kind in kinds for n in (given["groups"] if kind == "apriori" else given["sizes"])]
    of_each = [int(np.prod(n)) for n in amounts for _ in given.get("min_samples", (2,))]
    numbers = sorted({1, before})
    assert [run["points"] for run in report["runs"]] == np.repeat(of_each, len(numbers)).tolist()
    for run, first in zip(report["runs"], np.repeat(report["runs"][:: len(numbers)], len(numbers)), strict=True):
        assert sum(run["kernels_ms"].values()) > 0
        assert sum(run.get("steps_ms", run["kernels_ms"]).values()) == pytest.approx(sum(run["kernels_ms"].values()))
        results = {"clue": 25, "emst": 24, "hdbscan": 87, "hca": 31}.get(name, 8)
        assert run["peak_bytes_per_hit" if name == "events" else "peak_bytes_per_point"] > results
        assert 0 < run["of_roofline"] < 1
        found = {"emst": "length", "hca": "last_height"}.get(name, "clusters")
        assert run[found] == first[found] > 0
    json.dumps(report)
    of_runs, *_, ceilings = markdown(report).split("\n\n")
    head, rule, *rows = of_runs.splitlines()
    assert len(rows) == len(report["runs"])
    assert len({line.count("|") for line in (head, rule, *rows)}) == 1
    assert ceilings.startswith("Ceilings of this machine: ")


def test_all(tmp_path, capsys):
    files = [tmp_path / f"all{suffix}" for suffix in (".json", ".md")]
    outputs = [word for file in files for word in ("-o", str(file))]
    main(["all", "--sizes", "600", "--repeats", "1", "--threads", "1", "--peers", *outputs])
    report = json.loads(files[0].read_text())
    assert [part["system"] for part in report["reports"]] == list(SYSTEMS)
    for part in report["reports"]:
        assert all(run["points"] <= 600 for run in part["runs"])
        assert all(run["agrees"] for run in part["peers"]["timed"])
    assert capsys.readouterr().out == files[1].read_text() == f"{markdown(report)}\n"


@pytest.mark.parametrize(
    "line",
    ["stream --sizes 9", "clue --rate 1", "fof --min-samples 3", "all --kinds cosmo", "fof --peers --device cuda",
     "hca --groups 100", "clue -o report.txt", "clue -o no/such/a.md"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_any_work(line):
    with pytest.raises(SystemExit, match="2"):
        main(line.split())
