"""Outputs have all columns of the file under their own names, and the results: every command and format."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import uproot
import xarray as xr
import zarr
from cases.lanes import some_of

from daskclust import DBSCAN, EventBuilder, datasets, io
from daskclust.accessor._results import RESULTS

N = 60
LINES = {
    "clue": "clue {} --dc 1 --rhoc 2 --columns PosX=x,PosY=y",
    "dbscan": "dbscan {} --eps 0.5 --columns PosX=x,PosY=y",
    "fof": "fof {} --linking-length 0.5 --columns PosX=x,PosY=y",
    "hca": "hca {} --threshold 10 --n-clusters 3 --channels PosX,PosY --transform arcsinh",
}
INPUTS = [".parquet", ".csv", ".h5", ".npz", ".root", ".zarr"]
OUTPUTS = [*INPUTS, ".fcs"]


def columns(suffix):
    """Return columns of every kind that a format holds."""
    rng = np.random.default_rng(0)
    text = rng.choice(["a", "b, c", 'q"', "ä", ""], N)
    frame = pd.DataFrame({"PosX": rng.normal(size=N), "PosY": rng.normal(size=N), "width": rng.integers(0, 5, N)})
    frame["note"] = text.astype(object)
    frame["Weight of it"] = rng.uniform(size=N)
    if suffix == ".parquet":
        frame["when"] = pd.date_range("2024-01-01", periods=N, freq="s", tz="UTC")
        frame["kind"] = pd.Categorical(text)
        frame["few"] = pd.array(np.where(np.arange(N) % 3, 7, None), "Int64")
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name in frame:
                values = frame[name].to_numpy()
                file.create_dataset(name, data=values, dtype=h5py.string_dtype() if values.dtype == object else None)
    elif path.suffix == ".npz":
        arrays = {name: frame[name].to_numpy() for name in frame}
        np.savez(path, **{name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()})
    elif path.suffix == ".root":
        import awkward as ak

        with uproot.recreate(path) as file:
            file["events"] = {name: ak.Array(frame[name].tolist()) for name in frame}
    else:
        xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame}).to_zarr(path, consolidated=False)


def read(path):
    """Return the columns of a file, by programs of others."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False, comment="#")
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            text = {name for name in file if h5py.check_string_dtype(file[name].dtype)}
            return pd.DataFrame({name: file[name].asstr()[:] if name in text else file[name][:] for name in file})
    if path.suffix == ".npz":
        return pd.DataFrame(dict(np.load(path)))
    if path.suffix == ".zarr":
        return pd.DataFrame({name: array[:] for name, array in zarr.open(path).arrays()})
    if path.suffix == ".root":
        with uproot.open(path) as file:
            return pd.DataFrame({name: branch.array().to_list() for name, branch in file["points"].items()})
    cells = io.open_fcs(path, transform=None, compensate=False)
    return pd.DataFrame(cells["X"].values, columns=cells["channel"].values)


def is_number(values):
    return isinstance(values.dtype, np.dtype) and values.dtype.kind in "fiu"


def as_text(values):
    """Return values as other formats than Parquet hold text, times and what is missing."""
    text = ["" if pd.isna(each) else str(each).removesuffix("+00:00") for each in values]
    return [each.replace(" 00:", "T00:").removesuffix(".000000") for each in text]


@some_of(14, name=LINES, output=OUTPUTS)
def test_outputs_keep_what_came(summary, tmp_path, name, output):
    inputs = {"clue": INPUTS[:-1]}.get(name, INPUTS)
    given = inputs[sum(map(ord, name + output)) % len(inputs)]
    source, target, frame = tmp_path / f"in{given}", tmp_path / f"out{output}", columns(given)
    write(frame, source)
    kept = [each for each in frame if is_number(frame[each])] if output == ".fcs" else list(frame)
    options = ("--only", ",".join([*kept, "label"])) if output == ".fcs" else ()
    summary(*LINES[name].format(source).split(), "-o", target, *options)
    written = read(target)
    results = ["label"] if output == ".fcs" or name == "hca" else RESULTS[name]
    assert set(written) == {*kept, *results}
    for each in kept:
        if output == given == ".parquet":
            found, came = (pq.read_table(path).column(each) for path in (target, source))
            assert (found.type, found.to_pylist()) == (came.type, came.to_pylist())
        elif is_number(frame[each]):
            wanted = frame[each].to_numpy().astype(np.float32 if output == ".fcs" else frame[each].dtype)
            np.testing.assert_array_equal(written[each], wanted, err_msg=each)
        else:
            assert as_text(written[each]) == as_text(frame[each]), each
    if name == "dbscan" and output != ".fcs":  # it is read again as the source was
        expected = DBSCAN(0.5).fit(frame[["PosX", "PosY"]].to_numpy()).labels_
        again = tmp_path / f"again{output}"
        summary(*LINES[name].format(target).split(), "-o", again)
        for each in (written, read(again)):
            np.testing.assert_array_equal(each["label"], expected)
        assert set(read(again)) == set(written)


@pytest.mark.parametrize("given", INPUTS)
def test_cells_are_the_same_in_every_format(summary, tmp_path, given):
    """As other programs write them, and as this one does."""
    rng, again = np.random.default_rng(1), tmp_path / f"again{given}"
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["CD3", "CD4", "FSC-A"]).assign(group=np.arange(N) % 4)
    write(frame, tmp_path / f"in{given}")
    options = ("--threshold", 0.1, "--n-clusters", 2, "--apriori", "group")
    found = [summary("hca", tmp_path / f"in{given}", *options, "-o", again), summary("hca", again, *options)]
    assert found[0]["largest_height"] == found[1]["largest_height"] > 0
    for path, label in ((tmp_path / f"in{given}", []), (again, ["label"])):
        for chunks in (None, 25):
            cells = io.read_cells(path, apriori="group", chunks=chunks)
            assert list(cells) == ["X", *label, "apriori"]
            assert (cells.chunks != {}) == (chunks is not None)
            np.testing.assert_array_equal(cells["X"].sel(channel=["CD3", "CD4", "FSC-A"]), frame.iloc[:, :3])
            np.testing.assert_array_equal(cells["apriori"], frame["group"])


@some_of(4, order=["in time", "shuffled", "on workers"], output=[".parquet", ".csv", ".h5", ".root"])
def test_tables_of_pixel_hits_too(summary, tmp_path, monkeypatch, request, order, output):
    """Hits come by cluster, window by window, so that rows are told by a number of their own."""
    monkeypatch.setattr("daskclust.cli.pixels.in_time.ROUND", 100)
    hits = datasets.timepix(500, rng=0).drop_vars("truth").to_dataframe().reset_index(drop=True)
    text = [f"{k}; {k % 7}" for k in range(500)]
    frame = hits.rename(columns={"x": "col", "y": "row"}).assign(number=np.arange(500), note=text)
    frame["kind"] = pd.Categorical(frame["number"] % 3 == 0).rename_categories({False: "no", True: "yes"})
    frame = frame.sample(frac=1, random_state=0) if order == "shuffled" else frame
    source, target = tmp_path / "in.parquet", tmp_path / f"out{output}"
    frame.to_parquet(source, index=False)
    there = ("--scheduler", request.getfixturevalue("scheduler")) if order == "on workers" else ()
    line = ("events", source, "--dt-max", 200, "--columns", "col=x,row=y", "-o", target)
    summary(*line, *there)
    written = read(target).set_index("number").sort_index()
    expected = hits.assign(label=EventBuilder(200.0).fit(hits).labels_) if order != "shuffled" else hits
    assert set(written) == {*frame, "label"} - {"number"}
    for name in set(frame) - {"number"}:
        found, came = written[name].tolist(), frame.set_index("number").sort_index()[name].tolist()
        assert found == came, name
    if order != "shuffled":
        np.testing.assert_array_equal(written["label"], expected["label"])
    if output == ".csv":
        summary(*line, *there, "--only", "note,label")
        assert list(read(target)) == ["note", "label"]


def test_chosen_columns(command, tmp_path):
    write(columns(".csv"), source := tmp_path / "in.csv")
    line = (*LINES["dbscan"].format(source).split(), "-o", tmp_path / "out.csv")
    assert command(*line, "--only", "note, label")[0] == 0
    assert list(read(tmp_path / "out.csv")) == ["note", "label"]
    for options, what, hint in (
        (("--only", "nota"), "--only names 'nota', which -o does not have (did you mean 'note'?)", "it has 'PosX'"),
        (("-o", tmp_path / "out.fcs"), "-o .fcs holds numbers alone, got 'note'", "--only PosX,PosY,width"),
    ):
        code, _, err = command(*line, *options)
        assert code == 1
        assert what in err.splitlines()[0]
        assert hint in err.splitlines()[1]


def test_an_fcs_file_keeps_its_channels_and_its_matrix(summary, tmp_path):
    """Channels are written as they came, whatever was done to those that were clustered."""
    from cases.files.fcs_reference import fcs_bytes

    rows = [(k % 7, 2 * k % 11, 7 - k % 5) for k in range(40)]
    (tmp_path / "in.fcs").write_bytes(fcs_bytes(["<f4"] * 3, rows, SPILL="2,D1,D2,1,0.5,0.25,1"))
    plain = {"transform": None, "compensate": False}
    before = io.open_fcs(tmp_path / "in.fcs", **plain)
    line = ("hca", tmp_path / "in.fcs", "--threshold", 5, "--n-clusters", 2, "--channels", before["channel"].values[0])
    summary(*line, "-o", tmp_path / "out.fcs")
    after = io.read_cells(tmp_path / "out.fcs", **plain)
    np.testing.assert_array_equal(after["X"], before["X"])
    assert set(np.unique(after["label"])) == {0, 1}
    xr.testing.assert_allclose(
        io.read_cells(tmp_path / "out.fcs")["X"].drop_attrs(), io.open_fcs(tmp_path / "in.fcs")["X"].drop_attrs()
    )


@pytest.mark.parametrize("output", [".parquet", ".csv", ".zarr"])
def test_workers_keep_them_too(summary, tmp_path, scheduler, output):
    frame, source = columns(".parquet"), tmp_path / "in.parquet"
    frame.to_parquet(source, row_group_size=25)
    found = []
    for options in ((), ("--scheduler", scheduler, "--chunks", 20)):
        target = tmp_path / f"out{len(found)}{output}"
        summary(*LINES["dbscan"].format(source).split(), "-o", target, *options)
        found.append(read(target))
    assert set(found[0]) == {*frame, "label", "is_core"}
    pd.testing.assert_frame_equal(*found, check_like=True)


@pytest.mark.parametrize("given", [".h5", ".root"])
def test_columns_of_one_of_several_tables(summary, tmp_path, given):
    frame, source = columns(given), tmp_path / f"in{given}"
    if given == ".h5":
        write(frame, source)
        with h5py.File(source, "a") as file:
            for place in ("first", "second"):
                for name in frame:
                    file.copy(name, f"{place}/{name}")
            for name in frame:
                del file[name]
    else:
        import awkward as ak

        with uproot.recreate(source) as file:
            file["first"], file["second"] = ({name: ak.Array(frame[name].tolist()) for name in frame} for _ in range(2))
    summary(*LINES["dbscan"].format(f"{source}:second").split(), "-o", tmp_path / "out.csv")
    written = read(tmp_path / "out.csv")
    assert set(written) == {*frame, *RESULTS["dbscan"]}
    assert as_text(written["note"]) == as_text(frame["note"])


@pytest.mark.parametrize("with_text", [False, True])
def test_positions_in_one_dataset(summary, tmp_path, with_text):
    """Beside other columns they are kept as the reader names them; alone they are x, y, z."""
    positions = np.random.default_rng(0).random((N, 3))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["pos"] = positions
        if with_text:
            file.create_dataset("name", data=[f"s{k}" for k in range(N)], dtype=h5py.string_dtype())
    summary("dbscan", tmp_path / "in.h5", "--eps", 0.3, "-o", tmp_path / "out.csv")
    written = read(tmp_path / "out.csv")
    names = ["pos_x", "pos_y", "pos_z", "name"] if with_text else ["x", "y", "z"]
    assert set(written) == {*names, *RESULTS["dbscan"]}
    np.testing.assert_array_equal(written[names[:3]], positions)


@pytest.mark.parametrize("given", [".parquet", ".root"])
def test_lists_of_events_are_joined_as_readers_do(summary, tmp_path, given):
    import awkward as ak
    import pyarrow as pa

    rng, sizes = np.random.default_rng(0), [3, 0, 5, 2]
    lists = {f"rechit_{axis}": [rng.normal(size=n).tolist() for n in sizes] for axis in "xy"}
    source, target = tmp_path / f"in{given}", tmp_path / "out.parquet"
    if given == ".parquet":
        pq.write_table(pa.table({**lists, "run": [7, 8, 9, 9]}), source)
    else:
        with uproot.recreate(source) as file:
            file["hits"] = {name: ak.Array(values) for name, values in lists.items()} | {"run": np.array([7, 8, 9, 9])}
    told = summary("clue", source, "--dc", 1, "--rhoc", 0.5, "-o", target)
    written = pd.read_parquet(target)
    assert told["hits"] == len(written) == sum(sizes)
    assert {"rechit_x", "rechit_y", "run", "event", *RESULTS["clue"]} <= set(written) - {"x", "y"}
    for axis in "xy":
        assert written[f"rechit_{axis}"].tolist() == [value for each in lists[f"rechit_{axis}"] for value in each]
    assert written["run"].tolist() == np.repeat([7, 8, 9, 9], sizes).tolist()
    assert written["event"].tolist() == np.repeat(range(4), sizes).tolist()


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("line", ["dbscan --eps 1.5 --min-samples 1", "clue --dc 1 --rhoc 0.5", "events --dt-max 10"])
def test_types_of_parquet_stay(summary, tmp_path, line, workers):
    import datetime
    import decimal

    import pyarrow as pa

    points = {"x": [0, 0, 5], "y": [0, 1, 5], "toa": [1.0, 2.0, 3.0]}
    own = {"cells": pa.array([[], [1], [1, 2]], pa.list_(pa.int16())), "words": [["a"], [], ["b"]]}
    own |= {unit: pa.array([1, None, -86_400_001], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")}
    own |= {"at": [datetime.time(k) for k in range(3)], "price": [decimal.Decimal(k) for k in range(3)]}
    sources = [tmp_path / f"{k}.parquet" for k in (0, 1)]
    for source in sources:
        pq.write_table(pa.table({**points, **own}), source)
    name, *options = line.split()
    for given in (sources[:1], sources):
        summary(name, *given, *options, "--workers", workers, "-o", tmp_path / "out.parquet")
        found = pq.read_table(tmp_path / "out.parquet")
        for each in own:
            came = pq.read_table(sources[0]).column(each)
            assert found.column(each).type == came.type
            assert found.column(each).to_pylist() == len(given) * came.to_pylist()
    summary(name, sources[0], *options, "-o", tmp_path / "out.csv")
    assert read(tmp_path / "out.csv")["cells"].tolist() == ["[]", "[1]", "[1, 2]"]


def test_lists_of_points_in_trees_become_texts(summary, tmp_path):
    import awkward as ak

    with uproot.recreate(tmp_path / "in.root") as file:
        file["points"] = {"x": np.arange(3.0), "y": np.zeros(3), "cells": ak.Array([[], [1], [1, 2]])}
    for name in ("out.parquet", "out.root"):
        summary("dbscan", tmp_path / "in.root", "--eps", 2, "--min-samples", 1, "-o", tmp_path / name)
        assert list(read(tmp_path / name)["cells"]) == ["[]", "[1]", "[1, 2]"]


@pytest.mark.parametrize("name", [name for name in LINES if name != "hca"])
def test_a_table_as_fcs_has_what_others_have(summary, tmp_path, name):
    write(columns(".parquet"), tmp_path / "in.parquet")
    line = LINES[name].format(tmp_path / "in.parquet").split()
    found = []
    for table in ("table.fcs", "table.parquet"):
        summary(*line, "--table", tmp_path / table)
        found.append(read(tmp_path / table))
    assert list(found[0]) == list(found[1])
    np.testing.assert_array_equal(found[0], found[1].to_numpy().astype(np.float32))


@pytest.mark.parametrize("output", [*INPUTS[1:], ".fcs"])
def test_durations_are_texts_elsewhere(command, tmp_path, output):
    import pyarrow as pa

    took = {unit: pa.array([1, None, -86_400_001], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")}
    pq.write_table(pa.table({"x": [0.0, 1.0, 2.0], "y": np.zeros(3), **took}), tmp_path / "in.parquet")
    target = tmp_path / f"out{output}"
    code, _, err = command("dbscan", tmp_path / "in.parquet", "--eps", 2, "--min-samples", 1, "-o", target)
    if output == ".fcs":
        assert code == 1
        assert "-o .fcs holds numbers alone, got 's', 'ms', 'us', 'ns'" in err
        assert not target.exists()
        return
    assert code == 0
    found, expected = read(target), pd.read_parquet(tmp_path / "in.parquet")
    for unit in took:
        assert found[unit][1] == ""
        assert (pd.to_timedelta(found[unit][::2]).to_numpy() == expected[unit][::2].to_numpy()).all()
