"""Event building; a smallest number of hits needs no new clusters."""

from __future__ import annotations

from daskclust.app.parameters import Parameter
from daskclust.app.systems._base import System, is_timepix


class Events(System):
    """Event building of pixel hits."""

    name = "events"
    title = "Event building"
    needs = "x, y and toa"
    cut = "min_hits"
    point_seconds = 5e-8
    axes, side_axes = ("x", "y"), ("toa", "x")
    parameters = (
        Parameter("dt_max", "log", 200.0, 1.0, 10_000.0, unit="ns", doc="largest difference of times"),
        Parameter("min_hits", "whole", 1, 1, 100, doc="hits of a cluster, at least"),
        Parameter("variant", "choice", "local", choices=("local", "global", "static"), doc="what a cluster is"),
        Parameter("connectivity", "choice", 8, choices=(8, 4), doc="touching pixels"),
    )
    suits = staticmethod(is_timepix)
    measured = ("cluster_table", {})
