"""What kernels are compiled for beforehand: each run of the registry, and more kinds of points for the usual systems.

Usual are one to three coordinates (in hierarchical clustering any number), float32 and float64, open and periodic
spaces, in memory and in chunks, and the types that readers give. What is not here is compiled where it is first used.
"""

import itertools
import tempfile
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np

from daskclust import CLUE, DBSCAN, EventBuilder, EventStream, FriendsOfFriends, MahalanobisHCA, datasets, io, systems
from daskclust.accessor import ClustAccessor
from daskclust.hdbscan.event_trees import event_trees
from daskclust.hdbscan.spanning_tree import spanning_tree
from daskclust.properties import cluster_table, halo_table

_POINTS = 400


def use_everything(part=0, parts=1):
    """Call all that has kernels, or one of so many parts of it."""
    small_tasks = {"scheduler": "synchronous", "daskclust.task-seconds": 0}
    with dask.config.set(small_tasks), tempfile.TemporaryDirectory() as folder:
        for use in list(_uses(Path(folder)))[part::parts]:
            use()


def _uses(folder):
    """Yield functions, those of float32 and float64 in turn: they have few kernels in common."""
    for dimensions, dtype in itertools.product((3, 2, 1), systems.DTYPES):
        yield partial(_use_points, dimensions, dtype)
    for use, dtype in itertools.product((_use_cells, _use_halos), systems.DTYPES):
        yield partial(use, dtype)
    for use in systems.uses(systems.SYSTEMS):
        yield partial(_use_run, *use)
    yield partial(_use_pixels, folder)


def _use_run(name, run, dtype):
    for fitted in systems.run_one(systems.SYSTEMS[name], run, dtype, np.asarray):
        dask.compute([value for name, value in vars(fitted).items() if name.endswith("_")])


def _use_points(dimensions, dtype):
    """Cluster points that are scattered, many of them equal, or far apart, in memory and in chunks."""
    scattered = np.random.default_rng(0).uniform(0, 8, (_POINTS, dimensions)).astype(dtype)
    for X in (scattered, np.repeat(scattered[:100], 80, axis=0), 1e4 * scattered):
        _use_clue(X, np.asarray, "auto")
        _use_density(X, np.asarray, "auto")
        for min_samples in (1, 5, 30):
            spanning_tree(X, min_samples)
            event_trees(X, np.arange(len(X)) // 50, min_samples, (), 1.0)
        for partition in ("auto", "space"):
            _use_clue(X, _in_chunks, partition)
            _use_density(X, _in_chunks, partition)


def _in_chunks(array):
    return da.from_array(array, chunks=(len(array) // 8, *array.shape[1:]))


def _use_clue(X, give, partition):
    """Cluster by CLUE, alone and in layers or events, with each kernel of the density and each reach."""
    layer, weight = np.arange(len(X)) // 150, np.ones(len(X), X.dtype)
    ways = [{"delta_c": delta} for delta in (0.5, 0.8, 2.0)]
    if give is np.asarray:
        ways += [{"neighbor_weight": 0.5}, {"kernel": "gaussian"}, {"kernel": "exponential"}]
    for columns in ({}, {"layer": layer, "sample_weight": weight}, {"event": layer}):
        rhoc = give(weight) if "event" in columns else 2.0
        given = {name: give(values) for name, values in columns.items()}
        for way, wrap in itertools.product(ways, (None, {0: 8e4})):
            clue = CLUE(0.5, rhoc, **{"delta_c": 0.8, "neighbor_weight": 1.0, **way}, wrap=wrap)
            clue.fit(give(X), **given, partition=partition)
            again = clue.rethreshold(rhoc=1.0)
            dask.compute(clue.labels_, clue.density_, clue.delta_, clue.nearest_higher_, again.labels_)


def _use_density(X, give, partition):
    """Cluster by DBSCAN and friends-of-friends, in open and in periodic space."""
    weight = give(np.ones(len(X), X.dtype))
    for boxsize in (None, 8e4):
        dask.compute(FriendsOfFriends(0.3, boxsize=boxsize).fit(give(X), partition=partition).labels_)
        for min_samples, sample_weight in itertools.product((1, 5, 50), (None, weight)):
            dbscan = DBSCAN(0.4, min_samples=min_samples, boxsize=boxsize)
            found = dbscan.fit(give(X), sample_weight=sample_weight, partition=partition)
            dask.compute(found.labels_, found.core_sample_indices_)


def _use_cells(dtype):
    """Cluster points in five dimensions: hierarchies with and without apriori clusters, their cuts, and by density."""
    X = np.random.default_rng(0).normal(size=(_POINTS, 5)).astype(dtype)
    for threshold, apriori in itertools.product((1.0, 0.1), (None, 10)):
        fitted = MahalanobisHCA(threshold).fit(np.repeat(X, 2, axis=0), apriori=apriori)
        cuts = fitted.labels(n_clusters=3), fitted.labels(height=1.0, min_size=5), fitted.point_heights_
        dask.compute(cuts)
    MahalanobisHCA(0.1, distance="full").fit(X)
    DBSCAN(1.0, min_samples=3).fit(X)


def _use_halos(dtype):
    """Make tables of halos, also where snapshots have one mass for all particles, and of positions alone."""
    box = datasets.cosmology_box(2000, rng=0).astype(dtype)
    for given in (box, box.assign(mass=box["mass"].astype(np.float64)), box[["x", "y", "z"]]):
        for each, boxsize in itertools.product((given, given.chunk()), (None, box.attrs["boxsize"])):
            halos = ClustAccessor(each.assign_attrs(boxsize=boxsize)).fof(0.1)
            dask.compute(halo_table(halos), cluster_table(halos, weight=None))


def _use_pixels(folder):
    """Write and read raw hits, build events of them at once and as a stream, and make tables."""
    file = folder / "hits.tpx3"
    hits = datasets.timepix(_POINTS, rng=0, chips=4)
    io.write_tpx3(hits, file)
    variants = "local", "global", "static"
    for layout, chunks, variant in itertools.product(("chips", "quad"), (None, 100), variants):
        read = io.open_tpx3(file, layout=layout, chunks=chunks)
        cluster_table(ClustAccessor(read).events(200.0, variant=variant, min_hits=2)).compute()
    dask.compute(io.open_tpx3_triggers(file).variables)
    table = np.stack([hits.x, hits.y, hits.toa], axis=1)
    columns = {name: hits[name].values for name in ("x", "y", "toa")}
    for variant in variants:
        builder = EventBuilder(200.0, variant=variant)
        for dtype in (np.uint8, np.uint16, np.int32, np.int64):  # of x and y, as tables of other programs have them
            given = {name: values.astype(dtype if name in "xy" else float) for name, values in columns.items()}
            dask.compute(builder.fit({name: _in_chunks(values) for name, values in given.items()}).labels_)
            table_of_hits = hits[["tot"]].assign({name: ("hit", values) for name, values in given.items()})
            cluster_table(table_of_hits.chunk(hit=100), builder.fit(given).labels_).compute()
            backwards = {name: values[::-1] for name, values in given.items()}
            for chip in ({}, {"chip": hits["chip"].values.astype(dtype)}):
                builder.fit({**given, **chip}), builder.fit({**backwards, **chip})
        builder.fit(table)
        for far in (np.uint16, np.int64):  # far more pixels than hits
            x, one_chip = (hits["x"].values * 200).astype(far), np.zeros(len(table), far)
            builder.fit({**columns, "x": x}), builder.fit({**columns, "x": x, "chip": one_chip})
        list(EventStream([file.read_bytes()], builder, reader=io.WordReader(trigger=1)))
        list(EventStream([hits], builder))
