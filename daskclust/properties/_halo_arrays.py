"""The table of halos of particles in memory, on the CPU or a CUDA device, and in chunks. Formulas: `halo_kernels`.

In chunks the first pass gives centres, the second what adds up around them: sums and maxima, so merging is simple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.threads import one_thread
from daskclust.properties.kernels import halos as kernels
from daskclust.properties.kernels.halos import Columns as Derived
from daskclust.properties.kernels.halos import Means, Particles, Spreads

from ._columns import explain, on_device
from ._summary import Array, Columns, Groups, Summary, numbered, row_count

_BLOCK = 256  # particles that a thread surveys, on all devices: sums of noise have one order
_GRAIN = 64  # halos a task, at least

Side = tuple[float, float]  # length of the box along an axis, and its inverse; both 0 where it is open
OPEN: Side = (0.0, 0.0)


class Setting(NamedTuple):
    """What halos are measured in."""

    box: tuple[Side, Side, Side]
    axes: int  # coordinates of a particle
    gravity: float  # 0 for no spin


# ------------------------------------------------------------------------------------------------------------ in memory
def measure(device: Host | Cuda, arrays: Mapping[str, Any], setting: Setting, n_clusters: int | None) -> dict[str, Any]:
    """Return the columns of the table of particles in memory."""
    labels, particles = _prepared(device, arrays)
    largest, noise_size, noise_mass = _survey(device, arrays, labels, particles, 0)
    rows = row_count(largest, len(labels), n_clusters)
    first, order = _members(device, labels, rows)
    means, spreads = _empty_means(device, rows), _empty(device, Spreads, rows)
    device.run(kernels.find_both, rows, first, order, particles, setting.box, means, spreads, grain=_GRAIN)
    columns = _columns(device, setting, means, spreads)
    return columns | {"noise_size": np.asarray(noise_size), "noise_mass": np.asarray(noise_mass)}


def _prepared(device: Host | Cuda, arrays: Mapping[str, Any]) -> tuple[Any, Particles]:
    """Return labels and particles on the device."""
    ready, nothing = on_device(device, arrays), device.empty(0, np.float64)
    return ready["labels"], Particles(*(ready.get(name, nothing) for name in Particles._fields))


def _survey(
    device: Host | Cuda, arrays: Mapping[str, Any], labels: Any, particles: Particles, start: int
) -> tuple[int, int, float]:
    """Return the largest label, number and mass of noise particles; raise for what cannot be."""
    blocks = -(-len(labels) // _BLOCK)
    highest, size, mass = (device.empty(blocks, dtype) for dtype in (np.int64, np.int64, np.float64))
    bad = device.full(1, 0, np.int64)
    device.run(kernels.survey_particles, blocks, _BLOCK, labels, particles, highest, size, mass, bad, grain=256)
    if device.to_host(bad)[0]:
        explain(arrays, start, Particles._fields, ("mass",))
    highest, size, mass = (device.to_host(each) for each in (highest, size, mass))
    return int(highest.max(initial=-1)), int(size.sum()), float(np.sum(mass))


def _members(device: Host | Cuda, labels: Any, rows: int) -> tuple[Any, Any]:
    """Return where the members of each halo begin among particles in order, and the order: by halo, then by index."""
    first = device.scratch("halo first", rows + 2, np.int32)
    device.run(fill, rows + 2, first, np.int32(0))
    if device is HOST:
        order = device.scratch("halo order", len(labels), np.int32)
        device.run(kernels.order_members, 1, labels, first, order)
        return first, order
    device.run(kernels.count_members, len(labels), labels, first)
    device.running_sum(first, first)
    return first, device.order_of(labels)


def _empty(device: Host | Cuda, kind: Any, rows: int) -> Any:
    """Return a tuple of columns to be filled."""
    return kind(*(device.empty(rows, np.float64) for _ in kind._fields))


def _empty_means(device: Host | Cuda, rows: int) -> Means:
    means: Means = _empty(device, Means, rows)
    return means._replace(size=device.empty(rows, np.int64))


def _columns(device: Host | Cuda, setting: Setting, means: Means, spreads: Spreads) -> dict[str, Any]:
    """Return the columns that follow from both passes."""
    columns = _empty(device, Derived, len(means.size))
    device.run(kernels.finish_halo, len(means.size), *setting, means, spreads, columns, grain=1024)
    return {"size": means.size, "mass": means.mass, **columns._asdict()}


# ------------------------------------------------------------------------------------------------------------ in chunks
def summarise(arrays: Mapping[str, Any], start: int, setting: Setting) -> Summary:
    """Return centres and velocities of the halos in one chunk of n particles."""
    labels, particles = _prepared(HOST, arrays)
    with one_thread():
        _, size, mass = _survey(HOST, arrays, labels, particles, start)
        ids, local = numbered(labels)
        means = _means_of(particles, local, len(ids), setting)
    return Summary(ids, means._asdict(), size, mass)


def merge(groups: Groups, many: Columns, setting: Setting) -> dict[str, Array]:
    """Return the means of each halo, of those of several summaries of the first pass, each as one particle."""
    with one_thread():
        means = _means_of(Particles(*map(many.get, Particles._fields)), groups.group, len(groups.ids), setting)
    return means._asdict() | {"size": groups.reduced(np.add, many["size"])}


def summarise_again(arrays: Mapping[str, Any], start: int, known: Summary, setting: Setting) -> Summary:
    """Return what the halos in one chunk of n particles add up to around their centres."""
    labels, particles = _prepared(HOST, arrays)
    rows = len(known.ids)
    spreads: Spreads = _empty(HOST, Spreads, rows)
    with one_thread():
        first, order = _members(HOST, numbered(labels)[1], rows)
        kernels.find_spreads.run(rows, first, order, particles, setting.box, Means(**known.columns), spreads)
    return replace(known, columns={**known.columns, **spreads._asdict()})


def merge_again(groups: Groups, many: Columns) -> dict[str, Array]:
    """Return the sums of each halo, of several summaries of the second pass, which all have the means of all chunks."""
    means = {name: many[name][groups.first] for name in Means._fields}
    operations = dict.fromkeys(Spreads._fields, np.add) | {"r2": np.maximum}
    return means | {name: groups.reduced(operation, many[name]) for name, operation in operations.items()}


def finish(many: Columns, *, setting: Setting) -> dict[str, Any]:
    """Return the columns of the table."""
    means = Means(*(many[name] for name in Means._fields))
    spreads = Spreads(*(many[name] for name in Spreads._fields))
    with one_thread():
        return _columns(HOST, setting, means, spreads)


def _means_of(particles: Particles, local: Array, rows: int, setting: Setting) -> Means:
    """Make the first pass for halos numbered from 0."""
    first, order = _members(HOST, local, rows)
    means = _empty_means(HOST, rows)
    kernels.find_means.run(rows, first, order, particles, setting.box, means)
    return means
