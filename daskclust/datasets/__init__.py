"""Data sets to try things on: seeded generators, and public sample files.

Every generator gives the same data for the same ``rng`` and a variable ``truth`` with the true cluster of each hit
(particles of a box of the universe: ``halo``; cells: ``population`` or ``apriori``). Its arguments are in ``attrs``. An
argument out of range is a ValueError, one that is no number a TypeError.
"""

from __future__ import annotations

from ._calorimeter import calorimeter, hgcal_event
from ._cosmology import cosmology_box
from ._cytometry import apriori_gaussians, cytometry
from ._flat import anisotropic_blobs, circles, moons
from ._samples import FILES, PublicFile, fetch
from ._spreader import seed_spreader
from ._timepix import readout_order, timepix

__all__ = [
    "FILES", "PublicFile", "anisotropic_blobs", "apriori_gaussians", "calorimeter", "circles", "cosmology_box",
    "cytometry", "fetch", "hgcal_event", "moons", "readout_order", "seed_spreader", "timepix",
]  # fmt: skip
