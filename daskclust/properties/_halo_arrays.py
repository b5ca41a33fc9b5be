"""The table of halos of particles in memory, on the CPU or a CUDA device, and in chunks. Formulas: `halo_kernels`.

In chunks the first pass gives centres, the second what adds up around them: sums and maxima, so merging is simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.threads import one_thread
from daskclust.properties.kernels import halos as kernels
from daskclust.properties.kernels.halos import Columns, Means, Particles, Spreads

from ._columns import Array, Int, explain, grouped, in_rows, numbered, on_device, row_count

_BLOCK = 256  # particles that a thread surveys, on all devices: sums of noise have one order
_GRAIN = 64  # halos a task, at least

Side = tuple[float, float]  # length of the box along an axis, and its inverse; both 0 where it is open
OPEN: Side = (0.0, 0.0)


class Setting(NamedTuple):
    """What halos are measured in."""

    box: tuple[Side, Side, Side]
    axes: int  # coordinates of a particle
    gravity: float  # 0 for no spin


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the halos that have particles in some chunks."""

    ids: Int  # (m,): numbers of the halos, ascending
    means: Means  # of arrays (m,): of some chunks in the first pass, of all in the second
    spreads: Spreads  # of arrays (m,) in the second pass, (0,) in the first
    noise_size: int
    noise_weight: float  # their mass


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
    columns = _empty(device, Columns, len(means.size))
    device.run(kernels.finish_halo, len(means.size), *setting, means, spreads, columns, grain=1024)
    return {"size": means.size, "mass": means.mass, **columns._asdict()}


# ------------------------------------------------------------------------------------------------------------ in chunks
def summarise(arrays: Mapping[str, Any], start: int, setting: Setting) -> Partial:
    """Return centres and velocities of the halos in one chunk of n particles."""
    labels, particles = _prepared(HOST, arrays)
    with one_thread():
        _, size, mass = _survey(HOST, arrays, labels, particles, start)
        ids, local = numbered(labels)
        means = _means_of(particles, local, len(ids), setting)
    return Partial(ids, means, _empty(HOST, Spreads, 0), size, mass)


def merge(parts: Sequence[Partial], setting: Setting) -> Partial:
    """Return the summary of all chunks of which some summaries of the first pass are."""
    if len(parts) == 1:
        return parts[0]
    groups = grouped(np.concatenate([part.ids for part in parts]))
    joined = _joined([part.means for part in parts])
    particles = Particles(*(getattr(joined, name) for name in Particles._fields))
    with one_thread():
        means = _means_of(particles, groups.group, len(groups.ids), setting)
    means.size[:] = groups.reduced(np.add, joined.size)
    return Partial(groups.ids, means, parts[0].spreads, *_noise(parts))


def part_of(mine: Partial, total: Partial) -> Partial:
    """Return what a chunk needs for the second pass."""
    place = np.searchsorted(total.ids, mine.ids)
    return replace(mine, means=Means(*(column[place] for column in total.means)))


def join(parts: Sequence[Partial]) -> Partial:
    """Return what a chunk needs, of the parts of it in ascending ranges of halos."""
    ids = np.concatenate([part.ids for part in parts])
    return Partial(ids, _joined([part.means for part in parts]), parts[0].spreads, *_noise(parts))


def summarise_again(arrays: Mapping[str, Any], start: int, known: Partial, setting: Setting) -> Partial:
    """Return what the halos in one chunk of n particles add up to around their centres."""
    labels, particles = _prepared(HOST, arrays)
    rows = len(known.ids)
    spreads: Spreads = _empty(HOST, Spreads, rows)
    with one_thread():
        first, order = _members(HOST, numbered(labels)[1], rows)
        kernels.find_spreads.run(rows, first, order, particles, setting.box, known.means, spreads)
    return replace(known, spreads=spreads)


def merge_again(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries of the second pass are."""
    if len(parts) == 1:
        return parts[0]
    groups = grouped(np.concatenate([part.ids for part in parts]))
    # any of a halo's will do: all have the means of all chunks
    means = Means(*(column[groups.first] for column in _joined([part.means for part in parts])))
    joined = _joined([part.spreads for part in parts])._asdict()
    spreads = {name: groups.reduced(np.maximum if name == "r2" else np.add, values) for name, values in joined.items()}
    return Partial(groups.ids, means, Spreads(**spreads), *_noise(parts))


def finish(partial: Partial, n_clusters: int | None, *, setting: Setting) -> dict[str, Any]:
    """Return the columns of the table, and the two numbers of noise."""
    with one_thread():
        found = _columns(HOST, setting, partial.means, partial.spreads)
    points = int(partial.means.size.sum()) + partial.noise_size
    columns = in_rows(found, partial.ids, points, n_clusters, ("size", "mass"))
    noise = {"noise_size": np.asarray(partial.noise_size), "noise_mass": np.asarray(partial.noise_weight)}
    return columns | noise


def _means_of(particles: Particles, local: Array, rows: int, setting: Setting) -> Means:
    """Make the first pass for halos numbered from 0."""
    first, order = _members(HOST, local, rows)
    means = _empty_means(HOST, rows)
    kernels.find_means.run(rows, first, order, particles, setting.box, means)
    return means


def _joined(columns: Sequence[Any]) -> Any:
    """Return one tuple of columns of several."""
    return type(columns[0])(*(np.concatenate(each) for each in zip(*columns, strict=True)))


def _noise(parts: Sequence[Partial]) -> tuple[int, float]:
    """Return number and mass of the noise of all parts."""
    return sum(part.noise_size for part in parts), float(np.sum([part.noise_weight for part in parts]))
