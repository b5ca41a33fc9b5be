"""Tables of other libraries give the answers of pandas; units that arrays carry count as those in attributes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import astropy.units as u
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pint
import polars as pl
import pyarrow as pa
import pytest
import unyt
import xarray as xr
from astropy.table import MaskedColumn, QTable, Table
from cases.lanes import some_of

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA, app, metrics, plot, properties
from daskclust.neighbors import nearest

rng = np.random.default_rng(0)
N = 240
HITS = pd.DataFrame({
    "energy": rng.random(N), "layer": np.arange(N) % 3, "x": rng.random(N), "event": np.arange(N) // 120,
    "y": rng.random(N),
})  # fmt: skip
PIXELS = pd.DataFrame({
    "tot": np.full(N, 25.0), "toa": np.arange(N) * 10.0, "x": np.arange(N) % 7, "y": np.arange(N) % 5,
})  # fmt: skip
LABELS = rng.integers(-1, 5, N)


class Stream:
    """A table of a library that nobody has heard of: Arrow's interface and nothing else."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Interchange:
    """One that has the data frame interchange protocol alone."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._table.__dataframe__(nan_as_null, allow_copy)


class Keyed:
    """One with names and columns, as of a file that is open."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def keys(self) -> Any:
        return iter(list(self._frame))

    def __getitem__(self, name: str) -> Any:
        return self._frame[name].to_numpy()


class Frame(pd.DataFrame):
    """A library's subclass of a DataFrame, such as that of geopandas."""


def h5_group(frame: pd.DataFrame) -> h5py.File:
    file = h5py.File("in memory", "w", driver="core", backing_store=False)
    for name in frame:
        file[name] = frame[name].to_numpy()
    return file


CONTAINERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "pyarrow table": pa.Table.from_pandas,
    "pyarrow batch": pa.RecordBatch.from_pandas,
    "pyarrow chunks": lambda frame: pa.concat_tables(
        [pa.Table.from_pandas(frame[:7]), pa.Table.from_pandas(frame[7:])]
    ),
    "arrow stream": Stream,
    "interchange": Interchange,
    "keys": Keyed,
    "mapping": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "mapping of polars": lambda frame: {name: pl.Series(frame[name].to_numpy()) for name in frame},
    "records": lambda frame: frame.to_records(index=False),
    "h5py": h5_group,
    "astropy": Table.from_pandas,
    "astropy QTable": QTable.from_pandas,
    "Arrow in pandas": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "subclass of pandas": Frame,
}


def drawn(picture: Any) -> Any:
    """Return the first values of all that a picture has."""
    return np.concatenate([each.dimension_values(0) for each in picture])


USES: dict[str, tuple[pd.DataFrame, Callable[[Any], Any]]] = {
    "CLUE": (HITS, lambda data: CLUE(0.1, 1.0).fit(data).labels_),
    "DBSCAN": (HITS[["energy", "x", "y"]], lambda data: DBSCAN(0.05).fit(data).labels_),
    "friends-of-friends": (HITS[["x", "y"]], lambda data: FriendsOfFriends(0.05).fit(data).labels_),
    "events": (PIXELS, lambda data: EventBuilder(100.0).fit(data).labels_),
    "Mahalanobis": (HITS[["energy", "x"]], lambda data: MahalanobisHCA(0.2).fit(data).linkage_),
    "cluster_table": (HITS, lambda data: properties.cluster_table(data, LABELS).to_dataframe().fillna(0)),
    "table of pixels": (PIXELS, lambda data: properties.cluster_table(data, LABELS).to_dataframe().fillna(0)),
    "halo_table": (HITS[["x", "y"]], lambda data: properties.halo_table(data, LABELS).to_dataframe().fillna(0)),
    "plot": (HITS, lambda data: drawn(plot.clusters(data, labels=LABELS))),
}


@some_of(24, use=USES, container=CONTAINERS)
def test_tables_with_names_give_the_answer_of_pandas(container: str, use: str) -> None:
    frame, fit = USES[use]
    np.testing.assert_array_equal(fit(CONTAINERS[container](frame)), fit(frame))


@pytest.mark.parametrize("container", ["polars", "keys"])
def test_the_explorer_takes_tables(container: str) -> None:
    result = app.explore(CONTAINERS[container](HITS), "clue", dc=0.1, rhoc=1.0, delta_c=0.1, delta_o=0.1).state.present
    assert result.n_clusters == CLUE(0.1, 1.0).fit(HITS).n_clusters_
    with pytest.raises(TypeError, match="named columns"):
        app.explore(HITS.to_numpy(), "clue")


SERIES: dict[str, Callable[[Any], Any]] = {
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda values: pa.chunked_array([values[:7], values[7:]]),
    "astropy": MaskedColumn,
    "quantity": lambda values: unyt.unyt_array(values, "dimensionless"),
}


@pytest.mark.parametrize("kind", SERIES)
def test_single_columns_too(kind: str) -> None:
    X, weight = HITS[["x", "y"]].to_numpy(), rng.random(N) * 3
    given = SERIES[kind](weight)
    right = DBSCAN(0.05, min_samples=4).fit(X, sample_weight=weight).labels_
    np.testing.assert_array_equal(DBSCAN(0.05, min_samples=4).fit(X, sample_weight=given).labels_, right)
    labels = SERIES[kind](LABELS)
    if kind != "quantity":
        assert metrics.purity(labels, LABELS) == 1.0
    wanted = properties.cluster_table(HITS, LABELS)["size"]
    np.testing.assert_array_equal(properties.cluster_table(HITS, labels)["size"], wanted)


@pytest.mark.parametrize("index", [pd.RangeIndex(N), pd.MultiIndex.from_arrays([LABELS, range(N)], names=["c", "d"])])
def test_an_index_is_no_coordinate(index: pd.Index) -> None:
    frame = pd.DataFrame({"a": HITS["x"], "b": HITS["y"]})
    ds = xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame})
    ds = ds.assign_coords(xr.Coordinates.from_pandas_multiindex(index, "row") if index.nlevels > 1 else {"row": index})
    wanted = DBSCAN(0.05).fit(frame)
    for data in (ds, ds.chunk(row=100)):
        fitted = DBSCAN(0.05).fit(data)
        assert fitted.n_features_in_ == 2
        np.testing.assert_array_equal(np.asarray(fitted.labels_), wanted.labels_)


def test_names_of_variables_may_be_any() -> None:
    points = HITS[["x", "y"]].to_xarray()
    wanted = points.clust.dbscan(0.05)["label"]
    for name in (0, ("a", 1)):
        xr.testing.assert_identical(points.assign({name: points["x"]}).clust.dbscan(0.05)["label"], wanted)


def test_dictionaries_may_have_equal_values() -> None:
    column = pa.array([0.0, -0.0, 9.0]).dictionary_encode()
    assert DBSCAN(1.0, min_samples=2).fit(pa.table({"x": column, "y": [0.0, 0.0, 0.0]})).labels_.tolist() == [0, 0, -1]
    with pytest.raises(ValueError, match="event has 1 missing values"):
        DBSCAN().fit([[0.0], [1.0]], event=pa.array([3, None]).dictionary_encode())


@pytest.mark.parametrize("container", [*CONTAINERS, "xarray"])
def test_a_column_called_as_the_matrix_is_one_coordinate(container: str) -> None:
    frame = pd.DataFrame({"X": HITS["x"], "Y": HITS["y"]})
    data = CONTAINERS[container](frame) if container != "xarray" else frame.to_xarray().drop_vars("index")
    right = MahalanobisHCA(20).fit(frame.to_numpy()).linkage_
    np.testing.assert_array_equal(MahalanobisHCA(20).fit(data).linkage_, right)


TABLES: tuple[Callable[[Any], Any], ...] = (pd.DataFrame, pl.DataFrame, pa.table, dd.DataFrame.from_dict, xr.Dataset)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_no_single_column(table: Any) -> None:
    values = {"w": LABELS if table is not xr.Dataset else ("hit", LABELS)}
    one = table(values, npartitions=2) if table is TABLES[3] else table(values)
    X = HITS[["x", "y"]].to_numpy()
    points = da.from_array(X) if table is TABLES[3] else X
    for door in (
        lambda: DBSCAN().fit(points, sample_weight=one),
        lambda: CLUE(0.1, 1.0).fit(points, layer=one),
        lambda: metrics.purity(one, LABELS),
        lambda: properties.cluster_table(HITS, one),
    ):
        with pytest.raises(TypeError, match=r"must be one column, got a table, (Data|Table)"):
            door()


@pytest.mark.parametrize("use", ["CLUE", "DBSCAN", "friends-of-friends", "events", "Mahalanobis"])
def test_arrays_whose_columns_have_names(use: str) -> None:
    frame, fit = USES[use]
    array = xr.DataArray(frame.to_numpy(np.float64), dims=("hit", "column"), coords={"column": list(frame)})
    np.testing.assert_array_equal(fit(array), fit(frame))


def test_names_are_features() -> None:
    model = DBSCAN(0.05).fit(pl.from_pandas(HITS[["x", "y"]]))
    assert list(model.feature_names_in_) == ["x", "y"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pl.Series([0.1, None]), "1 missing values"),
        (pl.Series(["a", "b"]), "must be numbers"),
        (pl.Series(["a", "b"], dtype=pl.Categorical), "must be numbers"),
        (pl.Series([[1.0], [2.0]]), "must be numbers"),
    ],
)
def test_what_is_no_number_is_refused(values: pl.Series, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        DBSCAN(0.05).fit(pl.DataFrame({"x": values, "y": [0.0, 1.0]}))


def test_types_that_pyarrow_does_not_read_are_told() -> None:
    frame = pl.from_pandas(HITS).with_columns(pl.col("x").cast(pl.Int128))
    words = r"has a type that pyarrow does not read \(.*\); cast it to one of 64 bits, or leave it out"
    with pytest.raises(TypeError, match=f"^a column {words}"):
        DBSCAN(1.0).fit(frame)
    with pytest.raises(TypeError, match=f"^sample_weight {words}"):
        DBSCAN(1.0).fit(HITS[["x", "y"]], sample_weight=frame["x"])


def test_what_cannot_be_read_by_name_is_refused() -> None:
    with pytest.raises(TypeError, match=r"LazyFrame cannot be read by name.*collect"):
        DBSCAN(0.05).fit(pl.from_pandas(HITS).lazy())


# --------------------------------------------------------------------------------------------------------------- units
registry = pint.UnitRegistry()
X, Y = np.array([1.0, 1.2, 9.0]), np.array([2.0, 2.1, 8.0])
RIGHT = [0, 0, -1]  # at 0.5 cm


def dataset(x: Any, y: Any) -> xr.Dataset:
    return xr.Dataset({"x": ("p", x), "y": ("p", y)})


def with_units(x: Any, y: Any) -> dict[str, Any]:
    return {"x": x, "y": y}


CARRIED: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any, Any], Any]]] = {
    "attributes": (lambda values, unit: xr.DataArray(values, dims="p", attrs={"units": unit}), with_units),
    "astropy": (lambda values, unit: values * u.Unit(unit), with_units),
    "QTable": (lambda values, unit: values * u.Unit(unit), lambda x, y: QTable({"x": x, "y": y})),
    "Table": (lambda values, unit: values * u.Unit(unit), lambda x, y: Table({"x": x, "y": y})),
    "unyt": (unyt.unyt_array, with_units),
    "pint": (registry.Quantity, with_units),
    "pint in xarray": (registry.Quantity, dataset),
}


@pytest.mark.parametrize("kind", CARRIED)
@pytest.mark.parametrize(("unit", "size"), [("cm", 1.0), ("mm", 0.1), ("um", 1e-4), ("m", 100.0)])
def test_units_count_as_those_in_attributes(kind: str, unit: str, size: float) -> None:
    carry, table = CARRIED[kind]
    data = table(carry(X, "cm"), carry(Y / size, unit))
    assert FriendsOfFriends(0.5).fit(data).labels_.tolist() == RIGHT
    found = properties.cluster_table(data, np.zeros(3, int), weight=None)
    assert found["x"].attrs["units"] == found["y"].attrs["units"] == "cm"
    np.testing.assert_allclose(float(found["y"][0]), Y.mean())
    if isinstance(data, xr.Dataset):
        assert data.clust.fof(0.5)["label"].values.tolist() == RIGHT


@pytest.mark.parametrize("kind", CARRIED)
def test_times_become_nanoseconds(kind: str) -> None:
    carry, _ = CARRIED[kind]
    columns: Any = {"x": [1, 2, 3], "y": [1, 1, 1], "toa": carry(np.array([0.0, 1.0, 5.0]), "us")}
    if kind in ("QTable", "Table"):
        columns = (QTable if kind == "QTable" else Table)(columns)
    assert EventBuilder(1500.0).fit(columns).labels_.tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", CARRIED)
def test_units_that_cannot_be_compared_are_refused(kind: str) -> None:
    carry, table = CARRIED[kind]
    with pytest.raises(ValueError, match="cannot be converted"):
        FriendsOfFriends(0.5).fit(table(carry(X, "cm"), carry(Y, "s")))
    with pytest.raises(ValueError, match="none"):
        FriendsOfFriends(0.5).fit({"x": carry(X, "cm"), "y": Y})


def test_masked_quantities_are_refused_and_unknown_units_too() -> None:
    with pytest.raises(ValueError, match="1 masked"):
        FriendsOfFriends(0.5).fit({"x": MaskedColumn(X, mask=[0, 1, 0]), "y": Y})

    class Length(np.ndarray):
        unit = "cm"

    with pytest.raises(TypeError, match="whose units are not read"):
        FriendsOfFriends(0.5).fit({"x": X.view(Length), "y": Y})
    for eps in (0.5 * u.cm, unyt.unyt_quantity(0.5, "cm"), registry.Quantity(0.5, "cm")):
        with pytest.raises(TypeError, match="must be a number"):
            DBSCAN(eps).fit(np.stack([X, Y], 1))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("carried", [False, True])
def test_a_matrix_has_one_unit(carried: bool, lazy: bool) -> None:
    X = np.random.default_rng(0).uniform(0, 5, (50, 2))
    points = xr.DataArray(X * u.cm if carried else X, dims=("point", "axis"), attrs={} if carried else {"units": "cm"})
    points = points.chunk(point=20) if lazy and not carried else points
    np.testing.assert_array_equal(DBSCAN().fit(points).predict(X * u.cm), DBSCAN().fit(X).predict(X))
    np.testing.assert_array_equal(nearest(points, X * u.cm).index, np.arange(50))
    with pytest.raises(ValueError, match="must have the unit of the points of the fit, cm, got mm"):
        DBSCAN().fit(points).predict(X * u.mm)
    with pytest.raises(ValueError, match="of must have the unit of X, cm, got mm"):
        nearest(points, X * u.mm)


def test_units_reach_other_doors() -> None:
    E, limits = np.array([0.5, 0.6, 0.1]), np.full(3, 800.0)
    data = {"x": X * u.cm, "y": Y * u.cm, "energy": E * u.GeV}
    for rhoc in (limits * u.MeV, xr.DataArray(limits, dims="p", attrs={"units": "MeV"}), limits / 1000):
        assert CLUE(0.5, rhoc).fit(data).labels_.tolist() == RIGHT
        assert CLUE(0.5, limits).fit(data).rethreshold(rhoc=rhoc).labels_.tolist() == RIGHT
    units = {"x": "cm", "y": "mm"}
    schema = pa.schema([pa.field(name, pa.float64(), metadata={"units": unit}) for name, unit in units.items()])
    assert FriendsOfFriends(0.5).fit(pa.table([X, Y * 10], schema=schema)).labels_.tolist() == RIGHT
    ds = xr.Dataset({"x": ("p", X, {"units": "Mpc"}), "y": ("p", Y, {"units": "Mpc"})})
    for box in (1e4 * u.kpc, unyt.unyt_array([1e4, 1e4], "kpc"), 10.0):
        assert "boxsize=10" in ds.assign_attrs(boxsize=box).clust.fof(0.5).attrs["fof"]
    for box in (10.0 * u.Mpc, np.full(2, 10.0) * u.Mpc, registry.Quantity(10.0, "Mpc")):
        with pytest.raises(TypeError, match=r"boxsize must be a number, .* give the number alone"):
            FriendsOfFriends(0.5, boxsize=box).fit(ds)
        with pytest.raises(TypeError, match=r"boxsize must be a number, .* give the number alone"):
            properties.halo_table(ds, [0, 0, 1], boxsize=box)
    with pytest.raises(ValueError, match="cannot be converted to 'pixel'"):
        EventBuilder(9.0).fit(np.ones((3, 3)) * u.cm)


@pytest.mark.parametrize(
    ("unit", "other", "size"),
    [("micron", "cm", 1e4), ("lyr", "lyr", 1.0), ("km / s", "m / s", 1e-3), ("AU", "cm", 1 / 1.495978707e13)],
)
def test_names_of_units_of_other_libraries(unit: str, other: str, size: float) -> None:
    data = {"x": X * size * u.Unit(unit), "y": Y * u.Unit(other)}
    found = properties.cluster_table(data, np.zeros(3, int), weight=None)
    mean = (found["y"] * u.Unit(found["y"].attrs["units"])).item().to_value(u.Unit(other))
    np.testing.assert_allclose(mean, Y.mean())


def test_units_that_cannot_be_told_are_refused() -> None:
    class Duck:
        units = "kpc"

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return X

    with pytest.raises(TypeError, match="whose units are not read"):
        FriendsOfFriends(0.5).fit({"x": Duck(), "y": Duck()})
    with pytest.raises(TypeError, match="list of quantities"):
        FriendsOfFriends(0.5).fit({"x": list(unyt.unyt_array(X, "cm")), "y": list(unyt.unyt_array(Y, "mm"))})
    with pytest.raises(TypeError, match="give the number alone, in the unit of the data"):
        CLUE(0.5, 1 * u.GeV).fit({"x": X, "y": Y})
    comoving, physical = (unyt.unyt_array(X, "Mpc") for _ in range(2))
    comoving.comoving, physical.comoving = True, False  # as swiftsimio's arrays
    with pytest.raises(ValueError, match="comoving"):
        FriendsOfFriends(0.5).fit({"x": comoving, "y": physical})


def test_mappings_of_variables_along_two_dimensions_are_no_points() -> None:
    data = {"x": xr.DataArray(X, dims="a"), "y": xr.DataArray(Y, dims="b")}
    for door in (FriendsOfFriends(0.5).fit, plot.projected_density, lambda d: properties.cluster_table(d, [0, 0, 0])):
        with pytest.raises(ValueError, match="points must be along one dimension"):
            door(data)


# ---------------------------------------------------------------------------------------------------------- dimensions
SHAPES = [(("p",), ("q",)), (("p", "q"), ("p",)), (("p",), ("p", "q")), (("p", "q"), ("p", "q")), ((), ("p",))]
DOORS: dict[str, Callable[[xr.Dataset], Any]] = {
    "CLUE": lambda ds: CLUE(1.0, 0.1).fit(ds),
    "DBSCAN": lambda ds: DBSCAN(1.0).fit(ds),
    "events": lambda ds: EventBuilder(1.0).fit(ds.assign(toa=ds["x"])),
    "accessor": lambda ds: ds.clust.dbscan(1.0),
    "table": lambda ds: properties.cluster_table(ds, np.zeros(3, int), weight=None),
    "plot": lambda ds: plot.clusters(ds, labels=np.zeros(3, int)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("one", "other"), SHAPES)
def test_variables_along_several_dimensions_are_no_points(door: str, one: Any, other: Any) -> None:
    ds = xr.Dataset({"x": (one, np.ones((3,) * len(one))), "y": (other, np.ones((3,) * len(other)))})
    with pytest.raises(ValueError, match=r"points must be along one dimension.*stack|no column|has no"):
        DOORS[door](ds)


def test_the_remedy_works() -> None:
    axes = {"x": np.arange(6.0), "y": np.arange(6.0)}
    picture = xr.Dataset({"energy": (("y", "x"), rng.random((6, 6)))}, coords=axes)
    points = picture.stack(point=["y", "x"]).reset_index("point")
    y, x = np.divmod(np.arange(36.0), 6)
    right = CLUE(1.5, 0.1).fit(np.stack([x, y], 1), sample_weight=picture.energy.values.ravel()).labels_
    np.testing.assert_array_equal(CLUE(1.5, 0.1).fit(points).labels_, right)
    with pytest.raises(ValueError, match=r"energy \(u, v\)"):
        CLUE(1.5, 0.1).fit(points.drop_vars("energy").assign(energy=(("u", "v"), picture.energy.values)))


def records(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.rec.fromarrays(list(columns.values()), names=list(columns))


def variables(columns: dict[str, np.ndarray]) -> xr.Dataset:
    return xr.Dataset({name: ("point", values) for name, values in columns.items()})


def cells(columns: dict[str, np.ndarray]) -> xr.Dataset:
    X = np.stack(list(columns.values()), axis=1)
    return xr.Dataset({"X": (("cell", "channel"), X)}, coords={"channel": list(columns)})


@pytest.mark.parametrize("holder", [dict, records, variables, pd.DataFrame, cells])
def test_new_points_have_the_coordinates_of_the_fit_in_their_order(holder: Any) -> None:
    X = np.random.default_rng(5).uniform(0, 5, (80, 2))
    estimators = [DBSCAN(), FriendsOfFriends(0.5), CLUE(0.5, 2.0), MahalanobisHCA(20)]
    given, other = holder({"a": X[:, 0], "b": X[:, 1]}), holder({"b": X[:, 1], "a": X[:, 0]})
    for estimator in estimators if holder is not cells else estimators[3:]:
        estimator.fit(given)
        np.testing.assert_array_equal(estimator.predict(given), estimator.fit(X).predict(X))
        with pytest.raises(ValueError, match=r"(?s)order"):
            estimator.fit(given).predict(other)
    if holder is not cells:
        assert not nearest(given, given).distance.any()
        with pytest.raises(ValueError, match=r"of must have the coordinates of X, \['a', 'b'\], in this order, got"):
            nearest(given, other)
