"""Scaling: the model's formulas against exact cases, its fit against made-up runs, and tiny runs on processes."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import dask
import numpy as np
import pytest

from daskclust.bench import Parameters, bench_scaling, best_block, compare, fit, markdown, predict
from daskclust.bench._scaling_data import GROUP, fitted, geometry_of
from daskclust.bench._tasks import role_of, step_of
from daskclust.bench.halos import grid_of, halo_points, halo_share
from daskclust.bench.merging import bench_merges
from daskclust.bench.model import UNITS, frontier_bytes, tree_steps
from daskclust.bench.scaling import facts_of, received_bytes
from daskclust.cli import app
from daskclust.cli._run import run as run_command
from daskclust.core.run.exchange import bundled_steps
from daskclust.core.space.partition import Partition

TOKEN = "0123456789abcdef0123456789abcdef"
KNOWN = Parameters(
    system="fof", source=2e-7, made=1e-3, route=8e-8, pair=2e-4, cluster=3e-7, block=2e-3, carry=0.0, merge=1e-8,
    pairs_of_roots=0.0, task=1e-3, transfer=2e-8, scheduler=5e-4, client=1e-4, start=1e-2, tasks_per_chunk=13.0,
    tasks_per_pair=2.0, volume=0.5, surface=20.0, border=0.0, table=0.2, copied=0.5, moved=21.0, returned=17.0,
    carried=0.0, strayed=3.0, kept=18.0,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- formulas
@pytest.mark.parametrize("period", [False, True])
@pytest.mark.parametrize("grid", [(4,), (2, 3), (1, 4, 2), (2, 2, 2), (6, 1, 3)])
def test_the_share_of_halos_is_that_of_a_lattice(grid, period):
    """Points in the middles of cells of side 1; planes between cells, and a reach of whole cells: exact."""
    side, reach = 12, 2
    X = np.stack(np.meshgrid(*[np.arange(side) + 0.5] * len(grid), indexing="ij"), axis=-1).reshape(-1, len(grid))
    cuts = tuple(np.arange(1, blocks) * (side / blocks) for blocks in grid)
    whole = tuple(itertools.accumulate(grid[:-1], lambda a, b: a * b, initial=1))
    cuts = tuple([list(cut)] * count for cut, count in zip(cuts, whole, strict=True))
    cuts = (np.array(cuts[0][0]), *[[np.array(row) for row in rows] for rows in cuts[1:]])
    partition = Partition(cuts=cuts, period=(float(side) if period else 0.0,) * len(grid), halo=float(reach))
    chunks = partition.split({"X": X}, 0)
    halo = sum(int((~chunk.owned).sum()) for chunk in chunks)
    assert halo == round(len(X) * halo_share(side, grid, reach, period=period))
    assert halo > 0


def test_a_halo_that_is_wider_than_the_box_has_every_point_once_a_block():
    assert halo_share(10.0, (4, 1), 50.0, period=True) == 3.0
    assert halo_share(10.0, (1, 1), 50.0, period=False) == 0.0


def test_the_share_of_halos_is_that_of_points():
    """Clumped points in balanced blocks, against the formula for uniform density: planes sample what is near them."""
    for system in ("clue-space", "fof", "dbscan"):
        facts = facts_of(system, 200_000, 25_000)
        grid = grid_of(8, geometry_of(system).axes)
        assert facts["grid"] == pytest.approx(grid)
        assert facts["own"] == 200_000
        assert facts["halo"] == pytest.approx(halo_points(system, 200_000, grid), rel=0.2)


@pytest.mark.parametrize(
    ("blocks", "axes", "grid"),
    [(1, 3, (1, 1, 1)), (8, 3, (2, 2, 2)), (7, 2, (3, 7 / 3)), (3, 3, (2, 1.5, 1)), (5, 0, ())],
)
def test_grids(blocks, axes, grid):
    assert grid_of(blocks, axes) == grid


def test_the_frontier_of_layers_is_a_seed_for_each_cluster():
    facts = facts_of("clue-layers", 40_000, 10_000)
    _, clusters = fitted("clue-layers", 40_000, 10_000)
    a_number_each = 8 * int(clusters.compute())
    nothing = {"groups": 0, "members": 0, "member_of": 0, "places": 0}
    assert facts["frontier"] == {**nothing, "firsts": a_number_each, "sizes": a_number_each}
    assert (facts["blocks"], facts["halo"]) == (4, 0)


# ------------------------------------------------------------------------------------------------------------ synthetic
def _made_up(known: Parameters, points: int, block: int, workers: int) -> dict:
    """Return the run that the model would have, its formulas written anew."""
    per_axis = grid_of(math.ceil(points / block), 3)
    blocks = inputs = math.ceil(points / block)
    halo = halo_points("fof", points, per_axis)
    frontier, pairs, away = known.volume * points + known.surface * halo, blocks * inputs, 1 - 1 / workers
    tasks = known.tasks_per_chunk * blocks + known.tasks_per_pair * pairs
    chunk_bytes, back = known.moved * (points + halo), known.returned * points
    received = {
        "part": chunk_bytes * away,
        "finish": back * away,
        "frontier": frontier * away,
        "slice": known.table * frontier * away,
        "merge": known.copied * known.table * frontier * (workers - 1) if blocks > 2 * workers else 0.0,
        "source": known.strayed * points * away,
    }
    seconds = {
        "source": known.source * points + known.made * blocks,
        "part": known.route * points + known.pair * pairs,
        "local": known.cluster * (points + halo) + known.block * blocks,
        "merge": known.merge * frontier,
    }
    left = {"part": chunk_bytes, "finish": back, "slice": known.table * frontier, "local": known.kept * points}
    left["merge"] = known.table * frontier
    roles = {"source": "source", "part": "route", "merge": "merge"}
    steps = {
        step: {
            "role": roles.get(step, "cluster"),
            "tasks": pairs if step == "part" else 0,
            "cpu_s": seconds.get(step, 0.0),
            "bytes": left.get(step, 0.0),
        }
        for step in {*seconds, *left}
    }
    worker_s = sum(seconds.values()) + known.task * tasks + known.transfer * sum(received.values())
    return {
        "system": "fof", "order": "random", "points": points, "block": block, "workers": workers, "tasks": tasks,
        "wall_s": 1.0, "idle_rates": {"client": 0.0, "scheduler": 0.25, "workers": 0.5},
        "worker_s": worker_s + 0.5, "scheduler_s": known.scheduler * tasks + 0.25,
        "client_s": known.start + known.client * tasks, "steps": steps,
        "received": {step: {"bytes": value, "seconds": 0.0} for step, value in received.items()},
        "facts": {
            "blocks": blocks, "own": points, "halo": halo, "grid": list(per_axis), "frontier": {"all": frontier},
        },
    }  # fmt: skip


RUNS = [
    _made_up(KNOWN, points, block, workers)
    for points in (1_000_000, 3_000_000, 8_000_000)
    for block in (500_000, 900_000)
    for workers in (1, 2, 4)
]


def test_the_fit_finds_what_made_the_runs():
    found = dataclasses.asdict(fit(RUNS))
    assert set(found) == set(UNITS) | {"system"}
    for name, value in dataclasses.asdict(KNOWN).items():
        assert found[name] == (value if name == "system" else pytest.approx(value, rel=1e-6)), name


def test_runs_that_were_left_out_are_predicted():
    rows = compare(RUNS, cores=64)
    assert len(rows) == len(RUNS)
    for row in rows:
        for name in ("worker_s", "tasks", "halo", "frontier", "received"):
            assert row[name]["left_out"] == pytest.approx(row[name]["measured"], rel=1e-6), name
            assert row[name]["fitted"] == pytest.approx(row[name]["measured"], rel=1e-6), name


def test_a_run_that_does_not_follow_the_model_shows():
    odd = [{**run, "worker_s": 3 * run["worker_s"]} if run["points"] == 8_000_000 else run for run in RUNS]
    rows = [row for row in compare(odd, cores=64) if row["points"] == 8_000_000]
    assert all(row["worker_s"]["left_out"] < 0.7 * row["worker_s"]["measured"] for row in rows)


def test_runs_of_several_systems_are_refused():
    with pytest.raises(ValueError, match="one system and order"):
        fit([RUNS[0], {**RUNS[1], "system": "dbscan"}])
    with pytest.raises(ValueError, match="got those of none"):
        fit([])


# -------------------------------------------------------------------------------------------------------------- predict
def test_the_parts_of_a_prediction():
    plain = {"merge": "one", "stages": 1}  # without what the engine does where chunks are many
    said = predict(KNOWN, 1e9, 100, 1e6, **plain)
    run = _made_up(KNOWN, 10**9, 10**6, 100)
    assert said.blocks == 1000
    assert said.tasks == run["tasks"]
    assert sum(said.traffic.values()) == pytest.approx(received_bytes(run), rel=1e-9)
    merge = run["steps"]["merge"]["cpu_s"] + 1.2 * run["facts"]["frontier"]["all"] / 1e9
    assert said.parts["merge"] == pytest.approx(merge)
    assert said.parts["workers"] * 100 == pytest.approx(run["worker_s"] - 0.5 - run["steps"]["merge"]["cpu_s"])
    assert said.parts["scheduler"] == pytest.approx(run["scheduler_s"] - 0.25)
    assert said.wall == "scheduler"
    assert said.seconds == pytest.approx(said.parts["client"] + said.parts["scheduler"] + said.parts["merge"])
    assert predict(KNOWN, 1e9, 100, 1e6, **plain, bandwidth=1e12).parts["merge"] < said.parts["merge"]
    assert sum(predict(KNOWN, 1e9, 1, 1e6, **plain).traffic.values()) == 0.0
    assert predict(KNOWN, 1e9, 100, 1e6, **plain, cores=2).seconds > said.seconds


def test_a_merge_in_a_tree_keeps_what_reaches_out():
    one, tree = (predict(KNOWN, 1e9, 1000, 1e9 / 64, merge=kind, group=8) for kind in ("one", "tree"))
    assert one.merge_bytes == frontier_bytes(KNOWN, 1e9, (4, 4, 4), 64)
    surface = {n: 2 * KNOWN.surface * halo_points("fof", 1e9, (n, n, n)) for n in (4, 2)}
    levels = [surface[4] / 8, surface[2]]  # eight groups of eight at a time, then one
    assert tree.merge_bytes == pytest.approx(max(*levels, KNOWN.volume * 1e9 / 32))  # runs of two are a range
    each = KNOWN.merge + 1.2 / 1e9
    assert tree.parts["merge"] == pytest.approx(each * (sum(levels) + KNOWN.volume * 1e9 / 1000))
    assert tree.tasks == one.tasks + tree_steps(64, 64, 64, 8, axes=3)
    assert tree.parts["merge"] < one.parts["merge"]
    with pytest.raises(ValueError, match="group must be at least 2, got 1"):
        predict(KNOWN, 1e9, 10, 1e7, merge="tree", group=1)


def test_fewer_pairs_take_walls_away():
    inputs = blocks = 4000
    pairs, near, bundles = (predict(KNOWN, 1e12, 1000, 2.5e8, **how) for how in ({"stages": 1}, {"reached": 30}, {}))
    tree, tree_near = (tree_steps(inputs, blocks, reached, 64, axes=3) for reached in (blocks, 30))
    assert pairs.tasks == tree + 13 * blocks + 2 * inputs * blocks
    assert near.tasks == tree_near + 13 * blocks + 2 * inputs * 30
    assert bundles.tasks == tree + 13 * blocks + 2 * bundled_steps(inputs, blocks)
    assert bundled_steps(inputs, blocks) == inputs * 63 + 63 * 63 + 63 * blocks  # 64 by 64, and one by one before
    assert pairs.wall == "scheduler"
    assert near.wall == "workers"
    assert bundles.traffic["chunks"] == pytest.approx(2 * pairs.traffic["chunks"])
    assert bundles.seconds < pairs.seconds


@pytest.mark.parametrize(("system", "axes"), [("fof", 3), ("clue-space", 2), ("clue-layers", 0)])
@pytest.mark.parametrize(("points", "width"), [(8_000, 8), (27_000, 4), (27_000, 8)])
def test_the_steps_of_a_tree_are_those_of_the_engine(system, axes, points, width):
    steps = {}
    for most in (width, 10**9):
        with dask.config.set({"daskclust.task-seconds": 0, "daskclust.merge-width": most}):
            steps[most] = set(fitted(system, points, 1000)[0].dask)
    blocks = sum("daskclust-chunk-" in str(key) for key in steps[width])
    assert blocks >= points // 1000
    added = len(steps[width]) - len(steps[10**9])
    assert added == (tree_steps(points // 1000, blocks, blocks, width, axes=axes) if blocks > width else 0)


def test_merges_on_one_worker_and_in_a_tree():
    one_step, tree = (
        [row[kind] for row in bench_merges(("fof", "events"), [(8000, 27)], width=3)] for kind in ("one", "tree")
    )
    assert [each["steps"] for each in one_step] == [1]
    assert tree[0]["steps"] > 100
    assert 0 < tree[0]["longest_s"] < tree[0]["all_s"]
    assert tree[0]["most_bytes"] > 0 < one_step[0]["most_bytes"]


def test_the_best_chunks_are_neither_small_nor_large():
    block = best_block(KNOWN, 1e9, 10, merge="tree")
    least = predict(KNOWN, 1e9, 10, block, merge="tree").seconds
    assert all(predict(KNOWN, 1e9, 10, block * factor, merge="tree").seconds > least for factor in (0.1, 0.5, 3, 10))
    assert best_block(KNOWN, 1e9, 10, most=1e6) == pytest.approx(1e6)
    pairs, near = (best_block(KNOWN, 1e12, 1000, most=1e10, **how) for how in ({"stages": 1}, {"reached": 27}))
    assert pairs > near


def test_levels_of_a_hierarchy_have_fewer_roots():
    known = dataclasses.replace(KNOWN, system="hca", pairs_of_roots=1e-9, merge=0.0, volume=0.0, surface=0.0)
    one, two = (predict(known, 1e9, 100, 1e6, levels=levels).parts["merge"] for levels in (1, 2))
    assert one == pytest.approx(1e-9 * (1e9 / GROUP) ** 2)
    assert two == pytest.approx(one / GROUP**2)
    with pytest.raises(ValueError, match="frontiers of hca are not merged in a tree"):
        predict(known, 1e9, 100, 1e6, merge="tree")


# ------------------------------------------------------------------------------------------------------------ tiny runs
@pytest.mark.parametrize(
    ("key", "step", "role"),
    [
        ((f"daskclust-split-{TOKEN}", 3), "split", "route"),
        ((f"daskclust-fof-frontier-{TOKEN}", 0), "frontier", "cluster"),
        (f"daskclust-chunk-daskclust-clue-measure-daskclust-clue-local-{TOKEN}", "chunk+measure+local", "cluster"),
        ((f"concatenate-daskclust-fof-gather-daskclust-fof-result-from-value-daskclust-fof-labels-{TOKEN}", 1),
         "gather+result+labels", "route"),
        ((f"daskclust-events-carry-{TOKEN}", 1), "carry", "carry"),
        ((f"daskclust-clue-merge-{TOKEN}", 0), "merge", "merge"),
        ((f"daskclust-source-{TOKEN}", 0, 0), "source", "source"),
        ((f"getitem-{TOKEN}", 0), "getitem", "source"),
    ],
)  # fmt: skip
def test_names_of_steps(key, step, role):
    assert step_of(key) == step
    assert role_of(step) == role


def test_tiny_runs(tmp_path, capsys):
    target = tmp_path / "scaling.json"
    options = ["--kinds", "events,fof,hca", "--memory-limit", "1GB", "--merges", "8e3x4", "-o", str(target)]
    assert run_command(app, ["bench", "scaling", "--sizes", "8e3", "--blocks", "2e3", "--workers", "2", *options]) == 0
    report = json.loads(target.read_text())
    expected = [("events", "random"), ("fof", "random"), ("fof", "space"), ("hca", "random")]
    runs = {(run["system"], run["order"]): run for run in report["runs"]}
    assert list(runs) == expected
    assert report["machine"]["versions"]["daskclust"]
    # a table of the runs, and one of the merges of friends-of-friends
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(expected) + 1 + 2 + 2
    assert len(markdown(report).splitlines()) == 2 + len(expected) + 1 + 2 + 2
    for (system, order), run in runs.items():
        facts, steps = run["facts"], run["steps"]
        assert (run["points"], run["block"], run["workers"], facts["blocks"]) == (8000, 2000, 2, 4)
        assert run["tasks"] == sum(step["tasks"] for step in steps.values())
        assert run["tasks"] > 20
        assert steps["merge"]["tasks"] == 1
        assert run["worker_s"] > sum(step["cpu_s"] for step in steps.values()) > 0
        assert run["scheduler_s"] > 0
        assert run["wall_s"] > 0
        # dask counts what is around arrays, too: each frontier's arrays alone are what the model has
        assert 0 <= steps["frontier"]["bytes"] - sum(facts["frontier"].values()) < 4 * 1500
        known = fit([run])
        assert frontier_bytes(known, 8000, [round(n) for n in facts["grid"]], 4) == pytest.approx(
            sum(facts["frontier"].values())
        )
        whole = fitted(system, 8000, 2000, order)
        assert run["clusters"] == (7999 if system == "hca" else int(whole[1].compute()))
    assert runs["fof", "random"]["steps"]["part"]["tasks"] == 16


def test_wrong_systems_and_orders_are_refused():
    with pytest.raises(ValueError, match="'optics'"):
        bench_scaling("optics")
    with pytest.raises(ValueError, match="'sorted'"):
        bench_scaling("fof", orders=("sorted",))
