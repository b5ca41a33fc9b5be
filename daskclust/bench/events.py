"""Time event building as the paper's figures 4 and 5 do: hits a second against data lanes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from daskclust.bench._report import check_kinds, floor_columns, table
from daskclust.bench._timing import kernel_threads, kernels_ms, median_ms, nothing_to_wait_for, peak_bytes, place_of
from daskclust.bench.roofline import beside_floor, ceilings_of, events_work

KINDS = ("gamma", "pion0", "pion45", "lead")
DT_MAX = 200.0  # ns
_DISORDER = 20e3  # ns
_TRIGGERS = 1e9 / 60  # ns between them


def bench_events(
    hits: int = 4_000_000,
    *,
    device: str = "cpu",
    lanes: list[int] | None = None,
    kinds: Sequence[str] = KINDS,
    repeats: int = 5,
) -> dict[str, Any]:
    """Time event building on generated streams like the paper's data sets, dt_max 200 ns.

    Parameters
    ----------
    hits : int, default 4_000_000
        Hits of each stream; the paper's number.
    device : {"cpu", "cuda"}
        Where the hits are clustered.
    lanes : list of int, optional
        Numbers of data lanes. On the CPU threads, by default 1, 2, 4 and so on up to all; on CUDA windows that are
        under way at once, by default 2.
    kinds : sequence of {"gamma", "pion0", "pion45", "lead"}
        Streams, see `daskclust.datasets.timepix`.
    repeats : int, default 5
        Runs after a warm-up; medians are reported.

    Returns
    -------
    dict
        ``machine`` facts, ``ceilings`` of the machine, ``parameters`` and ``runs``: for each stream and number of lanes
        million hits a second. On the CPU of reading a raw file (``read``), of clustering sorted hits (``cluster``), of
        the ``table``, and of all (``total``). On CUDA of clustering sorted hits that are on the device (``cluster``,
        all at once, whatever the lanes), and in host memory, with copies to the device and back (``host to host``): in
        windows of a quarter of each lane's share, so that copies have kernels to overlap with. The work and its floor,
        as `daskclust.bench.roofline` has them, are those of clustering.

    Raises
    ------
    ValueError
        For unknown kinds.
    """
    from daskclust.machine import describe

    check_kinds(kinds, KINDS)
    runs, ceilings = [], ceilings_of(device)
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            runs += (_on_cpu if device == "cpu" else _on_cuda)(Path(folder, f"{kind}.tpx3"), kind, hits, lanes, repeats)
    for run in runs:
        run |= beside_floor(events_work(hits), hits / run["mhits_per_second"]["cluster"] / 1e3, ceilings)
    parameters = {"hits": hits, "dt_max": DT_MAX, "rate": 10e6, "disorder": _DISORDER}
    facts = {"device": device, "parameters": parameters, "machine": describe(), "ceilings": ceilings}
    return {"system": "events", **facts, "runs": runs}


def _on_cpu(path: Path, kind: Any, hits: int, lanes: list[int] | None, repeats: int) -> list[dict[str, Any]]:
    import numba

    from daskclust import EventBuilder
    from daskclust.properties import cluster_table

    write_file(path, kind, hits)
    builder, runs = EventBuilder(DT_MAX), []
    for threads in lanes or _doubling(numba.get_num_threads()):
        with kernel_threads(threads):
            data = read_file(path)
            labels = builder.fit(data).labels_
            calls: dict[str, Callable[[], Any]] = {
                "read": partial(read_file, path),
                "cluster": partial(builder.fit, data),
                "table": partial(cluster_table, data, labels),
                "total": partial(table_of, path),
            }
            speeds = {name: hits / median_ms(call, nothing_to_wait_for, repeats) / 1e3 for name, call in calls.items()}
            of_kernels = kernels_ms(calls["cluster"], nothing_to_wait_for)
            peak = peak_bytes(calls["cluster"])
        runs.append(
            {
                **_what(kind, threads, hits, builder),
                "mhits_per_second": speeds,
                "kernels_ms": of_kernels,
                "peak_bytes_per_hit": peak / hits,
            }
        )
    return runs


def _what(kind: str, lanes: int, hits: int, builder: Any) -> dict[str, Any]:
    """Return what was timed."""
    clusters = int(builder.n_clusters_)
    return {"kind": kind, "lanes": lanes, "clusters": clusters, "mean_size": hits / max(clusters, 1)}


def write_file(path: Path, kind: Any, hits: int) -> None:
    """Write a stream as a detector sends it, not quite in the order of time; some programs need its triggers."""
    import xarray as xr

    from daskclust.datasets import readout_order, timepix
    from daskclust.io import write_tpx3

    made = timepix(hits, kind=kind, rng=0)
    triggers = xr.Dataset({"time": ("trigger", np.arange(0.0, float(made["toa"].max()) + 1, _TRIGGERS))})
    write_tpx3(made.isel(hit=readout_order(made, disorder=_DISORDER, rng=1)), path, triggers=triggers)


def read_file(path: Path) -> Any:
    """Read the hits of a raw file in the order of time."""
    from daskclust.io import open_tpx3

    return open_tpx3(path)


def table_of(path: Path) -> Any:
    """Go from a raw file to the table of its clusters."""
    from daskclust import EventBuilder
    from daskclust.properties import cluster_table

    data = read_file(path)
    return cluster_table(data, EventBuilder(DT_MAX).fit(data).labels_)


def _doubling(most: int) -> list[int]:
    """Return 1, 2, 4 and so on, and `most`."""
    return sorted({*(2**k for k in range(most.bit_length())), most})


def _on_cuda(path: Path, kind: Any, hits: int, lanes: list[int] | None, repeats: int) -> list[dict[str, Any]]:
    from daskclust import EventBuilder
    from daskclust.datasets import timepix
    from daskclust.readout.gpu import cluster_on_gpu

    place = place_of("cuda")
    made = timepix(hits, kind=kind, rng=0)
    host = {name: np.ascontiguousarray(made[name].values) for name in ("x", "y", "toa")}
    on_device = {name: place.take(values) for name, values in host.items()}
    builder = EventBuilder(DT_MAX)

    def speed(call: Callable[[], Any]) -> float:
        return hits / median_ms(call, place.finish, repeats) / 1e3

    on_device_speed, runs = speed(partial(builder.fit, on_device)), []
    for under_way in lanes or [2]:
        window = max(1, hits // (4 * under_way))
        host_to_host = speed(partial(cluster_on_gpu, host, builder, window=window, lanes=under_way))
        speeds = {"cluster": on_device_speed, "host to host": host_to_host}
        runs.append({**_what(kind, under_way, hits, builder), "window": window, "mhits_per_second": speeds})
    return runs


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as a Markdown table, in million hits a second."""
    steps = list(report["runs"][0]["mhits_per_second"])
    floors = floor_columns(report["runs"])
    head = ["hits", "clusters", "mean size", "lanes", *[f"{step} (Mhit/s)" for step in steps], *floors]
    rows = []
    for run in report["runs"]:
        row = [run["kind"], f"{run['clusters']:,}", f"{run['mean_size']:.1f}", str(run["lanes"])]
        row += [f"{run['mhits_per_second'][step]:.1f}" for step in steps]
        rows.append([*row, *(tell(run) for tell in floors.values())])
    return table(head, rows)
