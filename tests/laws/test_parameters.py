"""Every numeric parameter takes any value at all, or refuses it: never an error of something within, nor a hang."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from cases.files.writers import write_gmhc
from cases.lanes import quick_first

from daskclust import (
    CLUE,
    CLUE3D,
    DBSCAN,
    EMST,
    HDBSCAN,
    EventBuilder,
    EventStream,
    FriendsOfFriends,
    MahalanobisHCA,
    datasets,
    io,
    properties,
)
from daskclust.accessor import ClustAccessor

VALUES = [
    *(0, -1, np.nan, np.inf, -np.inf, 10**20, -(10**20), 2**31 - 1, 2**31, 2**62, 2**63, 10**400, -(10**400)),
    *(5e-324, 1e-322, 1e-172, 1e153, 1e308, np.float32(0.75), np.float64(2.5), np.int8(3), np.longdouble("1e400")),
    *(True, np.bool_(False), "1", b"1", None, 1j, Decimal("1.5"), np.array(2.0), np.array(3), [], {}),
]
N, ROWS = 60, 25
RNG = np.random.default_rng(0)
POINTS = RNG.normal(0, 1, (N, 2))
HITS = {"x": RNG.integers(0, 5, N), "y": RNG.integers(0, 5, N), "toa": np.sort(RNG.uniform(0, 900.0, N))}
LABELS = RNG.integers(-1, 4, N)
NEEDED: dict[Any, dict[str, Any]] = {
    CLUE: {"dc": 0.5, "rhoc": 2.0},
    CLUE3D: {},
    EventBuilder: {"dt_max": 100.0},
    DBSCAN: {},
    HDBSCAN: {},
    EMST: {},
    "hdbscan": {},
    "emst": {},
    MahalanobisHCA: {},
    FriendsOfFriends: {"linking_length": 0.3},
    "fof": {"linking_length": 0.3},
    "dbscan": {"eps": 0.5},
    "hca": {},
    "clue": {"dc": 0.5, "rhoc": 2.0},
    "showers": {},
    "events": {"dt_max": 100.0},
}


def numeric(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of the parameters that may be numbers."""
    for name, parameter in inspect.signature(function).parameters.items():
        if re.search(r"\b(float|int|Boxsize)\b", str(parameter.annotation)) or name == "rhoc":
            yield name


def lazily(values: Any, is_lazy: bool) -> Any:
    return da.from_array(values, chunks=(ROWS, *values.shape[1:])) if is_lazy else values


def fit(estimator: Any, name: str, value: Any, is_lazy: bool, dtype: Any = np.float64) -> list[Any]:
    """Return what an estimator finds with one parameter given."""
    hits = {column: lazily(values, is_lazy) for column, values in HITS.items()}
    value = {0: value} if name == "wrap" else value
    needed = {"boxsize": 50.0} if (estimator, name) == (FriendsOfFriends, "b") else NEEDED[estimator]
    fitted = estimator(**{**needed, name: value})
    if estimator is CLUE3D:
        columns = {"layer": lazily(HITS["x"], is_lazy), "sample_weight": lazily(HITS["toa"] / 100, is_lazy)}
        fitted.fit(lazily(RANDOM.T + 1, is_lazy), **columns)
    else:
        fitted.fit(hits if estimator is EventBuilder else lazily(POINTS.astype(dtype), is_lazy))
    if estimator is EMST:
        return [fitted.edges_, fitted.lengths_]
    return [fitted.labels_, fitted.linkage_ if estimator is MahalanobisHCA else fitted.n_clusters_]


def dataset(is_lazy: bool) -> xr.Dataset:
    """Return points with all that a table is made of, or hits."""
    ds = xr.Dataset({axis: ("point", values) for axis, values in zip("xyz", RANDOM, strict=True)})
    ds = ds.assign(vx=ds["x"], vy=ds["y"], vz=ds["z"], label=("point", LABELS)).assign_attrs(boxsize=50.0)
    return ds.chunk(point=ROWS) if is_lazy else ds


RANDOM = RNG.uniform(0, 50, (3, N))


def cluster(method: str, name: str, value: Any, is_lazy: bool) -> list[Any]:
    ds = xr.Dataset({column: ("hit", values) for column, values in HITS.items()})
    ds = (ds.chunk(hit=ROWS) if is_lazy else ds) if method == "events" else dataset(is_lazy)
    if method == "showers":
        columns = {name: (next(iter(ds.sizes)), HITS[column]) for name, column in (("layer", "x"), ("energy", "toa"))}
        ds = ds.drop_vars("label").assign(xr.Dataset(columns))
    needed = {} if (method, name) == ("fof", "b") else NEEDED[method]
    value = {"x": value} if name == "wrap" else value
    return [getattr(ds.clust, method)(**{**needed, name: value})["edge" if method == "emst" else "label"].data]


def describe(function: Callable[..., Any], name: str, value: Any, is_lazy: bool) -> list[Any]:
    ds, others = dataset(is_lazy), {}
    if function is properties.cluster_table:
        ds, others = ds.drop_attrs(deep=False), {"weight": None}  # it warns of wide clusters in a periodic box
    table = function(ds, **{name: value}, **others)
    return [table["size"].data if isinstance(table, xr.Dataset) else table]


def read(files: dict[Any, Any], function: Callable[..., Any], name: str, value: Any, is_lazy: bool) -> list[Any]:
    chunks = {"chunks": 20} if is_lazy and "chunks" in inspect.signature(function).parameters else {}
    ds = function(files[function], **{**chunks, name: value})
    return [next(iter(ds.variables.values())).data]


def stream(name: str, value: Any, is_lazy: bool) -> list[Any]:
    """Return the number of hits in clusters of a stream, of one item or of several."""
    ds = xr.Dataset({column: ("hit", values) for column, values in HITS.items()}).assign(tot=("hit", np.ones(N)))
    rows = ROWS if is_lazy else N
    items = [ds.isel(hit=slice(k, k + rows)) for k in range(0, N, rows)]
    tables = EventStream(items, EventBuilder(100.0), **{"disorder": 0.0, name: value})
    return [sum(int(table["size"].sum()) for table in tables)]


READERS = (io.read_hits, io.open_particles, io.open_tpx3, io.open_t3pa, io.read_cells, io.read_gmhc)
ESTIMATORS = [one for one in NEEDED if not isinstance(one, str)]
METHODS = {f"ds.clust.{name}": getattr(ClustAccessor, name) for name in NEEDED if isinstance(name, str)}
TABLES = (properties.cluster_table, properties.halo_table, io.linking_length)
CALLS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    **{estimator.__name__: (partial(fit, estimator), list(numeric(estimator))) for estimator in ESTIMATORS},
    **{f"{e.__name__} in float32": (partial(fit, e, dtype=np.float32), list(numeric(e))) for e in (CLUE, DBSCAN)},
    **{name: (partial(cluster, method.__name__), list(numeric(method))) for name, method in METHODS.items()},
    "EventStream": (stream, list(numeric(EventStream))),
    **{function.__name__: (partial(describe, function), list(numeric(function))) for function in TABLES},
}
CASES = [
    pytest.param(call, name, marks=pytest.mark.slow if "float32" in call or call in METHODS else ())
    for call, (_, names) in CALLS.items()
    for name in names
]
FILES = [(reader, name) for reader in READERS for name in numeric(reader)]
T3PA = "Index\tMatrix Index\tToA\tToT\tFToA\tOverflow\n0\t5\t100\t20\t3\t0\n1\t6\t101\t20\t3\t0\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    folder = tmp_path_factory.mktemp("files")
    made = datasets.timepix(100, rng=0).drop_vars("truth")
    cells = datasets.cytometry(60, 3, rng=0).drop_vars("population")
    io.write_hits(dataset(False).drop_vars("label"), folder / "hits.parquet")
    io.write_tpx3(made, folder / "run.tpx3")
    io.write_particles(datasets.cosmology_box(64, rng=0).drop_vars("halo"), folder / "snapshot.hdf5")
    io.write_cells(cells, folder / "cells.parquet")
    write_gmhc(cells, folder / "data")
    (folder / "run.t3pa").write_text(T3PA)
    names = ("hits.parquet", "snapshot.hdf5", "run.tpx3", "run.t3pa", "cells.parquet", "data")
    return {reader: folder / name for reader, name in zip(READERS, names, strict=True)}


def shown(value: Any) -> list[str]:
    """Return the ways in which a message may show a value."""
    if isinstance(value, int) and abs(value) > 1e300:
        return [repr(value), f"about {'-' * (value < 0)}1e400"]
    if isinstance(value, int | float | np.integer | np.floating):
        return [repr(value), f"{value:g}"]
    return [repr(value), *([str(np.shape(value))] if isinstance(value, list | np.ndarray) else [])]


def outcome(function: Callable[..., Any], name: str, value: Any, is_lazy: bool) -> Any:
    """Return the results, or the class of an error that names the parameter and the value."""
    try:
        return dask.compute(*function(name, value, is_lazy))
    except (ValueError, TypeError) as error:
        words = str(error)
    assert re.search(rf"\b{name}\b", words), words
    assert any(text in words for text in shown(value)), words
    return words


def faults(function: Callable[..., Any], name: str, part: int) -> Iterator[str]:
    """Yield what is wrong with what comes of every third value, in memory and on dask."""
    for value in VALUES[part::3]:
        try:
            in_memory, lazy = (outcome(function, name, value, is_lazy) for is_lazy in (False, True))
            assert isinstance(in_memory, str) == isinstance(lazy, str), f"{in_memory} but {lazy}"
            for one, other in zip(in_memory, lazy, strict=True) if not isinstance(lazy, str) else ():
                np.testing.assert_array_equal(one, other)
        except Exception as error:
            yield f"{repr(value)[:30]}: {type(error).__name__}: {str(error)[:300]}"


third = pytest.mark.parametrize("part", quick_first(range(3)))


@third
@pytest.mark.parametrize(("call", "name"), CASES, ids=str)
def test_any_value_is_taken_or_refused(call: str, name: str, part: int) -> None:
    found = list(faults(CALLS[call][0], name, part))
    assert not found, "\n".join(found)


@third
@pytest.mark.parametrize(("reader", "name"), FILES, ids=lambda each: getattr(each, "__name__", each))
def test_any_value_is_taken_or_refused_by_readers(
    files: dict[Any, Any], reader: Callable[..., Any], name: str, part: int
) -> None:
    found = list(faults(partial(read, files, reader), name, part))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize(
    ("estimator", "name"),
    [(CLUE, "kernel"), (EventBuilder, "variant"), *((MahalanobisHCA, each) for each in ("rule", "distance", "order"))],
)
def test_what_is_not_one_of_the_choices_is_refused(estimator: Any, name: str, is_lazy: bool) -> None:
    assert isinstance(outcome(partial(fit, estimator), name, "none of these", is_lazy), str)


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize(
    ("estimator", "distance"), [(partial(CLUE, rhoc=2.0), "dc"), (DBSCAN, "eps"), (FriendsOfFriends, "linking_length")]
)
def test_scale_changes_nothing_or_is_refused(estimator: Callable[..., Any], distance: str, dtype: Any) -> None:
    """Coordinates and distances times a power of two: the same answer to the last bit, wherever there is one."""
    wanted = estimator(**{distance: 0.5}).fit(POINTS.astype(dtype)).labels_
    lowest, taken = np.finfo(dtype).minexp, []
    for power in range(lowest + 20, -lowest - 20, 37 if dtype is np.float32 else 74):
        X, words = np.ldexp(POINTS.astype(dtype), power), ""
        try:
            labels = estimator(**{distance: np.ldexp(0.5, power)}).fit(X).labels_
        except ValueError as error:
            labels, words = wanted, str(error)
        assert words == "" or f"{distance} must lie between" in words
        np.testing.assert_array_equal(labels, wanted)
        taken += [] if words else [power]
    assert min(taken) < lowest / 2 + 40
    assert max(taken) > -lowest / 2 - 40
