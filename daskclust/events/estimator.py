"""The estimator of event building."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from daskclust.core.arrays import device_of, is_cuda, is_dask
from daskclust.core.checks import check_positive, check_whole
from daskclust.core.engine import Lazy, run_in_memory
from daskclust.core.inputs import beside, columns_of
from daskclust.core.lazy import blocks_of_space, map_points, rows_per_task, task_count
from daskclust.core.partition import Division, Partition
from daskclust.events.plan import RULES, EventPlan


class EventBuilder(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of pixel hits that touch in space and time: event building for Timepix detectors [1]_.

    Two hits are neighbours when their pixels touch, or are the same, and their times differ by `dt_max` at most. The
    answer depends on the order of hits with equal times for two of the variants, and on nothing else: not on chunks,
    workers, threads or the device.

    Parameters
    ----------
    dt_max : float
        Largest difference of times between neighbours, in the unit of ``toa`` (ns); 200 in the paper. Inclusive.
    variant : {"local", "global", "static"}, default "local"
        Definition of a cluster, (iii) a to c of section 2. ``"local"``: connected components of neighbours.
        ``"global"``: hits are taken in the order of time; one joins all clusters with a touching pixel whose latest hit
        is at most `dt_max` before it. ``"static"``: the same with their earliest hit, so no cluster is longer than
        `dt_max`.
    connectivity : {8, 4}, default 8
        Whether pixels touch at their corners too, or at their sides only.
    min_hits : int, default 1
        Clusters with fewer hits are noise.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Cluster of each hit, numbered by the time of the first hit (of hits with one time, by their order); noise is -1.
    n_clusters_ : int
        Number of clusters; a zero-dimensional dask array where the hits are dask arrays.

    See Also
    --------
    daskclust.properties.cluster_table : Size, energy, position, times and shape of each cluster.
    daskclust.io.open_tpx3 : Hits of a raw file.
    daskclust.EventStream : The same from a running readout.

    Notes
    -----
    Time and memory on the CPU are linear in the number of hits: the last hit of each pixel is kept in a table, and for
    every variant it stands for all earlier hits of its pixel. Where there are more than 128 pixels for each hit, it is
    a hash table, however many chips there are and however large a plane is. A GPU has no table. For ``"local"`` each
    hit has a thread, which looks back through the hits within `dt_max`; for the others each stretch of hits between
    quiet gaps of more than `dt_max` has one thread, which takes its hits one after the other.

    Hits of different chips are never neighbours where the data has a column ``chip``, unless it is a Dataset with
    ``attrs["layout"] == "quad"``: then coordinates are common to all chips, and clusters cross their seams.

    References
    ----------
    .. [1] T. Čelko, F. Mráz, B. Bergmann, P. Mánek, Parallel CPU- and GPU-based connected component algorithms for
       event building for hybrid pixel detectors, 2025, https://doi.org/10.48550/arXiv.2412.11809

    Examples
    --------
    >>> import numpy as np
    >>> from daskclust import EventBuilder
    >>> hits = np.array([[10, 10, 0.0], [11, 10, 25.0], [50, 50, 30.0], [11, 11, 150.0], [12, 12, 900.0]])  # x, y, toa
    >>> EventBuilder(dt_max=200.0).fit(hits).labels_
    array([0, 0, 1, 0, 2])
    """

    def __init__(self, dt_max: float, *, variant: str = "local", connectivity: int = 8, min_hits: int = 1) -> None:
        self.dt_max = dt_max
        self.variant = variant
        self.connectivity = connectivity
        self.min_hits = min_hits

    def fit(self, X: Any, y: None = None, *, chip: Any = ..., partition: str | Partition = "auto") -> EventBuilder:
        """Cluster hits.

        Parameters
        ----------
        X : xarray.Dataset, DataFrame, mapping of arrays, or array of shape (n, 3) or (n, 4)
            Hits with ``x``, ``y`` (pixels, whole numbers), ``toa`` (ns) and perhaps ``chip``, in this order where they
            are columns of an array: numpy, cupy or dask. They need not be in the order of time.
        y : None
            Ignored.
        chip : array of int, shape (n,), or None, optional
            Hits of different chips are never neighbours; None: x and y are common to all chips. Default: the data's
            ``chip``, unless its layout is a quad.
        partition : {"auto", "chunks", "windows"} or Partition, default "auto"
            How dask arrays are divided for the work; the result is the same. ``"chunks"``, and ``"auto"``: as they are
            chunked; no chunk may have a hit earlier than one of a chunk before it. ``"windows"``: into
            windows of time, with as many hits each; one pass over ``toa`` finds them. A task takes about half a second:
            small chunks are taken together.

        Returns
        -------
        EventBuilder
            Itself. On dask nothing is computed yet, but for that pass.

        Raises
        ------
        ValueError
            For a `dt_max` that is not positive, unknown options, columns that are missing or of unequal lengths,
            coordinates that are not whole, times that are not finite, dask arrays of unknown chunk sizes; and, when
            they are computed, for chunks that are not in the order of time.
        """
        plan = self._plan()
        columns = checked_columns(X, chip)
        if is_dask(columns["toa"]):
            results = Lazy(columns, _division(partition, columns, plan), "toa").run(plan, {"labels": np.int64})
        else:
            results = run_in_memory(plan, columns)
        self.labels_, self.n_clusters_ = results["labels"], results["n_clusters"]
        return self

    def _plan(self) -> EventPlan:
        """Check the parameters and return the plan."""
        if self.variant not in RULES:
            raise ValueError(f"variant must be {', '.join(map(repr, RULES))}, got {self.variant!r}")
        if self.connectivity not in (4, 8) or isinstance(self.connectivity, bool):
            raise ValueError(f"connectivity must be 8 or 4 pixels, got {self.connectivity!r}")
        least = check_whole("min_hits", self.min_hits, 1, clamp=True)
        return EventPlan(check_positive("dt_max", self.dt_max), self.variant, int(self.connectivity), least)


def checked_columns(X: Any, chip: Any) -> dict[str, Any]:
    """Return toa, x, y and perhaps chip, checked in all that needs no pass over the data."""
    columns = columns_of(X, ("x", "y", "toa"), ("chip",))
    if chip is not ...:
        columns["chip"] = chip
    elif getattr(X, "attrs", {}).get("layout") == "quad":
        columns["chip"] = None
    toa = _like_columns(columns)
    if toa.ndim != 1:
        raise ValueError(f"toa must have one dimension, got shape {toa.shape}")
    if is_dask(toa) and np.isnan(toa.shape[0]):
        raise ValueError("the hits have unknown chunk sizes; call .compute_chunk_sizes() on them first")
    if toa.dtype.kind not in "fiu":
        raise ValueError(f"toa must be numbers, in ns, got {toa.dtype}")
    if toa.dtype != np.float64:
        toa = map_points(_real, toa, dtype=np.float64) if is_dask(toa) else _real(toa)
    checked = {"toa": toa if is_dask(toa) or is_cuda(toa) else np.ascontiguousarray(toa)}
    for name in ("x", "y", "chip"):
        if columns.get(name) is not None:
            checked[name] = _numbers(name, columns[name], toa)
    return checked


def _like_columns(columns: dict[str, Any]) -> Any:
    """Return toa, as a dask array where any column is one."""
    toa = columns["toa"]
    lazy = [column for column in columns.values() if is_dask(column)]
    if is_dask(toa) or not lazy:
        return toa if hasattr(toa, "dtype") else np.asarray(toa)
    return beside(lazy[0], "toa", toa, np.float64)


def _real(toa: Any) -> Any:
    """Return times as float64, which holds whole numbers up to 2**53."""
    device = device_of(toa)
    if toa.dtype.kind in "iu" and toa.dtype.itemsize == 8 and len(toa):
        host = device.to_host(toa)
        farthest = max(int(host.max()), int(host.min()), key=abs)
        if abs(farthest) > 2**53:
            raise ValueError(
                f"toa reaches {farthest}, beyond 2**53, where float64 has gaps; subtract the start of the run first"
            )
    return device.cast(toa, np.float64)


def _numbers(name: str, values: Any, toa: Any) -> Any:
    """Return a column of numbers beside toa."""
    values = values if hasattr(values, "dtype") else np.asarray(values)
    values = beside(toa, name, values, values.dtype)
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be whole numbers, got {values.dtype}")
    return values  # looked at when they are computed


def _division(asked: str | Partition, columns: dict[str, Any], plan: EventPlan) -> Division:
    toa = columns["toa"]
    rows = rows_per_task(toa, plan.cost)
    if isinstance(asked, Partition):
        if asked.groups != 1 or len(asked.cuts) != 1 or any(asked.period):
            raise ValueError(f"hits are divided by cuts across one axis, toa, without a period; got {asked}")
        return Division(asked, rows)
    if asked in ("auto", "chunks"):
        return Division(None, rows)
    if asked == "windows":
        return blocks_of_space(toa[:, None], task_count(toa, rows), (0.0,), 0.0, rows)
    raise ValueError(f'partition must be "auto", "chunks", "windows" or a Partition, got {asked!r}')
