"""The terminal gives what Python gives: options of each system, drawn at random, against methods of ``ds.clust``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cases.files.particles import write_snapshot
from cases.files.writers import write_arborx, write_npy
from cases.lanes import quick_first

from daskclust import DBSCAN, FriendsOfFriends, datasets, io
from daskclust.cli._options import in_unit_of, quantity
from daskclust.properties import cluster_table, halo_table

BOX = 9.0
# Values of each parameter: as options have them, and as Python has them; "" is an option that is left out.
VALUES = {
    "clue": {
        "dc": {"1.5": 1.5, "3": 3.0},
        "rhoc": {"0.3": 0.3, "5": 5, "cut": "cut"},
        "delta_c": {"": None, "2.5": 2.5},
        "delta_o": {"": None, "4": 4.0},
        "kernel": {"": "flat", "gaussian": "gaussian", "exponential": "exponential"},
        "neighbor_weight": {"": 1.0, "0.5": 0.5},
        "coordinates": {"": None, "y, x": ["y", "x"], "x,u": ["x", "u"]},
        "wrap": {"": None, "x=200": {"x": 200.0}},
        "partition": {"": "auto", "space": "space"},
    },
    "dbscan": {
        "eps": {"0.3": 0.3, "1": 1.0},
        "min_samples": {"": 5, "2": 2, "8": 8},
        "boxsize": {"": "auto", "none": None, str(BOX): BOX, f"{BOX}, none,{2 * BOX}": [BOX, None, 2 * BOX]},
        "weight": {"": None, "mass": "mass"},
    },
    "hdbscan": {
        "min_cluster_size": {"": 5, "12": 12, "40": 40},
        "min_samples": {"": None, "2": 2, "9": 9},
        "cluster_selection_method": {"": "eom", "leaf": "leaf"},
        "cluster_selection_epsilon": {"": 0.0, "0.4": 0.4, "400kpc/h": 0.4},
        "max_cluster_size": {"": None, "90": 90},
        "alpha": {"": 1.0, "1.5": 1.5},
        "allow_single_cluster": {"": False, "yes": True},
        "boxsize": {"": "auto", "none": None, str(BOX): BOX},
    },
    "fof": {
        "linking_length": {"0.25": 0.25, "0.6": 0.6},
        "min_members": {"": 2, "20": 20},
        "boxsize": {"": "auto", "none": None, f"{BOX}, none,{2 * BOX}": [BOX, None, 2 * BOX]},
    },
    "hca": {
        "threshold": {"20": 20, "0.1": 0.1, "1": 1, "1.0": 1.0, "5e-1": 0.5},
        "rule": {"": "thesis", "mahal": "mahal", "mahal0": "mahal0", "euclid_mahal": "euclid_mahal"},
        "distance": {"": "centroid", "full": "full"},
        "normalize": {"": False, "yes": True},
        "apriori": {"": ..., "none": None, "4": 4, "kmeans": "kmeans"},
        "noise_label": {"": -1, "2": 2},
        "order": {"": "height", "groups": "groups"},
        "n_clusters": {"3": 3, "7": 7},
        "min_size": {"": 1, "5": 5, "0.05": 0.05},
    },
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Return a file for each system, and what reads it."""
    folder, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    hits = datasets.hgcal_event(20, n_noise=1000, rng=0).drop_vars("truth")
    n = hits.sizes["hit"]
    hits = hits.assign(u=("hit", rng.uniform(-30, 30, n), {"units": "cm"}), cut=("hit", rng.uniform(0.1, 2, n)))
    io.write_hits(hits, folder / "clue.parquet")
    box = datasets.cosmology_box(1500, rng=0).drop_vars("halo")
    for name in ("dbscan", "hdbscan", "fof"):
        io.write_particles(box, folder / f"{name}.hdf5")
    io.write_cells(datasets.apriori_gaussians(5, 24, channels=3, shuffle=True, rng=0), folder / "hca.parquet")
    readers = {"clue": io.read_hits, "dbscan": io.open_particles, "fof": io.open_particles, "hca": io.read_cells}
    readers["hdbscan"] = lambda path: io.open_particles(path).compute()
    return {name: (next(folder.glob(f"{name}.*")), read) for name, read in readers.items()}


def draw(name, number):
    """Return options, and the parameters that they mean."""
    rng = np.random.default_rng(number)
    drawn = {each: str(rng.choice(list(values))) for each, values in VALUES[name].items()}
    words = []
    for each, text in drawn.items():
        option = f"--{each.replace('_', '-')}"
        words += [] if not text else [option] if text == "yes" else [option, text]
    return words, {each: VALUES[name][each][text] for each, text in drawn.items()}


def table_of(name, result, parameters, count):
    if name == "clue":
        return cluster_table(result, n_clusters=count)
    if name == "fof" or parameters.get("boxsize") is not None:
        box, mass = parameters["boxsize"], "mass" if name == "fof" else parameters.get("weight")
        velocities = {} if name == "fof" else {"velocities": None}
        return halo_table(result, boxsize=box, mass=mass, n_clusters=count, **velocities)
    return cluster_table(result, weight=parameters.get("weight"), n_clusters=count)


@pytest.mark.parametrize("number", quick_first(range(4), 2))
@pytest.mark.parametrize("name", VALUES)
def test_options_are_parameters(summary, sets, tmp_path, name, number):
    words, parameters = draw(name, number)
    (source, read), target, table = sets[name], tmp_path / "points.parquet", tmp_path / "table.csv"
    told = summary(name, source, *words, "-o", target, "--table", table)
    result = getattr(read(source).clust, name)(**parameters).compute()
    written = pd.read_parquet(target)
    for variable, values in result.data_vars.items():
        if values.ndim == 1 and variable in written:
            np.testing.assert_array_equal(written[variable], values, err_msg=f"{variable} of {words}")
    label = result["label"].values
    count = label.max() + 1
    assert told.get("clusters", told.get("halos")) == count
    assert told.get("noise", len(label) - told.get("particles_in_halos", 0)) == (label < 0).sum()
    assert {"label", "is_core", "density", "nearest_higher", "is_seed"} & set(result) <= set(written)
    rows = pd.read_csv(table, comment="#")
    np.testing.assert_array_equal(rows["size"], np.bincount(label[label >= 0], minlength=count))
    if name != "hca":
        expected = table_of(name, result, parameters, count)
        assert set(rows) == {str(each) for each in expected.variables}
        for column in expected.data_vars:
            values = np.asarray(rows[column], np.float64)  # of no rows CSV tells no type
            np.testing.assert_allclose(values, expected[column], rtol=1e-6, atol=1e-9, err_msg=column)


@pytest.mark.parametrize(
    ("given", "suffix"),
    [(".npy", ".parquet"), (".arborx", ".npz"), (".csv", ".csv"), (".h5", ".h5"), (".zarr", ".zarr")],
)
def test_points_of_every_kind_of_file_with_labels_are_read_again(summary, tmp_path, given, suffix):
    flat = datasets.seed_spreader(1000, 2, n_clusters=3.0, noise=0.05, rng=0).drop_vars("truth")
    source, target = tmp_path / f"points{given}", tmp_path / f"labels{suffix}"
    {".npy": write_npy, ".arborx": write_arborx, ".zarr": io.write_particles}.get(given, io.write_hits)(flat, source)
    told = summary("dbscan", source, "--eps", 60, "--min-samples", 8, "-o", target)
    result = flat.clust.dbscan(60.0, min_samples=8)
    written = io.open_particles(target) if suffix == ".zarr" else io.read_hits(target, field="particles")
    for name in ("label", "is_core"):
        np.testing.assert_array_equal(written[name], result[name])
    np.testing.assert_array_equal(written["x"].astype(np.float32), flat["x"])  # text has the shortest digits
    again = summary("dbscan", target, "--eps", 60, "--min-samples", 8)
    assert told["core_points"] == again["core_points"] == int(result["is_core"].sum())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, target.name])


def test_columns_of_ones_own_and_units(summary, tmp_path):
    source = tmp_path / "odd.csv"
    source.write_text("u;v;E\n0;0;1\n1;1;2\n")
    naming = ("--columns", "u=x, v=y,E=energy", "--units", "x=mm,y=mm,energy=MeV")
    told = summary("clue", source, "--dc", 0.05, "--rhoc", 0.002, *naming)
    assert told["clusters"] == 1  # 1.4 mm are over 0.05 cm, 2 MeV are 0.002 GeV: the second hit alone
    told = summary("dbscan", source, "--eps", 2, "--columns", "u=x,E=", "--coordinates", "x,v")
    assert told["points"] == 2
    source.write_text("7,0,0\n7,0,0.1\n7,5,5\n")  # no names
    told = summary("dbscan", source, "--eps", 1, "--min-samples", 2, "--columns", "t,x,y", "--coordinates", "x, y")
    assert (told["clusters"], told["noise"]) == (1, 1)


@pytest.mark.parametrize("units", ["degrees", "radians"])
def test_angles_on_a_sphere(command, summary, tmp_path, units):
    rng, source, target = np.random.default_rng(0), tmp_path / "sky.csv", tmp_path / "labels.parquet"
    sky, one = rng.uniform([-90, -180], [90, 180], (400, 2)), 1.0 if units == "degrees" else np.pi / 180
    pd.DataFrame(sky * one, columns=["dec", "ra"]).to_csv(source, index=False)
    how = ("--metric", "haversine", "--units", units, "--columns", "dec=x,ra=y", "-o", target)
    for system, option, made in (("dbscan", "--eps", DBSCAN), ("fof", "--linking-length", FriendsOfFriends)):
        summary(system, source, option, "8deg", *how)
        labels = made(8.0, metric="haversine", units="degrees").fit(sky).labels_
        np.testing.assert_array_equal(pd.read_parquet(target)["label"], labels)
        for words, told in (
            ((*how, "--table", tmp_path / "t.csv"), "--table has positions in space"),
            (("--units", units), f"--units {units} is for --metric haversine"),
        ):
            status, _, error = command(system, source, option, 8, *words)
            assert status == 1
            assert told in error


def test_particles_of_a_type(command, summary, tmp_path):
    gas = datasets.cosmology_box(500, rng=0).drop_vars("halo").assign_attrs(particle_type=0, boxsize=BOX)
    io.write_particles(gas, tmp_path / "gas.hdf5")
    for kind in ("gas", 0):
        told = summary("fof", tmp_path / "gas.hdf5", "--linking-length", 0.5, "--particle-type", kind)
        assert told["particles"] == 500
    code, _, err = command("fof", tmp_path / "gas.hdf5", "--b", 0.2)
    assert code == 1
    assert err == (
        f"error: {tmp_path / 'gas.hdf5'} has no particles of type 1\n"
        "hint: it has PartType0: choose one with --particle-type 0\n"
    )


@pytest.mark.parametrize(
    ("line", "option", "value", "same", "wrong"),
    [
        ("clue clue.parquet --rhoc 0.3", "--dc", 1.5, ["15mm", "1.5 cm", "0.015m", "1.5e4um"], "1.5ns"),
        ("clue clue.parquet --dc 1.5 --rhoc 0.3", "--delta-c", 2.0, ["20mm"], "2GeV"),
        ("clue clue.parquet --dc 1.5 --rhoc 0.3", "--delta-o", 4.0, ["4e1 mm"], "4s"),
        ("dbscan dbscan.hdf5", "--eps", 0.3, ["300kpc/h", "3e-4Gpc/h"], "0.3deg"),
        ("fof fof.hdf5", "--linking-length", 0.25, ["250 kpc/h"], "0.25km/s"),
        ("events run.tpx3", "--dt-max", 200.0, ["0.2us", "200ns", "2e-4 ms"], "200cm"),
    ],
)
def test_parameters_in_other_units(command, summary, sets, monkeypatch, line, option, value, same, wrong):
    folder = sets["clue"][0].parent
    monkeypatch.chdir(folder)
    io.write_tpx3(datasets.timepix(3000, kind="pion45", rng=0).drop_vars("truth"), folder / "run.tpx3")
    timed = ("seconds", "_per_second")
    facts = [summary(*line.split(), option, each) for each in (value, *same)]
    facts = [{name: told for name, told in each.items() if not any(t in name for t in timed)} for each in facts]
    for each in facts[1:]:
        assert each == {
            name: pytest.approx(told) if isinstance(told, float) else told for name, told in facts[0].items()
        }
    for text, what in ((wrong, "cannot be converted to"), (f"{value}furlong", "'furlong', which is no known unit")):
        code, _, err = command(*line.split(), option, text)
        assert (code, f"{option[2:].replace('-', '_')} is given in" in err, what in err) == (1, True, True), err


@pytest.mark.parametrize(
    ("unit", "data", "power"),
    [("us", "ns", 3), ("s", "ns", 9), ("ps", "ns", -3), ("mm", "cm", -1), ("m", "cm", 2), ("kpc/h", "Mpc/h", -3)],
)
def test_a_unit_changes_no_digit(unit, data, power):
    for digits in [3, 8075, 15625, *np.random.default_rng(0).integers(1, 10**12, 200).tolist()]:
        given = {"dc": quantity(f"{digits}e-4{unit}"), "sections": {1: quantity(f"{digits}e-4 {unit}")}}
        same = float(f"{digits}e{power - 4}")
        assert in_unit_of(data, given) == {"dc": same, "sections": {1: same}}


@pytest.mark.parametrize("text", ["1e-6", "1E-06", "2e3", "1e+3", ".5e-3", "0.000001"])
def test_a_power_of_ten_is_no_unit(text):
    assert in_unit_of(None, {"dc": quantity(text)}) == {"dc": float(text)}
    assert in_unit_of("cm", {"dc": quantity(f"{text}cm")}) == {"dc": float(text)}


@pytest.mark.parametrize("text", ["1e999m", "1e308 m"])
def test_what_is_too_large_in_the_unit_of_the_data_is_infinite(text):
    assert in_unit_of("cm", {"dc": quantity(text)}) == {"dc": float("inf")}  # which estimators refuse


def test_a_unit_where_the_data_have_none(command, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n0,0\n1,1\n")
    _, _, err = command("dbscan", tmp_path / "a.csv", "--eps", "2cm")
    assert err.splitlines()[0] == "error: eps is given in 'cm', and the data have no unit"


def test_units_that_make_a_box_too_large_are_questioned(command, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "snap.hdf5"
    coordinates = {"Coordinates": rng.uniform(0, 39148, (200, 3))}
    counts = np.array([0, 200, 0, 0, 0, 0])
    header = {"BoxSize": 39148.0, "NumPart_Total": counts, "NumPart_ThisFile": counts, "MassTable": np.ones(6)}
    write_snapshot(path, {"PartType1": coordinates}, Header=header)
    for unit, is_questioned in (("Mpc/h", True), ("kpc/h", False)):
        units = ",".join(f"{axis}={unit}" for axis in "xyz")
        _, _, err = command("fof", path, "--b", 0.2, "--units", units)
        assert ("note: the box has a side of 39,148 Mpc/h: are --units right?" in err) == is_questioned, err


def test_a_catalogue_has_units_and_the_box_of_the_user(summary, sets, tmp_path):
    source, target = sets["fof"][0], tmp_path / "halos.parquet"
    told = summary("fof", source, "--b", 0.2, "--boxsize", 2 * BOX, "--table", target)
    assert told["linking_length"] == pytest.approx(0.4 * BOX / 1500 ** (1 / 3))
    assert (told["linking_length_units"], told["b"]) == ("Mpc/h", pytest.approx(0.2))
    catalogue = io.read_hits(target)
    assert catalogue["r_max"].attrs["units"] == "Mpc/h"
    assert catalogue.attrs["noise_size"] == 1500 - told["particles_in_halos"]
    assert told["largest"] == catalogue["size"].max()
