"""``daskclust events``, run as users run it: tables, hits, running readouts, messages."""

import json
import os
import shutil
import signal
import socket
import threading
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cases.files.growing import growing_file
from cases.lanes import quick_first

from daskclust import EventBuilder, EventStream, io
from daskclust.cli.events import Ending
from daskclust.cli.pixels.options import Pixels
from daskclust.datasets import readout_order, timepix
from daskclust.io import open_tpx3, open_tpx3_triggers, read_hits, time_of_flight, write_hits, write_tpx3
from daskclust.io.files import READABLE, WRITABLE
from daskclust.properties import cluster_table, select

N = 4000


@pytest.fixture
def run(summary):
    """Return a function that runs ``daskclust events``, and gives what --json prints."""
    return lambda source, *options: summary("events", source, "--dt-max", 200, *options)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "clusters.parquet"


@pytest.fixture
def hits(tmp_path):
    return tmp_path / "hits.parquet"


@pytest.fixture
def small_rounds(monkeypatch):
    """Let a small file take many rounds."""
    monkeypatch.setattr("daskclust.cli.pixels.in_time.ROUND", 700)


@pytest.fixture(scope="module")
def delivered():
    """Return hits of two chips in the order of a readout: many clusters are open at once, and times are not sorted."""
    made = timepix(N, kind="pion45", rate=50e6, chips=2, rng=0).drop_vars("truth")
    return made.isel(hit=readout_order(made, disorder=20e3, rng=1))


@pytest.fixture(scope="module")
def raw(delivered, tmp_path_factory):
    """Return a raw file of these hits, with triggers in it."""
    triggers = xr.Dataset({"time": ("trigger", np.arange(0, 80_000, 5000) * 1.0)})
    path = tmp_path_factory.mktemp("raw") / "run.tpx3"
    write_tpx3(delivered, path, triggers=triggers, words_per_chunk=100)
    return path


def in_time(hits):
    return hits.isel(hit=np.argsort(hits["toa"].values, kind="stable"))


def offline(hits, **parameters):
    """Return the table and the hits with labels, of all hits at once."""
    builder = EventBuilder(200.0, **parameters).fit(hits)
    table = cluster_table(hits, builder.labels_, n_clusters=builder.n_clusters_)
    return table, hits.assign(label=("hit", builder.labels_))


def assert_table(path, table):
    written = pd.read_parquet(path)
    assert set(written) == {str(name) for name in table.variables}
    for name in set(written) - {"seed"}:  # a place among the hits as they are put out: see assert_hits
        assert written[name].dtype == table[name].dtype, name
        np.testing.assert_array_equal(written[name], table[name], err_msg=name)


def assert_hits(path, hits, table_path=None):
    """Compare hits and their labels, in whatever order; seeds are rows of the file."""
    written = pd.read_parquet(path)
    names = ["toa", "x", "y", "tot", "chip", "label"]
    rows, wanted = (np.stack([frame[name] for name in names]) for frame in (written, hits))
    order, wanted_order = np.lexsort(rows[::-1]), np.lexsort(wanted[::-1])
    np.testing.assert_array_equal(rows[:, order], wanted[:, wanted_order])
    if table_path is not None:
        table = pd.read_parquet(table_path)
        seeds = written.iloc[table["seed"]]
        np.testing.assert_array_equal(seeds["label"], table["cluster"])
        np.testing.assert_array_equal(seeds["tot"], table["tot_max"])


def write_t3pa(hits, path):
    tick = np.rint(hits["toa"].values / 1.5625).astype(np.int64)
    coarse = -(-tick // 16)
    pixel = hits["chip"].values.astype(int) * 65536 + hits["y"].values.astype(int) * 256 + hits["x"].values
    columns = {"Index": np.arange(len(tick)), "Matrix Index": pixel, "ToA": coarse}
    columns |= {"ToT": (hits["tot"].values / 25).astype(int), "FToA": coarse * 16 - tick, "Overflow": 0}
    pd.DataFrame(columns).to_csv(path, sep="\t", index=False, lineterminator="\n")


def write_calibration(folder, shape=(256, 256), **values):
    folder.mkdir()
    for name, value in {"a": 2.0, "b": 30.0, "c": 100.0, "t": 1.0, **values}.items():
        matrix = np.broadcast_to(value, shape)
        (folder / f"{name}.txt").write_text("\n".join(" ".join(map(repr, row)) for row in matrix.tolist()) + "\n")
    return folder


# --------------------------------------------------------------------------------------------------------------- inputs
@pytest.mark.parametrize("suffix", [".tpx3", ".t3pa", ".parquet", ".csv", ".h5"])
def test_files_of_every_kind(run, tmp_path, delivered, small_rounds, suffix, target, hits):
    source = tmp_path / f"run{suffix}"
    writers = {".tpx3": write_tpx3, ".t3pa": write_t3pa}
    writers.get(suffix, write_hits)(delivered, source)
    told = run(source, "--table", target, "-o", hits)
    table, labelled = offline(in_time(delivered))
    assert (told["hits"], told["hits_out"]) == (N, N)
    assert told["clusters"] == table.sizes["cluster"]
    assert (told["table"], told["output"]) == (str(target), str(hits))
    assert_table(target, table)
    assert_hits(hits, labelled, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, "clusters.parquet", "hits.parquet"])


def test_columns_that_are_read_under_other_names_stay_as_they_are(run, tmp_path, delivered, small_rounds, hits):
    source = tmp_path / "run.parquet"
    write_hits(in_time(delivered).assign(y=("hit", np.arange(N, dtype=np.uint16) % 256)), source)
    for options in ((), ("--columns", "x=y,y=x"), ("--only", "y,label,x")):
        run(source, "-o", hits, *options)
        before, after = pd.read_parquet(source), pd.read_parquet(hits)
        for name in ("x", "y"):
            assert np.array_equal(after[name], before[name]), (name, options)


@pytest.fixture(scope="module")
def matrices(tmp_path_factory):
    """Return the folder of a calibration in which every other column is masked: its pixels have no energy."""
    a = np.full((256, 256), 2.0)
    a[:, ::2] = 0.0
    return write_calibration(tmp_path_factory.mktemp("calibration") / "matrices", a=a)


@pytest.mark.parametrize("number", quick_first(range(4), 2))
def test_options_are_parameters(run, raw, matrices, small_rounds, number, target, hits):
    """Options drawn at random, against `EventBuilder`, `calibrate`, `time_of_flight` and `select`."""
    rng = np.random.default_rng(number)
    parameters = {
        "variant": str(rng.choice(["local", "global", "static"])),
        "connectivity": int(rng.choice([4, 8])),
        "min_hits": int(rng.choice([1, 1, 3])),
    }
    options = [word for name, value in parameters.items() for word in (f"--{name.replace('_', '-')}", value)]
    data, where = open_tpx3(raw), rng.choice(["", "size > 3 and tot > 1000", "toa > 20000"])
    if rng.random() < 0.5:
        unit = str(rng.choice(["ns", "tick"]))
        options += ["--calibration", matrices, "--tot-unit", unit]
        energy = io.calibrate(data, io.read_calibration(matrices), tot_unit=unit)["energy"]
        data = data.assign(energy=energy.where(energy > 0, 0))
        where = f"energy > {float(energy.max()) / 2}" if where else ""
    if rng.random() < 0.5:
        options += ["--trigger", 1]
        data["tof"] = time_of_flight(data["toa"], open_tpx3_triggers(raw), channel=1)
    told = run(raw, *options, "--table", target, "-o", hits, *(["--where", where] if where else []))
    table, labelled = offline(data, **parameters)
    assert told["clusters"] == table.sizes["cluster"]
    assert told.get("noise_hits", 0) == int((labelled["label"] < 0).sum())
    if where:
        table = select(table, where)
        labelled = labelled.isel(hit=np.isin(labelled["label"], table["cluster"]))
        assert 0 < told["clusters_kept"] == table.sizes["cluster"] < told["clusters"]
    assert_table(target, table)
    assert_hits(hits, labelled)


def test_a_quad(run, tmp_path, small_rounds, target):
    made = timepix(3000, kind="pion75", layout="quad", rng=2).drop_vars("truth")
    flipped = made["chip"].isin([1, 2])  # chips 1 and 2 are upside down, chips 0 and 1 on the right
    local = made.assign(
        x=xr.where(flipped, 511 - made["x"], made["x"]).astype(int) % 256,
        y=xr.where(flipped, 511 - made["y"], made["y"]).astype(int),
    )
    source = tmp_path / "quad.tpx3"
    write_tpx3(local.assign_attrs(layout="chips"), source)
    np.testing.assert_array_equal(open_tpx3(source, layout="quad")["x"], made["x"])
    tables = {}
    for gap in (0, 2):
        options = ("--layout", "quad", "--gap", gap, "--table", target)
        run(source, *options)
        tables[gap] = offline(open_tpx3(source, layout="quad", gap=gap))[0]
        assert_table(target, tables[gap])
    assert tables[0].sizes["cluster"] < tables[2].sizes["cluster"]


@pytest.mark.parametrize("options", [(), ("--layout", "quad")])
def test_common_coordinates_are_as_the_file_tells(run, tmp_path, small_rounds, options, target):
    made = timepix(3000, kind="pion75", layout="quad", rng=0).drop_vars("truth")
    source = tmp_path / "quad.parquet"
    write_hits(made, source)
    run(source, *options, "--table", target)
    table = offline(read_hits(source))[0]
    assert table.sizes["cluster"] < offline(made.assign_attrs(layout="chips"))[0].sizes["cluster"]
    assert_table(target, table)


@pytest.mark.parametrize(
    "kind", [".csv", ".h5", ".parquet", "several", "raw", "--max-pixel-hits 3", "--mask-pixels auto"]
)
def test_attributes_of_hits_and_clusters_are_those_of_workers(run, tmp_path, small_rounds, hits, target, kind):
    """All of the source, and how it was clustered; of clusters none, as each batch has a noise of its own."""
    source, options = [tmp_path / f"in{kind if kind.startswith('.') else '.tpx3'}"], kind.split() if "-" in kind else []
    made, is_raw = timepix(3000, rng=0).assign_attrs(run=7), kind == "raw" or options
    if is_raw:
        write_tpx3(made.drop_vars("truth"), *source)
    else:
        source = [tmp_path / "a.csv", tmp_path / "b.csv"] if kind == "several" else source
        for number, path in enumerate(source):
            write_hits(made.assign_attrs(operator=f"number {number}"), path)
    found = []
    for where in ((), ("--workers", 1)):
        run(*source, "-o", hits, "--table", target, *options, *where)
        texts = [(pq.read_metadata(path).metadata or {}).get(b"daskclust", b"{}") for path in (hits, target)]
        found.append([json.loads(text).get("attrs", {}) for text in texts])
    assert found[0] == found[1]
    assert found[0][0]["events"] == "dt_max=200 ns, variant=local, connectivity=8, min_hits=1"
    assert is_raw or found[0][0]["run"] == 7
    assert found[0][0].keys() >= ({"noisy_pixels", "noisy_hits", "max_pixel_hits"} if options else set())


@pytest.mark.parametrize(
    ("layout", "how"), [("quad", "raw"), ("quad", "table"), ("quad", "followed"), ("timepix4", "table")]
)
def test_hits_are_read_again_as_their_source(run, tmp_path, small_rounds, hits, layout, how):
    source, options = tmp_path / "in.h5", ()
    if how == "table":
        write_hits(timepix(3000, kind="pion75", layout=layout, rng=0).drop_vars("truth"), source)
    else:
        source, options = tmp_path / "in.tpx3", ("--layout", layout, "--gap", 2)
        write_tpx3(timepix(3000, kind="pion75", chips=4, rng=0).drop_vars("truth"), source)
        options += ("--follow", "--idle", 0.5) if how == "followed" else ()
    told = run(source, *options, "-o", hits)
    attrs = read_hits(hits).attrs
    assert attrs["layout"] == layout
    assert attrs.get("gap", 0) == (2 if "--gap" in options else 0)
    assert run(hits)["clusters"] == told["clusters"]


@pytest.mark.slow
def test_workers_give_the_same(run, tmp_path, raw, matrices, scheduler, small_rounds, hits):
    """With pixels that have no energy, which add nothing."""
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    options = ("--calibration", matrices, "--min-hits", 2, "--where", "size > 4")
    run(raw, *options, "--table", here)
    told = run(raw, *options, "--table", there, "-o", hits, "--scheduler", scheduler)
    one, two = pd.read_parquet(here), pd.read_parquet(there)
    assert np.isfinite(one["energy"]).all()
    assert (one["energy"] > 0).any()
    pd.testing.assert_frame_equal(one.drop(columns="seed"), two.drop(columns="seed"), check_like=True)
    _, labelled = offline(open_tpx3(raw), min_hits=2)
    assert_hits(hits, labelled.isel(hit=np.isin(labelled["label"], one["cluster"])))
    assert told["hits"] == N
    assert told["clusters_kept"] == len(one)
    assert told["noise_hits"] == int((labelled["label"] < 0).sum())


@pytest.mark.parametrize("where", ["", "size > 3", "size > 3 and seed > 700", "size > 4000"])
@pytest.mark.parametrize("files", ["table", "several", "raw"])
@pytest.mark.parametrize("on", quick_first(["memory", "workers"], 1))
def test_seeds_are_rows_of_the_hits_that_are_written(
    run, tmp_path, request, delivered, small_rounds, target, hits, on, files, where
):
    sources = [tmp_path / ("run.tpx3" if files == "raw" else "run.parquet"), tmp_path / "second.parquet"]
    (write_tpx3 if files == "raw" else write_hits)(delivered, sources[0])
    write_hits(delivered.isel(hit=slice(1500)), sources[1])
    options = ["--min-hits", 2, *(["--where", where] if where else [])]
    options += ["--scheduler", request.getfixturevalue("scheduler")] if on == "workers" else []
    run(*sources[: 1 + (files == "several")], *options, "--table", target, "-o", hits)
    table, written = pd.read_parquet(target), pd.read_parquet(hits)
    largest = written[written["label"] >= 0].groupby("label")["tot"].idxmax()
    np.testing.assert_array_equal(table["cluster"], largest.index)
    np.testing.assert_array_equal(table["seed"], largest)
    assert (len(table) == 0) == ("4000" in where)


@pytest.mark.parametrize("how", quick_first(["in memory", "followed", "on workers"], 2))
def test_what_is_lost_is_told(run, tmp_path, raw, request, how):
    """Bytes between chunks, an unknown word, a chunk that is cut; in a file, hits later than --disorder, too."""
    data, unknown = raw.read_bytes(), b"TPX3" + bytes([0, 0, 8, 0]) + (0x10 << 56).to_bytes(8, "little")
    half = len(data) // 2 // 8 * 8
    source = tmp_path / "run.tpx3"
    source.write_bytes(b"junk!" + data + unknown + b"junk" + data[:half] + unknown + data[half:-11])
    options = {"in memory": (), "followed": ("--follow", "--idle", 0.1)}
    options = options[how] if how in options else ("--scheduler", request.getfixturevalue("scheduler"))
    told = run(source, "--disorder", 1, *options)
    counts = open_tpx3(source, disorder=1e3).attrs
    names = ["n_unknown", "n_chunks_cut", "n_bytes_skipped", "n_bytes_truncated"]
    assert min(counts[name] for name in [*names, "n_late"]) > 0
    if how == "followed":  # it cannot look ahead, so the words of a chunk that is cut are not the same
        assert set(names) <= set(told)
        assert "n_late" not in told  # all came in one round, and none was late for that
    else:
        assert {name: told.get(name) for name in names} == {name: counts[name] for name in names}
        assert told["n_late"] == counts["n_late"]


def test_lost_data_of_t3pa_are_told(run, tmp_path, delivered):
    source = tmp_path / "run.t3pa"
    write_t3pa(delivered.isel(hit=slice(3)), source)
    with source.open("a") as stream:
        stream.write("3\t116\t1000\t0\t0\t9\n4\t117\t1500\t0\t0\t9\n5\t118\t1500\t0\t0\t9\n")
    told = run(source)
    assert (told["hits"], told["n_special"], told["n_lost_data_intervals"]) == (3, 1, 1)


@pytest.mark.parametrize("workers", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("option", [("--mask-pixels", "mask.csv"), ("--max-pixel-hits", 3)])
def test_hits_that_are_all_left_out_are_the_reason(run, tmp_path, monkeypatch, request, option, workers):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mask.csv").write_text("x,y\n5,7\n")
    (tmp_path / "run.csv").write_text("x,y,toa,tot\n" + "".join(f"5,7,{1e4 * k},25\n" for k in range(12)))
    there = ("--scheduler", request.getfixturevalue("scheduler")) if workers else ()
    told = run(tmp_path / "run.csv", *option, *there)
    assert (told["hits"], told["clusters"]) == (12, 0)
    assert told["reason"] == f"0 clusters: {option[0][2:]} leaves out all 12 hits"


def test_the_real_run(command, shared_data, target):
    source = shared_data / "timepix" / "sns_suann_socket_background_serval32.tpx3"
    code, out, err = command("events", source, "--dt-max", 200, "--table", target)
    assert code == 0
    assert "98,548" in out
    late, noisy = err.splitlines()
    assert late.startswith("note: ")
    assert late.endswith("1.23174e+06 ns covers them")
    assert noisy.startswith("note: 6 pixels have 90% of the hits: (17, 85) of chip 3, (249, 38) of chip 3, ")
    assert_table(target, offline(open_tpx3(source))[0])


@pytest.mark.parametrize("options", [(), ("--where", "size > 1")])
def test_a_file_without_hits_has_an_empty_table(run, tmp_path, options, target, hits):
    source = tmp_path / "run.tpx3"
    source.write_bytes(b"TPX3" + bytes([0, 0, 8, 0]) + (0x50 << 56).to_bytes(8, "little"))
    told = run(source, *options, "--table", target, "-o", hits)
    assert told["clusters"] == 0
    written = pd.read_parquet(target)
    assert len(written) == 0
    assert {"size", "toa", "x", "y", "tot", "length", "cluster"} <= set(written)
    assert len(pd.read_parquet(hits)) == 0


@pytest.mark.parametrize(
    "files", [["no.parquet"], ["no.h5"], ["no.parquet", "some.parquet"], ["some.parquet", "no.csv"]]
)
@pytest.mark.parametrize("on", quick_first(["workers", "memory"], 1))
def test_files_without_hits_among_others(run, tmp_path, monkeypatch, request, delivered, target, hits, on, files):
    monkeypatch.chdir(tmp_path)
    for name in files:
        write_hits(delivered.isel(hit=slice(500 * name.startswith("some"))), name)
    options = ["--scheduler", request.getfixturevalue("scheduler")] if on == "workers" else []
    told = run(*files, *options, "--table", target, "-o", hits)
    n = 500 * ("some.parquet" in files)
    assert told["hits"] == len(pd.read_parquet(hits)) == n
    assert (len(pd.read_parquet(target)) == 0) == (n == 0)


@pytest.mark.parametrize("ending", [".tpx3", ".t3pa", *sorted(set(READABLE) & set(WRITABLE))])
def test_endings_in_upper_case(run, tmp_path, delivered, target, ending):
    some = in_time(delivered.isel(hit=slice(300)))
    write = {".tpx3": write_tpx3, ".t3pa": write_t3pa}.get(ending, write_hits)
    lower, upper = tmp_path / f"lower{ending}", tmp_path / f"UPPER{ending.upper()}"
    write(some, lower)
    shutil.copy(lower, upper)
    tables = []
    for path in (lower, upper):
        run(path, "--table", target)
        tables.append(pd.read_parquet(target))
    pd.testing.assert_frame_equal(*tables)


def test_clusters_of_a_log_are_chosen_by_its_energies(summary, tmp_path, scheduler, target):
    log = tmp_path / "run.clog"
    log.write_text("Frame 1 (0, 1 s)\n[1, 1, 2.5] [1, 2, 8]\n[9, 9, 7.5]\n[20, 9, 40.25]\n")
    for where in ((), ("--scheduler", scheduler)):
        told = summary("events", log, "--where", "energy > 8", "--table", target, *where)
        assert (told["clusters"], told["clusters_kept"]) == (3, 2)
        assert pd.read_parquet(target)["energy"].tolist() == [10.5, 40.25]


@pytest.mark.parametrize("ending", [".tpx3", ".t3pa", ".clog", ".pmf", *READABLE])
def test_kinds_of_endings(ending):
    assert Pixels(sources=[f"RUN{ending.upper()}"]).kind == Pixels(sources=[f"run{ending}"]).kind


# ------------------------------------------------------------------------------------------------------ running readout
def test_following_a_file_that_grows(run, tmp_path, monkeypatch, raw, target, hits):
    growing = tmp_path / "growing.tpx3"
    options = ("--disorder", 20, "--follow", "--idle", 1)
    with growing_file(growing, raw.read_bytes(), monkeypatch):
        told = run(growing, *options, "--table", target, "-o", hits)
    assert (told["hits"], told["hits_out"]) == (N, N)
    table, labelled = offline(open_tpx3(raw))
    assert_table(target, table)
    assert_hits(hits, labelled, target)


def test_a_readout_that_connects(run, raw, target):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    def send():
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(raw.read_bytes())
                return
            except ConnectionRefusedError:
                time.sleep(0.05)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    address = f"tcp://listen@127.0.0.1:{port}"
    options = ("--layout", "quad", "--disorder", 20, "--where", "size > 2")
    told = run(address, *options, "--follow", "--idle", 600, "--table", target)
    sender.join()
    table = offline(open_tpx3(raw, layout="quad"))[0]
    assert_table(target, select(table, "size > 2"))
    assert told["hits_out"] == N


def test_an_interrupt_ends_a_readout_with_its_output_written(run, monkeypatch, raw, target):
    def interrupted(path, *, idle, stop):
        yield raw.read_bytes()
        os.kill(os.getpid(), signal.SIGINT)
        while not stop():
            time.sleep(0.01)

    monkeypatch.setattr("daskclust.io.timepix.sources.follow", interrupted)
    before = signal.getsignal(signal.SIGINT)
    told = run(raw, "--disorder", 20, "--follow", "--table", target)
    assert told["hits_out"] == N
    assert_table(target, offline(open_tpx3(raw))[0])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_clustering_and_a_third_the_process():
    """What is clustered stays; a signal that comes while a batch is written raises when the next one is asked for."""
    before, stream = signal.getsignal(signal.SIGINT), EventStream([], EventBuilder(200.0))
    ending = Ending(keep=True)

    def batches():
        signal.raise_signal(signal.SIGINT)
        yield 1
        signal.raise_signal(signal.SIGINT)
        yield 2

    with ending.heeding():
        given = ending.clustered(batches(), stream)
        assert next(given) == 1
        assert ending.stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            next(given)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
    ending = Ending(keep=True)
    with ending.heeding():
        given = ending.clustered(iter([1, 2]), stream)
        next(given)
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            next(given)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("options", [(), ("--where", "size > 2")])
def test_a_table_without_tot(run, tmp_path, target, options):
    hits = timepix(500, rng=0).drop_vars(["truth", "tot"])
    hits.to_dataframe().to_csv(tmp_path / "hits.csv", index=False)
    run(tmp_path / "hits.csv", "--table", target, *options)
    expected = cluster_table(hits, EventBuilder(200).fit(hits).labels_)
    expected = expected.where(expected["size"] > 2, drop=True) if options else expected
    found = pd.read_parquet(target)
    assert "tot" not in found
    for name in ("size", "x", "toa", "seed"):
        np.testing.assert_array_equal(found[name], expected[name])
