"""All functions draw the same of all that users have: Datasets, DataFrames, mappings, arrays, fitted estimators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
import xarray as xr
from cases import pictures as made
from cases.elements import options

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, plot, properties

COLUMNS = ("x", "y", "z", "layer", "energy", "toa", "tot", "tof", "chip", "mass", "size", "r_max", "label")
CLUE_RESULTS = ("density", "delta", "nearest_higher", "is_seed")


def frame(ds: xr.Dataset) -> pd.DataFrame:
    """Return columns as a pandas DataFrame, which keeps the box and has no units."""
    found = pd.DataFrame({name: ds[name].values for name in (*COLUMNS, *CLUE_RESULTS) if name in ds.variables})
    found.attrs = {name: ds.attrs[name] for name in ("boxsize",) if name in ds.attrs}
    return found.rename_axis(ds[found.columns[0]].dims[0])


def dask_frame(ds: xr.Dataset) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(frame(ds), npartitions=2)


TABLES: dict[str, Callable[[xr.Dataset], Any]] = {
    "DataFrame": frame,
    "mapping": lambda ds: {str(name): ds[name].values for name in ds.variables},
    "chunks": lambda ds: ds.chunk(),
}


@functools.cache
def layer() -> xr.Dataset:
    return made.layer().isel(hit=slice(1_500))


@functools.cache
def clue() -> CLUE:
    return CLUE(5.0, 4.0, delta_o=6.0).fit(bare(layer()))


@functools.cache
def builder() -> EventBuilder:
    return EventBuilder(200.0, min_hits=3).fit(made.hits())


@functools.cache
def cells() -> xr.Dataset:
    """Return cells whose labels are those of their estimator."""
    ds, hca, _ = made.cells()
    return ds.assign(label=("cell", np.asarray(hca.labels_)))


def cell_frame() -> pd.DataFrame:
    ds = cells()
    channels = [str(name) for name in ds["channel"].values]
    return pd.DataFrame(ds["X"].values, columns=channels).assign(label=ds["label"].values)


def bare(ds: xr.Dataset) -> xr.Dataset:
    return ds.drop_vars(["label", *CLUE_RESULTS], errors="ignore")


def xy(ds: xr.Dataset) -> np.ndarray:
    return np.stack([ds["x"].values, ds["y"].values], axis=1)


# what is drawn of a Dataset, and the functions of that
OF_TABLES: dict[str, tuple[Callable[[], xr.Dataset], Callable[[Any], Any]]] = {
    "clusters": (layer, lambda data: plot.clusters(data, links=True)),
    "layers": (made.layer, plot.layers),
    "decision": (layer, lambda data: plot.decision(data, rhoc=4.0, delta_c=5.0, delta_o=5.0)),
    "energy_spectrum": (lambda: made.clusters(made.event), plot.energy_spectrum),
    "cluster_sizes": (lambda: made.clusters(made.event), plot.cluster_sizes),
    "size_spectrum": (lambda: made.clusters(made.event), plot.size_spectrum),
    "event_display": (made.hits, lambda data: plot.event_display(data, window=(0.0, 1e6))),
    "hit_map": (made.hits, plot.hit_map),
    "tot_spectrum": (made.hits, plot.tot_spectrum),
    "tof_spectrum": (made.hits, plot.tof_spectrum),
    "rate": (made.hits, plot.rate),
    "projected_density": (made.particles, lambda data: plot.projected_density(data, pixels=64)),
    "halo_circles": (made.halos, lambda data: plot.halo_circles(data, most=20)),
    "mass_function": (made.halos, plot.mass_function),
}

# the same picture in two ways: of a Dataset, and of what else does
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "clusters labels=CLUE": (
        lambda: plot.clusters(layer(), links=True),
        lambda: plot.clusters(bare(layer()), labels=clue(), links=True),
    ),
    "clusters CLUE of a frame": (
        lambda: plot.clusters(layer()),
        lambda: plot.clusters(frame(bare(layer())), labels=CLUE(5.0, 4.0, delta_o=6.0).fit(frame(bare(layer())))),
    ),
    "clusters array": (
        lambda: plot.clusters(layer()[["x", "y", "label"]]),
        lambda: plot.clusters(xy(layer()), labels=layer()["label"].values),
    ),
    "clusters scikit-learn": (
        lambda: plot.clusters(xy(layer()), labels=DBSCAN(3.0).fit(xy(layer()))),
        lambda: plot.clusters(bare(layer())[["x", "y"]], labels=sklearn.cluster.DBSCAN(3.0).fit(xy(layer()))),
    ),
    "clusters column": (
        lambda: plot.clusters(layer()[["x", "y", "label"]]),
        lambda: plot.clusters(frame(layer()[["x", "y", "label"]]).rename(columns={"label": "mine"}), labels="mine"),
    ),
    "layers CLUE": (lambda: plot.layers(layer()), lambda: plot.layers(bare(layer()), labels=clue())),
    "decision": (lambda: plot.decision(layer()), lambda: plot.decision(clue())),
    "cluster_sizes": (
        lambda: plot.cluster_sizes(properties.cluster_table(made.hits())),
        lambda: plot.cluster_sizes(builder()),
    ),
    "size_spectrum": (
        lambda: plot.size_spectrum(properties.cluster_table(layer())),
        lambda: plot.size_spectrum(clue()),
    ),
    "event_display": (
        lambda: plot.event_display(made.hits(), window=(0.0, 1e6)),
        lambda: plot.event_display(made.hits().drop_vars("label"), builder(), window=(0.0, 1e6)),
    ),
    "hit_map array": (
        lambda: plot.hit_map(made.hits()),
        lambda: plot.hit_map(np.stack([made.hits()[name].values for name in ("x", "y", "toa")], axis=1)),
    ),
    "projected_density array": (
        lambda: plot.projected_density(made.particles().assign_attrs(boxsize=0.0), pixels=32),
        lambda: plot.projected_density(np.stack([made.particles()[k].values for k in "xyz"], axis=1), pixels=32),
    ),
    "dendrogram": (
        lambda: plot.dendrogram(made.cells()[1].linkage_, labels=cells()["label"]),
        lambda: plot.dendrogram(made.cells()[1], labels=made.cells()[1]),
    ),
    "dendrogram Dataset": (
        lambda: plot.dendrogram(made.cells()[1], labels=cells()["label"]),
        lambda: plot.dendrogram(
            cells().assign(linkage=(("merge", "linkage_column"), np.asarray(made.cells()[1].linkage_)))
        ),
    ),
    "point_height_scatter": (
        lambda: plot.point_height_scatter(made.cells()[1].linkage_, made.cells()[1].linkage_),
        lambda: plot.point_height_scatter(made.cells()[1], made.cells()[1]),
    ),
    "ellipses": (
        lambda: plot.ellipses(cells(), None, 0, 1),
        lambda: plot.ellipses(cells()["X"].values, made.cells()[1], 0, 1),
    ),
    "ellipses frame": (
        lambda: plot.ellipses(cells(), "label", "marker_1", "marker_2"),
        lambda: plot.ellipses(cell_frame(), None, "marker_1", "marker_2"),
    ),
    "ellipse_grid": (lambda: plot.ellipse_grid(cells()), lambda: plot.ellipse_grid(cell_frame(), "label")),
    "channel_medians": (
        lambda: plot.channel_medians(cells(), Z=made.cells()[1].linkage_),
        lambda: plot.channel_medians(cell_frame(), made.cells()[1], Z=made.cells()[1]),
    ),
}


def drawn(picture: Any) -> list[tuple[str, str, np.ndarray]]:
    """Return the label, kind and numbers of all elements, in the order in which they are drawn."""
    elements = [picture] if isinstance(picture, hv.Element) else picture.traverse(lambda each: each, [hv.Element])
    return [
        (
            each.label,
            type(each).__name__,
            np.stack([np.asarray(each.dimension_values(k), object) for k in each.dimensions()]),
        )
        for each in elements
        if len(each)
    ]


def same(one: Any, other: Any) -> None:
    one, other = drawn(one), drawn(other)
    assert [each[:2] for each in one] == [each[:2] for each in other]
    assert one, "something is drawn"
    for (*_, a), (*_, b) in zip(one, other, strict=True):
        assert a.shape == b.shape
        for columns in zip(a, b, strict=True):
            is_text = isinstance(columns[0][0], str)
            np.testing.assert_array_equal(*(each if is_text else each.astype(np.float64) for each in columns))


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", OF_TABLES)
def test_tables(name: str, kind: str) -> None:
    given, draw = OF_TABLES[name]
    ds = given().drop_attrs(deep=False) if kind == "mapping" else given()  # a mapping has no box
    same(draw(ds), draw(TABLES[kind](ds)))


@pytest.mark.parametrize("name", PAIRS)
def test_estimators_and_arrays(name: str) -> None:
    one, other = PAIRS[name]
    same(one(), other())


def test_every_function_takes_all_kinds() -> None:
    names = {name.split()[0] for name in (*OF_TABLES, *PAIRS)}
    assert names == set(plot.__all__) - {"RHO", "save"}


def test_a_dask_frame_is_drawn() -> None:
    same(plot.clusters(layer()), plot.clusters(dask_frame(layer())))
    same(plot.rate(made.hits()), plot.rate(dask_frame(made.hits())))


def test_labels_take_the_place_of_results() -> None:
    """Seeds of another clustering are not drawn."""
    labels = np.zeros(layer().sizes["hit"], int)
    assert [each.label for each in plot.clusters(layer(), labels=labels).values()] == ["noise", "member"]


def test_titles_tell_the_system() -> None:
    titles = {
        "; CLUE(dc=5 cm, rhoc=4 GeV)": plot.clusters(layer()),
        "; DBSCAN(eps=3.0)": plot.clusters(xy(layer()), labels=DBSCAN(3.0).fit(xy(layer()))),
        "; EventBuilder(dt_max=200 ns, variant=local)": plot.event_display(made.hits(), window=(0.0, 1e6)),
        "; MahalanobisHCA(threshold=100)": plot.dendrogram(made.cells()[1]),
        "; CLUE(dc=5.0, delta_o=6.0, rhoc=4.0)": plot.decision(clue()),
    }
    for words, picture in titles.items():
        assert options(picture)["title"].replace("\n", " ").endswith(words)
    plain = options(plot.clusters(layer(), labels=layer()["label"].values))["title"]
    assert plain.endswith("noise"), "nobody knows where these labels come from"


@functools.cache
def fof() -> FriendsOfFriends:
    return FriendsOfFriends(1.0).fit([[0.0, 0.0], [0.5, 0.0]])


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: plot.clusters(fof()),
        r"FriendsOfFriends keeps its results \(is_core, label\) and not its points.* no 'x'",
    ),
    (lambda: plot.clusters(np.zeros((2, 2)), labels=DBSCAN()), r"DBSCAN\(\) has no labels_ to draw; fit it first"),
    (lambda: plot.clusters(np.zeros((3, 2)), labels=fof()), r"labels have shape \(2,\), the points \(3,\)"),
    (lambda: plot.clusters(np.zeros((3, 2))), "ndarray has no column 'label'.*has x, y; cluster the points first"),
    (lambda: plot.clusters(pd.DataFrame({"a": [1]})), "DataFrame has no column 'x', which the picture needs; it has a"),
    (lambda: plot.clusters([1, 2, 3]), r"or a fitted estimator, got list of shape \(3,\)"),
    (lambda: plot.dendrogram(fof()), "has no linkage_ to draw; give a fitted MahalanobisHCA"),
    (lambda: plot.ellipses(fof(), fof(), 0, 1), "keeps its results.* no 'X'"),
    (
        lambda: plot.ellipses(np.zeros((3, 2)), None, 0, 1),
        "ndarray has no column 'label'.* has none; cluster the points",
    ),
]


@pytest.mark.parametrize(("draw", "words"), ERRORS, ids=[words for _, words in ERRORS])
def test_words(draw: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        draw()
