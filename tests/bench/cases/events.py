"""Event building as in figures 4 and 5 of its paper: hits a second against data lanes."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from bench.cases import Case, System
from bench.roofline import events_work
from daskclust import EventBuilder
from daskclust.datasets import readout_order, timepix
from daskclust.io import open_tpx3, write_tpx3
from daskclust.properties import cluster_table

DT_MAX = 200.0  # ns
DISORDER = 20e3  # ns
_TRIGGERS = 1e9 / 60  # ns between them
_WINDOWS = 4  # under way at once on CUDA, where no number of lanes is asked for


def _cases(kind, size, options):
    """Yield one case of sorted hits; on CUDA one for each number of windows that are under way at once."""
    made = timepix(size, kind=kind, rng=0)
    columns = tuple(np.ascontiguousarray(made[name].values) for name in ("x", "y", "toa"))
    what = {
        "arrays": columns,
        "fit": lambda x, y, toa: EventBuilder(DT_MAX).fit({"x": x, "y": y, "toa": toa}),
        "result": "labels_",
        "found": lambda fit: {"clusters": int(fit.n_clusters_), "mean_size": size / max(int(fit.n_clusters_), 1)},
        "work": partial(events_work, size),
    }
    facts = {"kind": kind, "points": size}
    if options.device == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "hits.tpx3")
            _write(path, made)
            yield Case(facts=facts, calls=_calls(path), file=path, **what)
        return
    for lanes in [number or _WINDOWS for number in options.threads]:
        window = max(1, size // (4 * lanes))  # so that copies have kernels to overlap with
        call = partial(_through_gpu, columns, window, lanes)
        yield Case(facts={**facts, "lanes": lanes, "window": window}, host_to_host=call, **what)


def _through_gpu(columns, window, lanes):
    from daskclust.readout.gpu import cluster_on_gpu

    hits = dict(zip(("x", "y", "toa"), columns, strict=True))
    return cluster_on_gpu(hits, EventBuilder(DT_MAX), window=window, lanes=lanes)


def _calls(path):
    """Return what is around clustering: reading in the order of time, the table, and all from file to table."""

    def total():
        hits = open_tpx3(path)
        return cluster_table(hits, EventBuilder(DT_MAX).fit(hits).labels_)

    hits = open_tpx3(path)
    table = partial(cluster_table, hits, EventBuilder(DT_MAX).fit(hits).labels_)
    return {"read": partial(open_tpx3, path), "table": table, "total": total}


def _write(path, hits):
    """Write hits as a detector sends them, not quite in the order of time; rustpix needs triggers."""
    triggers = xr.Dataset({"time": ("trigger", np.arange(0.0, float(hits["toa"].max()) + 1, _TRIGGERS))})
    write_tpx3(hits.isel(hit=readout_order(hits, disorder=DISORDER, rng=1)), path, triggers=triggers)


def _as_reported(run):
    """Give rates in the place of times: million hits a second."""
    hits = run["points"]
    times = {"cluster": run.pop("total_ms"), **run.pop("calls_ms", {})}
    if "host_to_host_ms" in run:
        times["host to host"] = run.pop("host_to_host_ms")
    order = [step for step in ("read", "cluster", "table", "total", "host to host") if step in times]
    threads = run.pop("threads")
    run.setdefault("lanes", threads)
    run["peak_bytes_per_hit"] = run.pop("peak_bytes_per_point")
    return run | {"mhits_per_second": {step: hits / times[step] / 1e3 for step in order}}


EVENTS = System(
    "Event building",
    ("gamma", "pion0", "pion45", "lead"),
    _cases,
    {"dt_max": DT_MAX, "rate": 10e6, "disorder": DISORDER},
    takes=("kinds",),
    usual={"sizes": (4_000_000,), "threads": (1, 0)},
    as_reported=_as_reported,
)
