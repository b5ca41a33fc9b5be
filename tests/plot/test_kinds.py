"""All functions draw the same of all that users have: Datasets, DataFrames, mappings, arrays, fitted estimators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import holoviews as hv
import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
import xarray as xr
from cases import pictures as made
from cases.elements import options

from daskclust import CLUE, DBSCAN, EventBuilder, plot, properties

COLUMNS = ("x", "y", "z", "layer", "energy", "toa", "tof", "tot", "chip", "mass", "size", "r_max", "label")
CLUE_RESULTS = ("density", "delta", "nearest_higher", "is_seed")


def frame(ds: xr.Dataset) -> pd.DataFrame:
    """Return columns as a pandas DataFrame, which keeps the box and has no units."""
    found = pd.DataFrame({name: ds[name].values for name in (*COLUMNS, *CLUE_RESULTS) if name in ds.variables})
    found.attrs = {name: ds.attrs[name] for name in ("boxsize",) if name in ds.attrs}
    return found.rename_axis(ds[found.columns[0]].dims[0])


TABLES: dict[str, Callable[[xr.Dataset], Any]] = {
    "DataFrame": frame,
    "mapping": lambda ds: {str(name): ds[name].values for name in ds.variables},
    "chunks": lambda ds: ds.chunk(),
}


@functools.cache
def layer() -> xr.Dataset:
    return made.layer().isel(hit=slice(1_500))


def bare(ds: xr.Dataset) -> xr.Dataset:
    return ds.drop_vars(["label", *CLUE_RESULTS], errors="ignore")


@functools.cache
def clue() -> CLUE:
    return CLUE(5.0, 4.0, delta_o=6.0).fit(bare(layer()))


@functools.cache
def cells() -> xr.Dataset:
    """Return cells whose labels are those of their estimator."""
    ds, hca, _ = made.cells()
    linkage = ("merge", "linkage_column"), np.asarray(hca.linkage_)
    return ds.assign(label=("cell", np.asarray(hca.labels_)), linkage=linkage)


def cell_frame() -> pd.DataFrame:
    channels = [str(name) for name in cells()["channel"].values]
    return pd.DataFrame(cells()["X"].values, columns=channels).assign(label=cells()["label"].values)


def matrix(ds: xr.Dataset, *names: str) -> np.ndarray:
    return np.stack([ds[name].values for name in names], axis=1)


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
    "scatter3d": (made.particles, plot.scatter3d),
}


def pairs() -> Iterator[tuple[str, Any, Any]]:
    """Yield the same picture in two ways, of a Dataset or arrays and of what else does."""
    points, hits, hca, of = layer(), made.hits(), made.cells()[1], cells()["label"]
    found, label, X = points[["x", "y", "label"]], points["label"].values, matrix(points, "x", "y")
    one, other = plot.clusters(points, links=True), plot.clusters(bare(points), labels=clue(), links=True)
    yield "clusters CLUE", one, other
    yield "clusters array", plot.clusters(found), plot.clusters(X, labels=label)
    theirs = sklearn.cluster.DBSCAN(3.0).fit(X)
    yield (
        "clusters scikit-learn",
        plot.clusters(X, labels=DBSCAN(3.0).fit(X)),
        plot.clusters(bare(found), labels=theirs),
    )
    renamed = frame(found).rename(columns={"label": "mine"})
    yield "clusters column", plot.clusters(found), plot.clusters(renamed, labels="mine")
    yield "clusters dask", plot.clusters(points), plot.clusters(dd.from_pandas(frame(points), npartitions=2))
    X = matrix(made.particles(), "x", "y", "z")
    theirs = DBSCAN(3.0).fit(X)
    yield "scatter3d array", plot.scatter3d(made.particles(), labels=theirs), plot.scatter3d(X, labels=theirs)
    yield "decision", plot.decision(points), plot.decision(clue())
    builder = EventBuilder(200.0, min_hits=3).fit(hits)
    yield "cluster_sizes", plot.cluster_sizes(properties.cluster_table(hits)), plot.cluster_sizes(builder)
    yield "size_spectrum", plot.size_spectrum(properties.cluster_table(hits)), plot.size_spectrum(builder)
    shown = functools.partial(plot.event_display, window=(0.0, 1e6))
    yield "event_display", shown(hits), shown(hits.drop_vars("label"), builder)
    yield "hit_map array", plot.hit_map(hits), plot.hit_map(matrix(hits, "x", "y", "toa"))
    particles, density = (
        made.particles().assign_attrs(boxsize=0.0),
        functools.partial(plot.projected_density, pixels=32),
    )
    yield "projected_density array", density(particles), density(matrix(particles, "x", "y", "z"))
    Z, X = np.asarray(hca.linkage_), cells()["X"].values
    tree, lazy = da.from_array(Z, chunks=(500, 4)), da.from_array(X, chunks=(999, 3))
    for name, given, labels in (("", hca, hca), (" Dataset", cells(), None), (" dask", tree, of.chunk().data)):
        yield f"dendrogram{name}", plot.dendrogram(Z, labels=of), plot.dendrogram(given, labels=labels)
    ds, hdbscan = made.densities()
    tree_of_it, label = hdbscan.condensed_tree_, hdbscan.labels_
    yield "condensed_tree", plot.condensed_tree(hdbscan), plot.condensed_tree(hdbscan, labels=label.tolist())
    yield (
        "condensed_tree labels",
        plot.condensed_tree(tree_of_it),
        plot.condensed_tree(tree_of_it, labels=0 * label - 1),
    )
    yield "spanning_tree", plot.spanning_tree(ds, hdbscan), plot.spanning_tree(matrix(ds, "x", "y"), hdbscan)
    yield "point_height_scatter", plot.point_height_scatter(Z, Z), plot.point_height_scatter(hca, tree)
    yield "ellipses", plot.ellipses(cells(), None, 0, 1), plot.ellipses(X.tolist(), hca, 0, 1)
    one, other = (plot.ellipses(each, None, "marker_1", "marker_2") for each in (cells().chunk(cell=999), cell_frame()))
    yield "ellipses frame", one, other
    yield "ellipse_grid", plot.ellipse_grid(cells()), plot.ellipse_grid(cell_frame(), "label")
    yield "channel_medians", plot.channel_medians(cells(), Z=Z), plot.channel_medians(cell_frame(), hca, Z=hca)
    one, other = plot.channel_medians(X, of, Z=Z), plot.channel_medians(lazy, of.chunk(cell=777), Z=tree)
    yield "channel_medians dask", one, other


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


@pytest.mark.parametrize("name", OF_TABLES)
def test_tables(name: str) -> None:
    given, draw = OF_TABLES[name]
    for kind, converted in TABLES.items():
        ds = given().drop_attrs(deep=False) if kind == "mapping" else given()  # a mapping has no box
        same(draw(ds), draw(converted(ds)))


def test_estimators_and_arrays(subtests: pytest.Subtests) -> None:
    names = set(OF_TABLES)
    for name, one, other in pairs():
        names.add(name.split()[0])
        with subtests.test(name):
            same(one, other)
    assert names == set(plot.__all__) - {"RHO", "save"}, "every function"


def test_labels_take_the_place_of_results() -> None:
    """Seeds of another clustering are not drawn."""
    labels = np.zeros(layer().sizes["hit"], int)
    assert [each.label for each in plot.clusters(layer(), labels=labels).values()] == ["noise", "member"]


def test_titles_tell_the_system() -> None:
    X = matrix(layer(), "x", "y")
    titles = {
        "; CLUE(dc=5 cm, rhoc=4 GeV)": plot.clusters(layer()),
        "; DBSCAN(eps=3.0)": plot.clusters(X, labels=DBSCAN(3.0).fit(X)),
        "; EventBuilder(dt_max=200 ns, variant=local)": plot.event_display(made.hits(), window=(0.0, 1e6)),
        "; MahalanobisHCA(threshold=100)": plot.dendrogram(made.cells()[1]),
        "; CLUE(dc=5.0, delta_o=6.0, rhoc=4.0)": plot.decision(clue()),
        "noise": plot.clusters(layer(), labels=layer()["label"].values),  # nobody knows where these come from
    }
    for words, picture in titles.items():
        assert options(picture)["title"].replace("\n", " ").endswith(words)
