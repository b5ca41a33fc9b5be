"""The estimator of event building."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.data.columns import column, doubles, groups, integers
from daskclust.core.data.inputs import aligned_column, columns_of
from daskclust.core.data.nested import flat, flatten, is_awkward, nest, without_lists
from daskclust.core.device.arrays import device_of, is_cuda, is_dask
from daskclust.core.run.engine import run
from daskclust.core.space.partition import Partition
from daskclust.estimator import Estimator
from daskclust.events.plan import BY_FRAME, RULES, EventPlan


class EventBuilder(Estimator):
    """Clusters of pixel hits that touch in space and time: event building for Timepix detectors [1]_.

    Two hits are neighbours when their pixels touch, or are the same, and their times differ by `dt_max` at most. The
    answer depends on the order of hits with equal times for two of the variants, and on nothing else: not on chunks,
    workers, threads or the device.

    Parameters
    ----------
    dt_max : float, optional
        Largest difference of times between neighbours, in ns; 200 in the paper. Inclusive. None is for hits with a
        column ``frame``: those of one frame that touch are neighbours whatever their times, those of two never.
    variant : {"local", "global", "static"}, default "local"
        Definition of a cluster; (iii) a to c of section 2. ``"local"``: connected components of neighbours.
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
    On the CPU time and memory are linear in the number of hits, however many pixels and chips there are: the last hit
    of each pixel stands for all earlier ones. On a GPU each hit has a thread, which looks back through the hits within
    `dt_max`; for the variants other than ``"local"`` one thread takes all hits between two quiet gaps of more than
    `dt_max`, one after the other.

    Hits of different chips are never neighbours where the data has a column ``chip``, unless it is a Dataset with
    ``attrs["layout"] == "quad"``: then coordinates are common to all chips, and clusters cross their seams.

    Of frames, as of a readout that is read after each shutter, times are not looked at, and there need be none. All
    `variant` are the same there. Clusters are numbered by their first hit in the order of (frame, order of the hits).
    On a GPU each hit looks back through all those of its frame.

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

    Of frames, with the columns x, y, frame:

    >>> EventBuilder().fit(np.array([[10, 10, 0], [11, 10, 0], [11, 10, 1], [50, 50, 1]])).labels_
    array([0, 0, 1, 2])
    """

    def __init__(
        self, dt_max: float | None = None, *, variant: str = "local", connectivity: int = 8, min_hits: int = 1
    ) -> None:
        self.dt_max = dt_max
        self.variant = variant
        self.connectivity = connectivity
        self.min_hits = min_hits

    def fit(
        self, X: Any, y: None = None, *, chip: Any = ..., frame: Any = ..., partition: str | Partition = "auto"
    ) -> EventBuilder:
        """Cluster hits.

        Parameters
        ----------
        X : xarray.Dataset, DataFrame, mapping of arrays, awkward.Array, or array of shape (n, 3) or (n, 4)
            Hits with ``x``, ``y`` (pixels, whole numbers), ``toa`` (ns), or ``frame`` (whole numbers) without `dt_max`,
            and perhaps ``chip``, in this order where they are columns of an array: numpy, cupy or dask. They need not
            be in the order of time. A Dataset whose ``toa`` has another unit of time is converted to ns. Awkward
            records must be flat, as events are what is looked for: labels are an awkward array then.
        y : None
            Ignored.
        chip : array of int, shape (n,), or None, optional
            Hits of different chips are never neighbours; None: x and y are common to all chips. Default: the data's
            ``chip``, unless its layout is a quad.
        frame : array of int, shape (n,), or None, optional
            Frame of each hit, without `dt_max`; None: not used. Default: the data's ``frame``.
        partition : {"auto", "chunks", "windows"} or Partition, default "auto"
            How dask arrays are divided into tasks of about half a second; the result is the same. ``"chunks"``, and
            ``"auto"``: as they are; no chunk may have a hit earlier than one of a chunk before it. ``"windows"``: into
            windows of time (or frames), with as many hits each; a sample of ``toa`` finds them.

        Returns
        -------
        EventBuilder
            Itself. On dask nothing is computed yet, but for that pass.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, `dt_max` beside frames, columns that are missing, of unequal lengths, not whole
            or not finite, units that cannot be converted, unknown chunk sizes; on dask, when computed, for chunks out
            of order in time.
        """
        plan = self._plan()
        X, nesting = flatten(X) if is_awkward(X) else (X, None)
        without_lists(nesting, "EventBuilder")
        columns = checked_columns(X, plan, flat(chip), flat(frame))
        results = run(plan, columns, partition)
        self.labels_, self.n_clusters_ = nest(results["labels"], nesting), results["n_clusters"]
        return self

    def _plan(self) -> EventPlan:
        """Check the parameters and return the plan."""
        if self.variant not in RULES:
            raise ValueError(f"variant must be {', '.join(map(repr, RULES))}, got {self.variant!r}")
        if self.connectivity not in (4, 8) or isinstance(self.connectivity, bool):
            raise ValueError(f"connectivity must be 8 or 4 pixels, got {self.connectivity!r}")
        least = check_whole("min_hits", self.min_hits, 1, clamp=True)
        if self.dt_max is None:
            return EventPlan(BY_FRAME, "local", int(self.connectivity), least, "frame")
        return EventPlan(check_positive("dt_max", self.dt_max), self.variant, int(self.connectivity), least)


def check_clock(plan: EventPlan, has_frames: bool) -> None:
    """Refuse frames beside a rule of time, and hits that have neither."""
    if has_frames and plan.clock != "frame":
        raise ValueError(
            f"dt_max must be left out for hits with frames, which have no rule of time, got {plan.dt_max:g}; or leave "
            "out their column frame, if times go on from frame to frame"
        )
    if plan.clock == "frame" and not has_frames:
        raise ValueError(
            "dt_max must be the largest difference of times, such as 200.0 ns, got None; without it, hits need a "
            "column frame"
        )


def whole_doubles(name: str, values: Any, first: int = 0) -> Any:
    """Return whole numbers as float64, a kind of columns."""
    return doubles(name, integers(name, values, first), first)


def checked_columns(X: Any, plan: EventPlan, chip: Any = ..., frame: Any = ...) -> dict[str, Any]:
    """Return toa, x, y and perhaps chip, checked in all that needs no pass over the data; frames in toa's place."""
    if plan.clock == "frame":
        columns = columns_of(X, ("x", "y"), ("frame", "chip") if frame is ... else ("chip",))
    else:
        columns = columns_of(X, ("x", "y", "toa"), ("chip", "frame") if frame is ... else ("chip",))
    frame = columns.get("frame") if frame is ... else frame
    check_clock(plan, frame is not None)
    if chip is not ...:
        columns["chip"] = chip
    elif getattr(X, "attrs", {}).get("layout") == "quad":
        columns["chip"] = None
    lazy = [values for values in columns.values() if is_dask(values)]
    name, values, kind = ("toa", columns["toa"], doubles) if frame is None else ("frame", frame, whole_doubles)
    toa = column(name, values, kind)
    if toa.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {toa.shape}")
    if lazy and not is_dask(toa):
        toa = aligned_column(lazy[0], name, toa, kind)
    checked = {"toa": toa if is_dask(toa) or is_cuda(toa) else np.ascontiguousarray(toa)}
    pixels = {
        name: aligned_column(toa, name, columns[name], groups if name == "chip" else integers)
        for name in ("x", "y", "chip")
        if columns.get(name) is not None
    }
    # kernels are compiled for two sets of types: those of detectors, and the widest
    small = {"x": np.uint16, "y": np.uint16, "chip": np.uint8}
    is_small = all(np.can_cast(values.dtype, small[name]) for name, values in pixels.items())
    types = small if is_small else dict.fromkeys(small, np.int64)
    return checked | {name: device_of(values).cast(values, types[name]) for name, values in pixels.items()}
