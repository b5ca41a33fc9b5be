"""Drawn cases for the one door of data: what takes data, in which container, of which types and in which layout.

What a case must give is read from the tables of docs/howto/data.md: the answer for plain arrays of this machine's own
types, or an error with the words that stand there.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import awkward as ak
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import xarray as xr

from daskclust import (
    CLUE,
    CLUE3D,
    DBSCAN,
    EMST,
    HDBSCAN,
    EventBuilder,
    FriendsOfFriends,
    MahalanobisHCA,
    metrics,
    plot,
    properties,
)

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "data.md"
KINDS = ("real", "group", "pixel", "label")
"""Kinds of columns, in the order of the page's columns.

A "time" is a real that ascends, a "far" one is not 0, a "small" group is one of 32 bits, a "table" has two columns.
"""

RATIOS = 1e-7  # how good ratios of axes are where an axis vanishes, says `halo_table`
ROWS = 24
CHUNK = 9


# ------------------------------------------------------------------------------------------------------------- the page
@functools.cache
def promises() -> dict[tuple[str, str], str]:
    """Return what the page says of each type or value, by it and the kind of column."""
    told = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and not cells[0].startswith(("type", "value", "---")):
            names = re.findall(r"`(\w+)`", cells[0]) or [cells[0]]
            told |= {(name, kind): cell for name in names for kind, cell in zip(KINDS, cells[1:], strict=True)}
    return told


def refusal(what: str, kind: str) -> str | None:
    """Return the words with which the page refuses a type or value, None where it takes it."""
    said = promises()[what, kind]
    return re.fullmatch(r'refused: "(.*)"', said)[1] if said.startswith("refused") else None


TYPES = sorted({name for name, _ in promises() if re.fullmatch(r"[a-z]+\d*", name)})
VALUES = sorted({name for name, _ in promises()} - set(TYPES))


# -------------------------------------------------------------------------------------------------------------- columns
class Column(NamedTuple):
    kind: str
    type: str
    value: str | None  # one of VALUES, if the column has one
    layout: str
    given: Any  # what goes in: NumPy's array, masked or not
    plain: np.ndarray  # whole numbers, in float64

    @property
    def words(self) -> str | None:
        """Words of the error that the column must raise."""
        return (refusal(self.value, self.kind) if self.value else None) or refusal(self.type, self.kind)


LAYOUTS = ("plain", "swapped", "reversed", "strided", "unaligned", "read-only", "one value", "memory map")


def draw_column(rng: np.random.Generator, kind: str, high: int, types: list[str]) -> Column:
    """Return a column of whole numbers below `high`, or a value that is refused."""
    name = str(rng.choice(types))
    value = str(rng.choice(VALUES)) if rng.random() < 0.04 else None
    if value == "an integer beyond 2**53" and kind in ("label", "small"):
        value = None  # some tables have a row for each number up to the largest, differences of layers count
    if kind == "table" and value is not None and value.startswith("a missing value"):
        value = None  # of a Series alone
    layout = str(rng.choice([each for each in LAYOUTS if value is None or each != "one value"]))
    shape = (ROWS, 2) if kind == "table" else (ROWS,)
    numbers = rng.integers(0, min(high, 2) if name == "bool" else high, shape)
    if kind == "time":
        numbers = np.sort(numbers)
    if kind == "far":
        numbers = np.maximum(numbers, 1)
    kind = {"time": "real", "table": "real", "far": "real", "small": "group"}.get(kind, kind)
    if layout == "one value":
        numbers[:] = numbers[0]
    name, given = with_value(rng, name, value, numbers)
    plain = given if value == "a half" else numbers
    return Column(kind, name, value, layout, laid_out(given, layout), plain.astype(np.float64))


def with_value(rng: np.random.Generator, name: str, value: str | None, numbers: np.ndarray) -> tuple[str, Any]:
    """Return the type and the array of numbers, one of which is a value that has a row of its own on the page."""
    place = int(rng.integers(ROWS))
    if value == "an integer beyond 2**53":
        numbers[place] = 2**53 + 1
        return "int64", numbers
    if value == "an integer beyond 2**63 - 1":
        given = numbers.astype(np.uint64)
        given[place] = 2**63
        return "uint64", given
    if value == "a half":
        given = numbers + 0.0
        given[place:] += 0.5
        return "float64", given
    if value == "a masked element":
        given = np.ma.masked_array(numbers)
        given[place] = np.ma.masked
        return "int64", given
    if value == "a missing value of pandas, NA":
        return "float64", pd.array(np.where(np.arange(ROWS) == place, None, numbers), dtype="Int64")
    if value == "None":
        given = numbers.astype(object)
        given[place] = None
        return "object", given
    return name, of_type(name, numbers)


def of_type(name: str, numbers: np.ndarray) -> np.ndarray:
    if name == "object":
        return np.array(numbers.tolist(), object)
    if name in ("datetime64", "timedelta64"):
        return numbers.astype(f"{name}[ns]")
    return numbers.astype(name)


def laid_out(array: Any, layout: str) -> Any:
    """Return an equal array whose memory is another: what numba's table of types does not tell apart."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray) or array.dtype.kind == "O":
        return array
    if layout == "swapped":
        return array.astype(array.dtype.newbyteorder("S"))
    if layout == "reversed":
        return array[::-1].copy()[::-1]
    if layout == "strided":
        return np.repeat(array, 3, axis=0)[::3]
    if layout == "unaligned":
        packed = np.zeros(array.shape, [("byte", "u1"), ("value", array.dtype)])
        packed["value"] = array
        return packed["value"]
    if layout == "one value" and array.ndim == 1:
        return np.broadcast_to(array[:1], array.shape)
    if layout == "memory map":
        with tempfile.TemporaryFile() as file:
            mapped = np.memmap(file, array.dtype, "w+", shape=array.shape)
            mapped[...] = array
            return mapped
    array = array.copy()
    array.flags.writeable = layout != "read-only"
    return array


# ----------------------------------------------------------------------------------------------------------- containers
Columns = dict[str, Any]


def structured(columns: Columns) -> np.ndarray:
    """Return a packed structured array: fields that are not aligned."""
    table = np.zeros(ROWS, [(name, np.asarray(values).dtype) for name, values in columns.items()])
    for name, values in columns.items():
        table[name] = values
    return table


def nullable(columns: Columns, on_arrow: bool) -> pd.DataFrame:
    """Return a DataFrame of pandas' own types, or of Arrow's."""
    arrays = {}
    for name, values in columns.items():
        kind = str(values.dtype)
        if on_arrow and kind in ("bool", "float32"):
            kind = {"bool": "bool", "float32": "float"}[kind]
        elif not on_arrow:
            kind = "boolean" if kind == "bool" else kind.capitalize().replace("Uint", "UInt")
        arrays[name] = pd.array(values, dtype=f"{kind.lower()}[pyarrow]" if on_arrow else kind)
    return pd.DataFrame(arrays)


def lazy_array(values: Any) -> Any:
    return da.from_array(values, chunks=(CHUNK, *np.shape(values)[1:]))


def dataset(columns: Columns) -> xr.Dataset:
    return xr.Dataset({name: ("hit", values) for name, values in columns.items()})


CONTAINERS: dict[str, Callable[[Columns], Any]] = {
    "mapping": dict,
    "structured array": structured,
    "record array": lambda columns: structured(columns).view(np.recarray),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: nullable(columns, on_arrow=False),
    "pandas on Arrow": lambda columns: nullable(columns, on_arrow=True),
    "xarray": dataset,
    "awkward": lambda columns: ak.zip({name: np.ascontiguousarray(values) for name, values in columns.items()}),
    "mapping of dask arrays": lambda columns: {name: lazy_array(values) for name, values in columns.items()},
    "structured dask array": lambda columns: lazy_array(structured(columns)),
    "dask DataFrame": lambda columns: dd.from_pandas(pd.DataFrame(columns), npartitions=3, sort=False),
    "dask DataFrame, nullable": lambda columns: dd.from_pandas(nullable(columns, on_arrow=False), 3, sort=False),
    "xarray on dask": lambda columns: dataset(columns).chunk(hit=CHUNK),
}
CONTAINERS |= {
    "arrays": dict,
    "series": lambda columns: {name: v if v.ndim > 1 else pd.Series(v) for name, v in columns.items()},
    "data arrays": lambda columns: {name: xr.DataArray(values) for name, values in columns.items()},
    "dask arrays": CONTAINERS["mapping of dask arrays"],
    "dask X beside arrays": lambda columns: columns | {"X": lazy_array(columns["X"])},
}
BESIDE = ("arrays", "series", "data arrays", "dask arrays", "dask X beside arrays")
"""Containers of columns that are passed one by one."""
IN_MEMORY = tuple(name for name in CONTAINERS if name not in BESIDE and "dask" not in name)
FRAMES = {name for name in CONTAINERS if "pandas" in name or "DataFrame" in name}


MASKED = {"mapping", "mapping of dask arrays", "arrays", "dask arrays", "dask X beside arrays"}
HOLD_MISSING = FRAMES | {"mapping", "arrays", "series"}


def suits(container: str, columns: dict[str, Column]) -> bool:
    """Return whether a container can hold the columns as they are."""
    odd = {column.type for column in columns.values()} & {"longdouble", "float16", "complex64", "complex128", "object"}
    odd |= {column.type for column in columns.values()} & {"bytes", "str", "datetime64", "timedelta64"}
    if container == "awkward" and (odd or any(column.value == "None" for column in columns.values())):
        return False  # awkward has no such types, or another way to miss values, of which test_nested.py has the cases
    swapped = any(getattr(column.given, "dtype", None) and column.layout == "swapped" for column in columns.values())
    for column in columns.values():
        if column.value == "a masked element" and container not in MASKED:
            return False  # others fill it with NaN, or forget that it is masked
        if column.value == "a missing value of pandas, NA" and container not in HOLD_MISSING:
            return False
        if column.value == "None" and ("nullable" in container or "Arrow" in container or "DataFrame" in container):
            return False  # pandas makes a missing value of it
    if ("nullable" in container or "Arrow" in container or container == "awkward") and (odd or swapped):
        return False  # these do not convert them
    return not ("DataFrame" in container and odd & {"bytes", "object"})  # dask's frames make text of them


# -------------------------------------------------------------------------------------------------- what takes the data
class Target(NamedTuple):
    columns: dict[str, tuple[str, int]]  # kind and bound of the numbers
    call: Callable[[Any], dict[str, Any]]
    containers: tuple[str, ...] = tuple(name for name in CONTAINERS if name not in BESIDE)
    rounding: float = 0.0  # of floats, where the page of the function says that they are equal up to it


def attributes(estimator: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(estimator, name) for name in names}


def of_clue(clue: CLUE) -> dict[str, Any]:
    return attributes(clue, "labels_", "density_", "delta_", "nearest_higher_")


def of_columns(data: Any) -> dict[str, Any]:
    return of_clue(CLUE(1.5, 3.0, delta_c=2.0).fit(data))


def clustered(data: Any) -> xr.Dataset:
    data = data if isinstance(data, xr.Dataset) else dataset(data)
    return data.clust.clue(1.5, 3.0)[["label", "density", "delta", "nearest_higher", "is_seed"]]


def tabulated(table: xr.Dataset) -> dict[str, Any]:
    return {str(name): table[name].values for name in table}


def drawn(overlay: Any) -> dict[str, Any]:
    return {f"{k} {element.label}": element.dframe().to_numpy() for k, element in enumerate(overlay.values())}


PLANE = {"x": ("real", 9), "y": ("real", 9)}
SPACE = {**PLANE, "z": ("real", 9)}
HITS = {"x": ("pixel", 9), "y": ("pixel", 9), "toa": ("time", 40)}
TARGETS = {
    "CLUE": Target({**PLANE, "layer": ("group", 3), "energy": ("real", 4)}, of_columns),
    "CLUE, events": Target({**SPACE, "event": ("group", 3)}, of_columns),
    "CLUE3D": Target(
        {**PLANE, "z": ("far", 9), "layer": ("small", 3), "event": ("small", 2), "energy": ("real", 4)},
        lambda data: attributes(CLUE3D(critical_density=1.0).fit(data), "labels_", "density_", "nearest_higher_"),
    ),
    "CLUE, columns beside": Target(
        {"X": ("table", 9), "layer": ("group", 3), "energy": ("real", 4)},
        lambda data: of_clue(CLUE(1.5, 3.0).fit(data["X"], layer=data["layer"], sample_weight=data["energy"])),
        BESIDE,
    ),
    "DBSCAN, weights beside": Target(
        {"X": ("table", 9), "weight": ("real", 4)},
        lambda data: attributes(DBSCAN(1.5, min_samples=6).fit(data["X"], sample_weight=data["weight"]), "labels_"),
        BESIDE,
    ),
    "ds.clust": Target(
        {**PLANE, "layer": ("group", 3), "energy": ("real", 4)},
        lambda data: {name: found.values for name, found in clustered(data).items()},
        ("xarray", "xarray on dask"),
    ),
    "DBSCAN": Target(SPACE, lambda data: attributes(DBSCAN(2.0, min_samples=3).fit(data), "labels_", "is_core_")),
    "DBSCAN, events": Target(
        {**SPACE, "event": ("group", 2)},
        lambda data: attributes(DBSCAN(2.0, min_samples=3).fit(data), "labels_", "is_core_"),
    ),
    "FriendsOfFriends": Target(PLANE, lambda data: attributes(FriendsOfFriends(1.5).fit(data), "labels_")),
    "HDBSCAN": Target(
        {**SPACE, "event": ("group", 2)},
        lambda data: attributes(HDBSCAN(2).fit(data), "labels_", "probabilities_", "outlier_scores_"),
        IN_MEMORY,
    ),
    "EMST": Target(PLANE, lambda data: attributes(EMST().fit(data), "edges_", "lengths_"), IN_MEMORY),
    "EventBuilder": Target(
        {**HITS, "chip": ("group", 2)}, lambda data: attributes(EventBuilder(9.0).fit(data), "labels_")
    ),
    "MahalanobisHCA": Target(
        {"CD3": ("real", 9), "CD4": ("real", 9), "apriori": ("group", 3)},
        lambda data: attributes(MahalanobisHCA(6).fit(data), "linkage_", "labels_", "point_heights_"),
    ),
    "cluster_table": Target(
        {**PLANE, "energy": ("real", 5), "layer": ("label", 3), "label": ("label", 4)},
        lambda data: tabulated(properties.cluster_table(data)), rounding=1e-12,
    ),
    "cluster_table of pixels": Target(
        {**dict.fromkeys("xy", ("label", 9)), "toa": ("time", 40), "tot": ("real", 9), "label": ("label", 4)},
        lambda data: tabulated(properties.cluster_table(data)), rounding=1e-12,
    ),
    "halo_table": Target(
        {**SPACE, "mass": ("real", 5), "label": ("label", 4)},
        lambda data: tabulated(properties.halo_table(data)), rounding=1e-12,
    ),
    "metrics": Target(
        {"truth": ("label", 3), "labels": ("label", 3), "weight": ("real", 5)},
        lambda data: {"purity": metrics.purity(data["truth"], data["labels"], sample_weight=data["weight"])},
    ),
    "plot.clusters": Target(
        {**PLANE, "label": ("label", 3)}, lambda data: drawn(plot.clusters(data))
    ),
    "plot.projected_density": Target(
        PLANE, lambda data: {"density": plot.projected_density(data, pixels=9).dimension_values("density")}
    ),
    "plot.tot_spectrum": Target(
        {"tot": ("real", 30)}, lambda data: {"hits": plot.tot_spectrum(data, bins=5).dimension_values(1)}
    ),
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- a case
class Case(NamedTuple):
    target: str
    container: str
    columns: dict[str, Column]

    def __str__(self) -> str:
        columns = {name: (each.type, each.value, each.layout) for name, each in self.columns.items()}
        return f"{self.target} of {self.container}: {columns}"


def draw(rng: np.random.Generator) -> Case:
    """Return a case: mostly of types that are taken, or nearly all cases would be refusals."""
    target = str(rng.choice(list(TARGETS)))
    taken = {kind: [name for name in TYPES if refusal(name, kind) is None] for kind in KINDS}
    taken["time"] = taken["table"] = taken["far"] = taken["real"]
    taken["small"] = taken["group"]
    odd = rng.random() < 0.15
    while True:
        container = str(rng.choice(TARGETS[target].containers))
        columns = {
            name: draw_column(rng, kind, high, TYPES if odd else taken[kind])
            for name, (kind, high) in TARGETS[target].columns.items()
        }
        if suits(container, columns):
            return Case(target, container, columns)


def plain_data(case: Case) -> dict[str, np.ndarray]:
    """Return the columns as plain arrays of this machine's own types, as the page says."""
    data = {}
    coordinates = {name: each for name, each in case.columns.items() if name in ("x", "y", "z", "CD3", "CD4", "X")}
    small = {"float32", "int8", "int16", "uint8", "uint16", "bool"}
    types = {each.type for each in coordinates.values()}
    is_single = "float32" in types and types <= small
    for name, each in case.columns.items():
        if each.kind != "real":
            data[name] = each.plain.astype(np.int64)
        elif name in coordinates:
            data[name] = each.plain.astype(np.float32 if is_single else np.float64)
        else:
            data[name] = each.plain
    return data


def answer(target: Target, data: Any) -> dict[str, np.ndarray]:
    with dask.config.set(scheduler="synchronous"):
        return {name: np.asarray(values) for name, values in target.call(data).items()}


def check(case: Case) -> str:
    """Raise unless the case gives the plain answer or the error that the page promises; return which."""
    target = TARGETS[case.target]
    words = [each.words for each in case.columns.values() if each.words is not None]
    try:
        got = answer(target, CONTAINERS[case.container]({name: each.given for name, each in case.columns.items()}))
    except (TypeError, ValueError) as error:
        if not words or not any(each in str(error) for each in words):
            raise AssertionError(f"{case}\n{type(error).__name__}: {error}\nallowed: {words}") from error
        return "refused"
    if words:
        raise AssertionError(f"{case}\nno error, but the page says: {words}")
    wanted = answer(target, plain_data(case))
    for name, values in wanted.items():
        compare = np.testing.assert_array_equal
        if target.rounding and values.dtype.kind == "f":
            atol = RATIOS if name in ("b_to_a", "c_to_a") else target.rounding
            compare = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=atol)
        compare(got[name], values, err_msg=f"{case}\n{name}")
    return "equal"
