"""Pictures of clusterings: HoloViews elements for bokeh and matplotlib; in three dimensions for plotly and matplotlib.

In a notebook call ``holoviews.extension("bokeh")`` (or ``"matplotlib"``) once, as for any other HoloViews element.
Clusters have nine colours that people with any colour vision can tell apart, the same where labels are equal modulo
nine; noise is grey, and amounts have the colours of viridis. bokeh draws without a ground, to be read in light and in
dark notebooks; matplotlib draws for paper. The gallery of the documentation has an example of each picture.
"""

from __future__ import annotations

from daskclust.plot._cells import channel_medians, ellipse_grid, ellipses
from daskclust.plot._clusters import clusters, layers
from daskclust.plot._condensed import condensed_tree, spanning_tree
from daskclust.plot._decision import RHO, decision
from daskclust.plot._halos import halo_circles, mass_function, projected_density
from daskclust.plot._pixels import event_display, hit_map
from daskclust.plot._save import save
from daskclust.plot._space import scatter3d
from daskclust.plot._spectra import cluster_sizes, energy_spectrum, rate, size_spectrum, tof_spectrum, tot_spectrum
from daskclust.plot._trees import dendrogram, point_height_scatter

__all__ = [
    "RHO", "channel_medians", "cluster_sizes", "clusters", "condensed_tree", "decision", "dendrogram",
    "ellipse_grid", "ellipses", "energy_spectrum", "event_display", "halo_circles", "hit_map", "layers",
    "mass_function", "point_height_scatter", "projected_density", "rate", "save", "scatter3d", "size_spectrum",
    "spanning_tree", "tof_spectrum", "tot_spectrum",
]  # fmt: skip
