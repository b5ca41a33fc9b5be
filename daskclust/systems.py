"""The systems, an entry for each: workers, the explorer, `daskclust info` and tests of the laws read what there is."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt


class Run(NamedTuple):
    """One use of a system on its sample: all runs together need every kernel that is common."""

    parameters: Mapping[str, Any]
    dimensions: int = 2
    columns: tuple[str, ...] = ()  # arguments of ``fit`` besides the points


class Sample(NamedTuple):
    """Points and columns for ``fit``."""

    X: Any
    columns: dict[str, Any]

    def map(self, function: Callable[[Any], Any]) -> Sample:
        """Return the sample with a function applied to each array."""
        each = {name: function(values) for name, values in self.columns.items()}
        is_table = isinstance(self.X, dict)
        return Sample({name: function(v) for name, v in self.X.items()} if is_table else function(self.X), each)


def strip(n: int, run: Run, dtype: npt.DTypeLike) -> Sample:
    """Return `n` points in order along a strip: few of them are near a plane that divides it."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (n, run.dimensions))
    X[:, 0] = np.sort(rng.uniform(0, n / 6, n))
    groups = np.arange(n) // max(1, -(-n // 3))
    columns = {
        "layer": groups,
        "event": 5 * groups,
        "apriori": np.arange(n) % 3,
        "sample_weight": (rng.integers(0, 4, n) / 2).astype(dtype),
    }
    return Sample(X.astype(dtype), {name: columns[name] for name in run.columns})


def pixel_hits(n: int, run: Run, dtype: npt.DTypeLike) -> Sample:
    """Return hits of a pixel detector in the order of time, float64 whatever the dtype, or of frames of 100 us."""
    from daskclust.datasets import timepix

    hits = timepix(n, rng=0, rate=2e4, chips=2)
    hits["frame"] = hits["toa"] // 1e5
    names = ("x", "y", *(() if "frame" in run.columns else ("toa",)), *run.columns)
    return Sample({name: hits[name].values for name in names}, {})


def layer_clusters(n: int, run: Run, dtype: npt.DTypeLike) -> Sample:
    """Return layer clusters of showers that come from the origin, in both endcaps, and of noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    shower, layer = np.arange(n) // 30, rng.integers(1, 25, n)
    slope, phi = rng.uniform(0.15, 0.4, n)[shower], rng.uniform(-np.pi, np.pi, n)[shower]
    phi[rng.random(n) < 0.1] += 1.0
    z = (320 + 2.0 * layer) * np.where(shower % 2, 1, -1)
    x, y = (slope * abs(z) * turn + rng.normal(0, 0.6, n) for turn in (np.cos(phi), np.sin(phi)))
    energy = rng.exponential(0.05 + np.exp(-(((layer - 9) / 5.0) ** 2)))
    columns = {"layer": layer, "event": shower // 3, "sample_weight": energy.astype(dtype)}
    X = np.stack([x, y, z], axis=1).astype(dtype)
    return Sample(X, {name: columns[name] for name in ("layer", "sample_weight", *run.columns)})


@dataclass(frozen=True)
class System:
    """What a system is called, where it is, and how it is tried."""

    name: str  # as of ``ds.clust``, the command line and the explorer
    title: str
    estimator_at: str  # module and class: nothing is imported before it is needed
    runs: tuple[Run, ...]
    explorer_at: str | None = None
    partitions: tuple[str, ...] = ()  # values of ``partition=`` that suit any chunks, besides the default
    sample: Callable[[int, Run, npt.DTypeLike], Sample] = field(default=strip)
    any_columns: bool = True  # whether points may have any number of coordinates, as in scikit-learn's own checks
    size: int = 240  # points of a sample that all lanes of tests cluster in seconds

    @property
    def estimator(self) -> Any:
        """The estimator's class."""
        return _load(self.estimator_at)

    @property
    def explorer(self) -> Any:
        """The class that the explorer has for the system."""
        return _load(self.explorer_at or "")

    def __str__(self) -> str:
        return self.name


def _load(at: str) -> Any:
    module, name = at.split(":")
    return getattr(importlib.import_module(module), name)


_SPACES = [(2, None), (3, None), (2, (None, 4.0)), (3, (None, 4.0, 4.0))]  # dimensions, boxsize: open along the strip

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System(
            "clue",
            "CLUE",
            "daskclust.clue.estimator:CLUE",
            (
                Run({"dc": 0.6, "rhoc": 2.0}),
                Run({"dc": 0.6, "rhoc": 2.0}, columns=("layer", "sample_weight")),
                Run({"dc": 0.6, "rhoc": 2.0}, columns=("event", "sample_weight")),
            ),
            "daskclust.app.systems._clue:Clue",
            ("space",),
        ),
        System(
            "showers",
            "CLUE3D",
            "daskclust.clue3d.estimator:CLUE3D",
            (
                Run({"critical_density": 0.3}, 3, ("event",)),
                Run({"critical_density": 0.3, "use_absolute_projective_scale": False}, 3),
            ),
            sample=layer_clusters,
            any_columns=False,
        ),
        System(
            "events",
            "Event building",
            "daskclust.events.estimator:EventBuilder",
            (
                *(Run({"dt_max": 100.0, "variant": variant}) for variant in ("local", "global", "static")),
                Run({"dt_max": 100.0, "min_hits": 2}, columns=("chip",)),
                Run({}, columns=("chip", "frame")),
            ),
            "daskclust.app.systems._events:Events",
            ("windows",),
            pixel_hits,
            any_columns=False,
        ),
        System(
            "fof",
            "Friends-of-friends",
            "daskclust.dbscan.estimator:FriendsOfFriends",
            (
                *(Run({"linking_length": 0.4, "boxsize": boxsize}, d) for d, boxsize in _SPACES),
                Run({"linking_length": 0.4}, columns=("event",)),
            ),
            "daskclust.app.systems._density:Fof",
            ("space",),
        ),
        System(
            "dbscan",
            "DBSCAN",
            "daskclust.dbscan.estimator:DBSCAN",
            (
                *(Run({"eps": 0.4, "min_samples": 3, "boxsize": boxsize}, d) for d, boxsize in _SPACES),
                Run({"eps": 0.4, "min_samples": 3}, columns=("sample_weight",)),
                Run({"eps": 0.4, "min_samples": 3}, 3, ("event",)),
            ),
            "daskclust.app.systems._density:Dbscan",
            ("space",),
        ),
        System(
            "hdbscan",
            "HDBSCAN*",
            "daskclust.hdbscan.estimator:HDBSCAN",
            tuple(Run({"min_cluster_size": 5, "boxsize": boxsize}, d) for d, boxsize in _SPACES),
            "daskclust.app.systems._density:Hdbscan",
            ("space",),
        ),
        System(
            "hca",
            "Mahalanobis HCA",
            "daskclust.hca.estimator:MahalanobisHCA",
            (
                Run({"threshold": 0.3, "n_clusters": 3}, 4),
                Run({"threshold": 0.3, "n_clusters": 3}, 4, ("apriori",)),
            ),
            "daskclust.app.systems._hca:Hca",
            size=45,
        ),
    )
}
"""Each system by its name, in the order in which they are offered."""


DTYPES = "float32", "float64"


def uses(names: Iterable[str]) -> list[tuple[str, Run, str]]:
    """Return the runs of systems in both dtypes, which need all common kernels; neighbours share few of them."""
    return [(name, run, dtype) for name in names for run, dtype in itertools.product(SYSTEMS[name].runs, DTYPES)]


def run_one(system: System, run: Run, dtype: str, give: Callable[[Any], Any], n: int = 240) -> Iterator[Any]:
    """Yield fitted estimators of a run: in memory, and from two chunks of a dask array."""
    import dask.array as da

    sample = system.sample(n, run, dtype).map(give)
    yield system.estimator(**run.parameters).fit(sample.X, **sample.columns)
    chunked = sample.map(lambda a: da.from_array(a, chunks=(n // 2, *a.shape[1:]), asarray=False))
    for divided in ({}, *({"partition": partition} for partition in system.partitions)):
        yield system.estimator(**run.parameters).fit(chunked.X, **chunked.columns, **divided)
