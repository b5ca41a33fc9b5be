"""The entry of `daskclust/systems.py`."""

from daskclust.systems import Run, System

ENTRY = System(
    "grid", "Density on a grid", "grid_density.estimator:GridDensity", (Run({"width": 1.0, "min_samples": 3}),)
)
