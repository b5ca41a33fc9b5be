"""Units: one table, and the answer of data in mixed units is that of data converted by hand, whatever way it takes."""

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.lanes import in_long_lane
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import CLUE, DBSCAN, EventBuilder, EventStream, FriendsOfFriends, MahalanobisHCA, datasets, io
from daskclust.core.data.units import BOX, SIZES, converted, parse, ratio
from daskclust.properties import cluster_table, halo_table

NAMES = [name for sizes in SIZES.values() for name in sizes]
LENGTHS = [("cm", "mm", "um", "m", "nm", "km"), ("kpc", "pc", "Mpc"), ("kpc/h", "Mpc/h")]  # powers of ten apart
SCALE = {"clue": 2.0, "dbscan": 1.0, "fof": 0.5}  # lengths that suit `points`


def points(n: int = 400) -> xr.Dataset:
    """Return points on a fine lattice, so that their distances are often those that are asked for."""
    random = np.random.default_rng(3)
    return xr.Dataset({axis: ("hit", random.integers(0, 80, n) / 4) for axis in ("x", "y")})


def in_units(ds: xr.Dataset, **units: str) -> xr.Dataset:
    """Return variables with units: their values are those of `ds`, in these units."""
    return ds.assign({name: ds[name].copy().assign_attrs(units=unit) for name, unit in units.items()})


def by_hand(ds: xr.Dataset, unit: str, **units: str) -> xr.Dataset:
    """Return the same points with all in one unit, rounded once."""
    sizes = {name: Fraction(str(size)) for name, size in SIZES["length"].items()}
    exact = {name: sizes[theirs.removesuffix("/h")] / sizes[unit.removesuffix("/h")] for name, theirs in units.items()}
    values = {name: [float(Fraction(value) * exact[name]) for value in ds[name].values] for name in units}
    return ds.assign({name: ("hit", each, {"units": unit}) for name, each in values.items()})


def label_of(system: str, ds: xr.Dataset) -> Any:
    """Return labels by ``ds.clust``, with lengths of one unit of x."""
    length = SCALE.get(system, 0.0)
    if system == "clue":
        return ds.clust.clue(length, 3.0)["label"]
    return ds.clust.hca(n_clusters=4)["label"] if system == "hca" else getattr(ds.clust, system)(length)["label"]


def fit_of(system: str, ds: xr.Dataset) -> Any:
    """Return labels of an estimator that is fitted on the Dataset."""
    length = SCALE.get(system, 0.0)
    if system == "hca":
        return MahalanobisHCA().fit(ds).labels(n_clusters=4)
    estimators = {"clue": CLUE(length, 3.0), "dbscan": DBSCAN(length), "fof": FriendsOfFriends(length)}
    return estimators[system].fit(ds).labels_


# ---------------------------------------------------------------------------------------------------------------- table
@pytest.mark.parametrize("quantity", SIZES)
def test_the_table_is_consistent(quantity: str) -> None:
    sizes = SIZES[quantity]
    assert next(iter(sizes.values())) == 1
    for unit in sizes:
        found = parse(unit)
        assert found is not None
        assert quantity in found.quantities
        for other in sizes:
            there, back = ratio(unit, other), ratio(other, unit)
            assert there is not None
            assert back is not None
            assert there * back == 1
    assert all(parse(variable.unit or variable.usual) for field in io.FIELDS.values() for variable in field.variables)


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_units_convert_within_a_quantity_alone(one: str, other: str) -> None:
    same = any(one in sizes and other in sizes for sizes in SIZES.values())
    assert (ratio(one, other) is not None) == same


def test_texts_of_units() -> None:
    assert (ratio("1.5625ns", "ns"), ratio("1e3ps", "ns"), ratio("2.5eV", "keV")) == (
        Fraction(25, 16),
        1,
        Fraction(1, 400),
    )
    assert parse("10") is parse("1e-6") is parse("2 .5") is None
    assert (ratio("1e3 ns", "ns"), ratio(" us ", "ns"), ratio("1.5625 ns", "ns")) == (1000, 1000, Fraction(25, 16))
    assert not any(map(parse, ("furlong", "0 ns", "1.2.3 ns", "ns ns", "1e999 ns", "rad/h", "/h", "MM")))
    assert (ratio("kpc/h", "Mpc/h"), ratio("1e10 Msun/h", "Msun/h")) == (Fraction(1, 1000), 10**10)
    assert (ratio("Mpc/h", "Mpc"), ratio("Mpc/h", "Mpc", 70.0), ratio("Mpc", "kpc/h", 0.5)) == (None, None, 500)
    assert ratio("", "pixel") == ratio("1", "rad") == 1
    assert (ratio("pixel", "rad"), ratio("keV", "ns")) == (None, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int64])
def test_values_are_rounded_once(dtype: Any) -> None:
    values = np.arange(1, 500).astype(dtype)
    real = dtype if np.dtype(dtype).kind == "f" else np.float64
    for by in (Fraction(1, 10), Fraction(10), Fraction(25)):
        got = converted(values, by)
        assert got.dtype == real
        np.testing.assert_array_equal(got, [real(float(Fraction(int(v)) * by)) for v in values])
    assert converted(values, Fraction(1)) is values


# -------------------------------------------------------------------------------------------------------------- systems
@pytest.mark.parametrize("system", ["clue", "dbscan", "fof", "hca"])
@settings(max_examples=in_long_lane(1000, otherwise=6))
@given(
    pair=st.sampled_from(LENGTHS).flatmap(lambda some: st.tuples(*[st.sampled_from(some)] * 2)),
    chunk=st.sampled_from([None, 150]),
)
def test_the_answer_is_that_of_data_converted_by_hand(system: str, pair: tuple[str, str], chunk: int | None) -> None:
    x, y = pair
    size = ratio(x, y)
    ds = points()
    ds["y"] = converted(ds["y"], size)  # of the order of x
    mixed, hand = in_units(ds, x=x, y=y), by_hand(ds, x, x=x, y=y)
    before = mixed.copy(deep=True)
    asked = mixed if chunk is None else mixed.chunk(hit=chunk)
    expected = label_of(system, hand).values
    assert len(np.unique(expected)) > 2
    np.testing.assert_array_equal(label_of(system, asked).values, expected)
    np.testing.assert_array_equal(np.asarray(fit_of(system, asked)), expected)
    xr.testing.assert_identical(mixed, before)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"x": "GeV", "y": "furlong"}, r"y.* has the unit 'furlong', which is not known; known: cm, .*Mpc.*GeV"),
        ({"x": "GeV", "y": "cm"}, r"x has the unit 'GeV' and y 'cm', which cannot be converted .*; scale one"),
        ({"x": "1", "y": "cm"}, r"x has the unit '1' and y 'cm'"),
        ({"y": "mm"}, r"y has the unit 'mm', and x has none, .*; name the unit of each"),
        ({"x": "Mpc", "y": "kpc/h"}, r"x has the unit 'Mpc' and y 'kpc/h', .* without h, which attrs\['hubble'\]"),
    ],
)
def test_units_that_do_not_go_together(units: dict[str, str], message: str) -> None:
    ds = in_units(points(), **units)
    for system, way in itertools.product(["clue", "dbscan", "fof", "hca"], [label_of, fit_of]):
        for given_points in (ds, ds.chunk(hit=100)):
            with pytest.raises(ValueError, match=message):
                way(system, given_points)
    with pytest.raises(ValueError, match=message):
        cluster_table(ds, np.zeros(400, int), weight=None)


def test_one_unit_of_angles_and_numbers() -> None:
    random = np.random.default_rng(0)
    ds = xr.Dataset({"eta": ("hit", random.normal(size=300)), "phi": ("hit", random.uniform(-3, 3, 300))})
    ds["eta"].attrs["units"], ds["phi"].attrs["units"] = "1", "rad"
    axes: Any = {"coordinates": ("eta", "phi"), "wrap": {"phi": 2 * np.pi}}
    expected = ds.clust.clue(0.3, 4.0, **axes)
    degrees = ds.assign(phi=("hit", np.rad2deg(ds["phi"].values), {"units": "deg"}))
    np.testing.assert_array_equal(degrees.clust.clue(0.3, 4.0, **axes)["label"], expected["label"])
    assert expected["delta"].attrs["units"] == "1"


# -------------------------------------------------------------------------------------------------------------- results
def test_results_name_the_unit_of_lengths() -> None:
    ds = in_units(points().assign(energy=("hit", np.ones(400))), x="mm", y="cm", energy="MeV")
    found = ds.clust.clue(2.0, 3.0, wrap={"x": 100.0})
    assert [found[name].attrs["units"] for name in ("density", "delta")] == ["MeV", "mm"]
    assert found["density"].attrs["dc_units"] == "mm"
    for words in ("dc=2 mm, rhoc=3 MeV, delta_c=2 mm, delta_o=2 mm", "wrap={'x': 100.0} mm"):
        assert words in found.attrs["clue"]
    table = cluster_table(found)
    assert {table[name].attrs["units"] for name in ("x", "y", "y_rms", "rms", "y_seed")} == {"mm"}
    np.testing.assert_array_equal(table["y_max"], cluster_table(by_hand(found, "mm", x="mm", y="cm"))["y_max"])
    np.testing.assert_array_equal(table["rms"], cluster_table(by_hand(found, "mm", x="mm", y="cm"))["rms"])
    linked = ds.clust.fof(2.0)
    assert (linked["label"].attrs["linking_length_units"], linked.attrs["fof"][:20]) == ("mm", "linking_length=2 mm,")


def test_thresholds_are_in_the_unit_of_the_weights() -> None:
    columns = {"energy": np.full(400, 1e-3), "bare": np.full(400, 3e-3), "noise": np.arange(400) % 2 * 2 + 0.5}
    ds = points().assign({name: ("hit", values) for name, values in columns.items()})
    ds = in_units(ds, x="cm", y="cm", energy="GeV", noise="MeV")
    expected = CLUE(2.0, ds["noise"].values / 1e3).fit(ds).labels_
    np.testing.assert_array_equal(ds.clust.clue(2.0, "noise")["label"], expected)
    np.testing.assert_array_equal(CLUE(2.0, "noise").fit(ds).labels_, expected)
    np.testing.assert_array_equal(ds.clust.clue(2.0, "bare")["label"], ds.clust.clue(2.0, 3e-3)["label"])
    for unit, weight, message in (
        ("ns", "energy", "(noise|rhoc) has the unit 'ns', which cannot be converted to 'GeV'"),
        ("MeV", None, "cannot be converted to '1'"),
        ("MeV", "bare", "is compared with values that have none"),
    ):
        ds["noise"].attrs["units"] = unit
        with pytest.raises(ValueError, match=message):
            ds.clust.clue(2.0, "noise", weight=weight)


# ------------------------------------------------------------------------------------------------------------------ box
def box_of(y: str, box: str) -> xr.Dataset:
    """Return a box in Mpc/h with y and the side in other units."""
    ds = datasets.cosmology_box(2000, rng=0)
    by = {"Mpc/h": 1.0, "kpc/h": 1e3, "Mpc": 2.0}  # h = 0.5
    attrs = {"boxsize": ds.attrs["boxsize"] * by[box], BOX: box, "hubble": 0.5}
    return ds.assign(y=("particle", ds["y"].values.astype(float) * by[y], {"units": y})).assign_attrs(attrs)


@pytest.mark.parametrize(("y", "box"), [("Mpc/h", "kpc/h"), ("Mpc", "kpc/h"), ("kpc/h", "Mpc")])
def test_boxes_have_a_unit(y: str, box: str) -> None:
    plain = box_of("Mpc/h", "Mpc/h")
    assert datasets.cosmology_box(10, rng=0).attrs[BOX] == "Mpc/h"
    mixed, expected = box_of(y, box), plain.clust.fof(b=0.2)
    found = mixed.clust.fof(b=0.2)
    np.testing.assert_array_equal(found["label"], expected["label"])
    assert io.linking_length(mixed) == pytest.approx(io.linking_length(plain), rel=1e-15)
    table, wanted = halo_table(found), halo_table(expected)
    xr.testing.assert_allclose(table, wanted, rtol=1e-6)
    assert (table["y"].attrs["units"], table["r_max"].attrs["units"], table.attrs[BOX]) == ("Mpc/h",) * 3
    np.testing.assert_allclose(table.attrs["boxsize"], wanted.attrs["boxsize"])
    np.testing.assert_array_equal(mixed.clust.dbscan(0.2)["label"], plain.clust.dbscan(0.2)["label"])
    bare = mixed.assign({name: mixed[name].drop_attrs() for name in "xyz"})
    with pytest.raises(ValueError, match=r"boxsize.* has the unit .*, and coordinates have none"):
        bare.clust.fof(0.2)


def test_the_box_of_a_file_is_in_its_unit(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", np.ones((5, 3)))
    path = tmp_path / "points.npy"
    assert BOX not in io.open_particles(path, boxsize=4.0).attrs
    named = io.open_particles(path, boxsize=4.0, units={"length": "kpc/h"})
    assert named.attrs[BOX] == "kpc/h"
    io.write_hits(named, tmp_path / "points.parquet")
    assert io.open_particles(tmp_path / "points.parquet").attrs[BOX] == "kpc/h"
    assert io.open_particles(tmp_path / "points.parquet", units={"length": "Mpc/h"}).attrs[BOX] == "Mpc/h"
    assert io.read_hits(tmp_path / "points.parquet", units=dict.fromkeys("xyz", "m")).attrs[BOX] == "m"


def test_velocities_of_halos_have_one_unit() -> None:
    ds = datasets.cosmology_box(500, rng=0)
    found = ds.clust.fof(b=0.2)
    mixed = found.assign(vy=("particle", ds["vy"].values.astype(float) * 1000, {"units": "m/s"}))
    xr.testing.assert_allclose(halo_table(mixed), halo_table(found), rtol=1e-6)
    assert halo_table(mixed)["vy"].attrs["units"] == "km/s"
    with pytest.raises(ValueError, match="vx has the unit 'km/s' and vy 'cm'"):
        halo_table(found.assign(vy=ds["vy"].assign_attrs(units="cm")))


# ----------------------------------------------------------------------------------------------------------------- hits
@pytest.mark.parametrize(("unit", "chunk"), [("ns", None), ("µs", 300), ("s", None), ("25 ns", 300)])
def test_times_of_hits_are_converted_to_ns(unit: str, chunk: int | None) -> None:
    by = ratio("ns", unit)
    assert by is not None
    ds = datasets.timepix(1000, rng=0)
    other = ds.assign(toa=("hit", converted(ds["toa"].values, by), {"units": unit}))
    hand = ds.assign(toa=("hit", converted(other["toa"].values, 1 / by)))
    given = other if chunk is None else other.chunk(hit=chunk)
    expected = EventBuilder(200.0).fit(hand).labels_
    found = given.clust.events(200.0)
    np.testing.assert_array_equal(found["label"], expected)
    np.testing.assert_array_equal(np.asarray(EventBuilder(200.0).fit(given).labels_), expected)
    assert (found["toa"].attrs["units"], found.attrs["events"][:13]) == (unit, "dt_max=200 ns")
    table = xr.concat(list(EventStream([other], EventBuilder(200.0), disorder=0.0)), "cluster")
    np.testing.assert_array_equal(table["size"], np.bincount(expected))
    assert table["toa"].attrs["units"] == "ns"


@pytest.mark.parametrize(
    ("name", "unit", "message"),
    [
        ("toa", "cm", "toa has the unit 'cm', which cannot be converted to 'ns'"),
        ("toa", "tick", "toa has the unit 'tick', which is not known; known: .*ns"),
        ("x", "mm", "x has the unit 'mm', which cannot be converted to 'pixel'"),
    ],
)
def test_units_that_hits_cannot_have(name: str, unit: str, message: str) -> None:
    ds = datasets.timepix(100, rng=0)
    ds[name].attrs["units"] = unit
    events = EventBuilder(200.0)
    for call in (lambda: ds.clust.events(200.0), lambda: events.fit(ds), lambda: list(EventStream([ds], events))):
        with pytest.raises(ValueError, match=message):
            call()


def test_what_is_made_of_hits_knows_their_units(tmp_path: Path) -> None:
    ds = datasets.timepix(200, rng=0).assign_attrs(layout="chips")
    other = ds.assign({name: ds[name] / by for name, by in (("toa", 1e3), ("tot", 25))})
    other = in_units(other, toa="us", tot="25 ns")
    ones = np.ones((256, 256))
    linear = io.Calibration(a=2 * ones, b=10 * ones, c=0 * ones, t=0 * ones)
    energies = [io.calibrate(each, linear)["energy"] for each in (ds, other)]
    np.testing.assert_allclose(energies[1], energies[0], rtol=1e-6)
    walk: Any = {"correction": [[0.0, 50.0], [1000.0, 0.0]], "by": "tot"}
    early = [io.correct_timewalk(each, **walk)["toa"] for each in (ds, other)]
    np.testing.assert_allclose(early[1], early[0], rtol=1e-12)
    assert early[1].attrs["units"] == "ns"
    flights = [io.time_of_flight(each["toa"], [0.0, 5000.0]) for each in (ds, other)]
    np.testing.assert_allclose(flights[1], flights[0], rtol=1e-9)
    io.write_tpx3(other, tmp_path / "run.tpx3")
    back = io.open_tpx3(tmp_path / "run.tpx3")
    np.testing.assert_array_equal(back["tot"], ds["tot"])
    np.testing.assert_array_equal(back["toa"], ds["toa"])
