"""The systems as the explorer sees them: parameters with ranges from the data, quick second runs, Python lines."""

from __future__ import annotations

import xarray as xr

from daskclust import systems as registry

from ._base import ExplorerSystem, Ground, Workload, point_columns
from ._clue import DELTA, DENSITY, Clue, Decision
from ._density import Condensed
from ._hca import Hca, Hierarchy, not_clustered

__all__ = [
    "DELTA", "DENSITY", "SYSTEMS", "Clue", "Condensed", "Decision", "ExplorerSystem", "Ground", "Hca", "Hierarchy",
    "Workload", "names_for", "not_clustered", "point_columns", "system_for",
]  # fmt: skip

SYSTEMS: dict[str, type[ExplorerSystem]] = {
    name: each.explorer for name, each in registry.SYSTEMS.items() if each.explorer_at
}
"""Each by its name, in the order in which they are offered."""


def names_for(ds: xr.Dataset) -> list[str]:
    """Return the systems that suit a data set, the most likely one first."""
    names = [name for name, system in SYSTEMS.items() if system.suits(ds)]
    is_particles = ds.attrs.get("field") == "particles" or "boxsize" in ds.attrs
    return sorted(names, key=lambda name: name != "fof") if is_particles else names


def system_for(ds: xr.Dataset, name: str | None) -> ExplorerSystem:
    """Return the system of a name, or the first that suits; raise where there is none."""
    suitable = names_for(ds)
    there = ", ".join(map(str, ds.variables)) or "none"
    if name is not None and name not in SYSTEMS:
        raise ValueError(f"system must be one of {', '.join(map(repr, SYSTEMS))}, got {name!r}")
    if name is not None and name not in suitable:
        raise ValueError(f"{name} needs {SYSTEMS[name].needs}; the data set has the variables {there}")
    if not suitable:
        raise ValueError(f"no system suits a data set with the variables {there}; rename positions to x and y")
    return SYSTEMS[name or suitable[0]](ds)
