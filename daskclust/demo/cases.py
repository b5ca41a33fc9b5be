"""What each demonstration makes, clusters and shows: lines of Python, which are run and are on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr


class DemoPicture(NamedTuple):
    """A picture of the page: its heading, what is seen, and the line that draws it in a notebook.

    With `points`, a line for a Dataset with ``x``, ``y``, ``z`` and ``label``, the page shows these in 3-D instead.
    """

    heading: str
    seen: str
    line: str
    points: str | None = None


class Case(NamedTuple):
    """The demonstration of one system."""

    title: str
    about: str  # what the data are, and what clusters are
    data: str
    cluster: str
    table: str
    pictures: tuple[DemoPicture, ...]
    command: str  # the same in a terminal; FILE is what the demonstration wrote
    other: str  # with another parameter, and what changes
    change: str
    truth: Callable[[xr.Dataset], tuple[Any, Any]]  # true clusters and weights of the points
    more: tuple[tuple[str, str, str], ...] = ()  # what pictures need beside: what it is, its name, and the line

    def run(self, line: str, **names: Any) -> Any:
        """Return the value of one of the lines."""
        from daskclust import datasets, plot, properties

        return eval(line, {"datasets": datasets, "np": np, "plot": plot, "properties": properties} | names)

    def names(self, found: xr.Dataset, table: xr.Dataset) -> dict[str, Any]:
        """Return all that the lines of pictures name."""
        names: dict[str, Any] = {"found": found, "table": table}
        for _, name, line in self.more:
            names[name] = self.run(line, **names)
        return names

    def write(self, ds: xr.Dataset, path: Path) -> None:
        """Write the points to a file that the commands read."""
        from daskclust import io

        (io.write_cells if "X" in ds else io.write_hits)(ds, path)


def _in_layers(found: xr.Dataset) -> tuple[Any, Any]:
    """Return showers, those of each layer by themselves as clusters are, and energies."""
    truth, layer = (found[name].values.astype(np.int64) for name in ("truth", "layer"))
    return np.where(truth >= 0, truth * (layer.max() + 1) + layer, -1), found["energy"].values


CASES: dict[str, Case] = {
    "clue": Case(
        "CLUE: showers in a calorimeter",
        "An event like those of CMS's high-granularity calorimeter: particles leave showers of hits in 47 layers, on "
        "top of noise. CLUE clusters the hits of each layer by their local density of energy.",
        "datasets.hgcal_event(rng={seed})",
        "ds.clust.clue(dc=2.0, rhoc=0.3, delta_c=2.0, delta_o=3.0)",
        "properties.cluster_table(found)",
        (
            DemoPicture(
                "The event in 3-D",
                "Each shower has one colour through all layers; hits in no cluster are left out. Particles come from "
                "one point in front of the detector. In a notebook, from the side:",
                "plot.clusters(found, 'z', 'y', labels=shower)",
                "found.assign(label=('hit', shower))",
            ),
            DemoPicture(
                "One layer",
                "Colours are clusters, grey hits are noise. A star is the seed of a cluster; lines go from each hit to "
                "its nearest neighbour of higher density.",
                "plot.clusters(found, layer=12, links=True)",
            ),
            DemoPicture(
                "Decision plot",
                "Each hit by its density and its distance to the nearest denser hit. Seeds are right of "
                "rhoc, the vertical line, and above delta_c, the lower horizontal one.",
                "plot.decision(found, logx=True)",
            ),
            DemoPicture(
                "Energy of the clusters",
                "Most clusters have little energy; the cores of showers are at the right end.",
                "plot.energy_spectrum(table)",
            ),
        ),
        "daskclust clue FILE --dc 2 --rhoc 0.3 --delta-c 2 --delta-o 3",
        "daskclust clue FILE --dc 2 --rhoc 0.1 --delta-c 2 --delta-o 3",
        "a lower threshold of density finds more, fainter clusters",
        _in_layers,
        (
            ("directions of clusters", "seen", "table.assign(u=table['x'] / table['z'], v=table['y'] / table['z'])"),
            (
                "CLUE again, of the clusters of all layers",
                "showers",
                "seen.clust.clue(0.01, 3.0, delta_o=0.02, coordinates=('u', 'v'), layer=None)",
            ),
            ("of each hit", "shower", "np.append(showers['label'], -1)[found['label']]"),
        ),
    ),
    "events": Case(
        "Event building: ions on a pixel detector",
        "Hits of lead ions on a Timepix3 detector, in the order of time. Hits belong together where their pixels touch "
        "and their times differ by 200 ns at most.",
        "datasets.timepix(60_000, kind='lead', rng={seed})",
        "ds.clust.events(dt_max=200.0, min_hits=3)",
        "properties.cluster_table(found)",
        (
            DemoPicture(
                "Two milliseconds",
                "Each colour is one ion, with the delta electrons that leave its track; grey pixels are in clusters of "
                "fewer than three hits.",
                "plot.event_display(found, window=(0, 2e6))",
            ),
            DemoPicture(
                "The largest cluster",
                "Time over threshold, which grows with the energy in a pixel: the core of the track is the brightest.",
                "plot.event_display(found, clusters=[int(table['size'].values.argmax())], color='tot')",
            ),
            DemoPicture(
                "Size of the clusters",
                "How many clusters have how many hits, on logarithmic axes.",
                "plot.size_spectrum(table)",
            ),
            DemoPicture(
                "Rate",
                "Hits and clusters over time. Hits come in bunches, as an ion hits some hundred pixels at once.",
                "plot.rate(found, table, logy=True)",
            ),
        ),
        "daskclust events FILE --dt-max 200 --min-hits 3",
        "daskclust events FILE --dt-max 50 --min-hits 3",
        "a shorter time breaks tracks whose charge drifts longer",
        lambda found: (found["truth"].values, None),
    ),
    "fof": Case(
        "Friends-of-friends: halos of a simulation",
        "Particles of a periodic box with halos, filaments and voids. Particles closer than 0.2 times their mean "
        "separation are friends; groups of 20 friends or more are halos.",
        "datasets.cosmology_box(300_000, smallest=20, filaments=0, web=0.03, background=0.5, rng={seed})",
        "ds.clust.fof(b=0.2, min_members=20)",
        "properties.halo_table(found)",
        (
            DemoPicture(
                "The halos in 3-D",
                "Each halo has one of nine colours; particles in none are left out. In a notebook, along the line of "
                "sight:",
                "plot.clusters(found)",
                "found",
            ),
            DemoPicture(
                "A slice of the box",
                "Number of particles along the line of sight: filaments around voids. Circles are the 60 halos with "
                "most mass; one that crosses a face of the box goes on at the other side.",
                "plot.projected_density(slab, pixels=128) * plot.halo_circles(inside, most=60)",
            ),
            DemoPicture(
                "Halos of the slice",
                "Colours are halos, grey particles are in none.",
                "plot.clusters(slab)",
            ),
            DemoPicture(
                "Mass function",
                "Halos of each mass by volume, with the error of their number. Light halos are the most frequent.",
                "plot.mass_function(table, bins=12)",
            ),
        ),
        "daskclust fof FILE --b 0.2 --min-members 20",
        "daskclust fof FILE --b 0.15 --min-members 20",
        "a shorter linking length leaves the dense centres of halos",
        lambda found: (found["halo"].values, None),
        (
            ("particles of a slice", "slab", "found.isel(particle=(found['z'] < 8).values)"),
            ("halos of a slice", "inside", "properties.select(table, 'z < 8')"),
        ),
    ),
    "dbscan": Case(
        "DBSCAN: two half moons",
        "Points on two half circles, one inside the other, with uniform noise. Points with 10 or more within 12 cm, "
        "themselves included, are core points; core points within 12 cm of each other are one cluster.",
        "datasets.moons(4_000, rng={seed})",
        "ds.clust.dbscan(eps=12.0, min_samples=10)",
        "properties.cluster_table(found)",
        (
            DemoPicture(
                "Clusters",
                "Clusters may have any shape. Grey points have too few neighbours, and are noise.",
                "plot.clusters(found)",
            ),
            DemoPicture(
                "A third of the radius",
                "With 4 cm instead of 12 the arcs break where points are few, and more points are noise.",
                "plot.clusters(found.clust.dbscan(eps=4.0, min_samples=10))",
            ),
        ),
        "daskclust dbscan FILE --eps 12 --min-samples 10",
        "daskclust dbscan FILE --eps 40 --min-samples 10",
        "with a larger radius both moons are one cluster",
        lambda found: (found["truth"].values, None),
    ),
    "hdbscan": Case(
        "HDBSCAN*: two half moons, without a radius",
        "Points on two half circles, one inside the other, with uniform noise. Clusters are what stays together over "
        "the largest range of densities: 100 points and more, and no distance is chosen.",
        "datasets.moons(4_000, rng={seed})",
        "ds.clust.hdbscan(min_cluster_size=100, min_samples=10)",
        "properties.cluster_table(found)",
        (
            DemoPicture(
                "Clusters",
                "Each moon is a cluster, whatever its density. Grey points left before a cluster was born: noise.",
                "plot.clusters(found)",
            ),
            DemoPicture(
                "The densest parts",
                "The smallest clusters of ten points and more, instead of those that last: by chance some parts of a "
                "moon are denser than what is between them.",
                "plot.clusters(found.clust.hdbscan(min_cluster_size=10, cluster_selection_method='leaf'))",
            ),
        ),
        "daskclust hdbscan FILE --min-cluster-size 100 --min-samples 10",
        "daskclust hdbscan FILE --min-cluster-size 10 --cluster-selection-method leaf",
        "the smallest clusters of ten points and more, of which there are many",
        lambda found: (found["truth"].values, None),
    ),
    "hca": Case(
        "Mahalanobis clustering: populations of cells",
        "Cells of a blood sample in six channels of a cytometer. Clusters are merged pairwise, by a distance that "
        "follows their shape, so that a population may be long and thin.",
        "datasets.cytometry(5_000, 6, rarest=0.01, rng={seed})",
        "ds.clust.hca(threshold=100, n_clusters=8, min_size=30)",
        "properties.cluster_table(found, weight=None, coords=['point_height'])",
        (
            DemoPicture(
                "Dendrogram",
                "The last merges of the hierarchy. Leaves are clusters with their number of cells; the higher two are "
                "joined, the more they differ.",
                "plot.dendrogram(found, 16, min_size=30)",
            ),
            DemoPicture(
                "Two channels",
                "Cells in the colours of their clusters. An ellipse holds 86 % of a normal distribution of the same "
                "covariance.",
                "plot.ellipses(found, 'label', 'marker_1', 'marker_2')",
            ),
            DemoPicture(
                "Medians of the channels",
                "The pattern of each population: a bright cell is a channel in which it is high.",
                "plot.channel_medians(found, 'label', Z=found)",
            ),
        ),
        "daskclust hca FILE --threshold 100 --n-clusters 8 --min-size 30",
        "daskclust hca FILE --threshold 100 --n-clusters 4 --min-size 30",
        "fewer clusters join populations that are alike",
        lambda found: (found["population"].values, None),
    ),
}
"""The demonstration of each system, by its name."""
