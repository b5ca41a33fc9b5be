"""Masses within spheres of a given mean density around halos: of all particles, in memory and in chunks.

Halos are worked on in ranges of their numbers. A chunk gives what it has of each range, members first and then what is
near the centres; what all chunks have of a range is put in order, so that chunks change nothing, to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.boxes import AXES, box_in, box_sides
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.inputs import check_one_dimension
from daskclust.core.data.units import common, converted
from daskclust.core.device.arrays import to_host
from daskclust.core.space.grid import wrap_positions

from . import _lazy
from ._columns import checked, explain, label_values, table_of, variable
from ._cosmology import HaloDensities, densities
from ._noisy import added
from ._summary import Array, row_count

if TYPE_CHECKING:
    import xarray as xr


Particles = tuple[Array, Array, Array, tuple[float, ...]]  # labels, positions in the box, masses, box

_AT_ONCE = 1 << 20  # particles in the halos of a range, about
_NEIGHBOURS = 16  # by the distance to which density is measured
_FIRST = 1.3  # sphere that is searched first, in radii that the mass of the halo itself would have
_GROWTH = 1.5
_ALIKE = 1.25  # ratio of radii that are searched together
_UNRESOLVED = 5  # particles: nearer to the centre, a velocity is noise
_TURN = 2.1625815870646106  # r / r_s where the circular velocity of an NFW halo is largest


class NearHalos(NamedTuple):
    """Particles of a chunk that belong to halos of a range, or are near them."""

    halo: Array
    distance: Array  # of near ones
    X: Array  # of members, shape (n, 3)
    mass: Array


class Spheres(NamedTuple):
    """Halos whose surroundings are searched."""

    halo: Array  # ascending
    X: Array
    reach: Array


def spherical_overdensity(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike = "label",
    *,
    definitions: str | Sequence[str] = ("200c", "200m", "vir"),
    boxsize: float | Sequence[float | None] | str | None = "auto",
    mass: str = "mass",
) -> xr.Dataset:
    """Return mass and radius of the sphere around each halo in which the mean density is a given one.

    Parameters
    ----------
    ds : xarray.Dataset
        Particles along one dimension, numpy, cupy or dask, also those in no halo: ``x``, ``y``, ``z`` (comoving) and
        masses, with units. ``attrs`` tell the cosmology as `daskclust.io.open_particles` does: ``omega_m``, and where
        they are there ``omega_lambda`` (1 - omega_m), ``scale_factor`` or ``redshift`` (today) and ``hubble``, which is
        needed for units without 1/h.
    labels : str or array_like of int, shape (n,), default "label"
        Halo numbers, -1 for particles in none: a variable of `ds`, or an array.
    definitions : str or sequence of str, default ("200c", "200m", "vir")
        Densities: a number with ``c``, times the critical density of the universe, or with ``m``, times its mean
        density of matter; ``vir`` is Bryan and Norman's for a flat universe.
    boxsize : float, sequence of float, "auto" or None, default "auto"
        As of `halo_table`.
    mass : str, default "mass"
        Variable with masses, not negative.

    Returns
    -------
    xarray.Dataset
        In memory, along ``cluster`` as `halo_table`, all float64:

        - ``x_peak``, ``y_peak``, ``z_peak``: the centre, the densest point: the member whose 16th nearest member,
          or last where there are fewer, is nearest; of several the first by x, y, z;
        - for each definition, as for ``200c``, ``m_200c``: mass of all particles within ``r_200c``, the comoving
          radius; m = 4 pi / 3 * density * r**3;
        - ``v_max`` (km/s): largest circular velocity sqrt(G m(<r) / r) at a particle within the sphere of the first
          definition, its 5 innermost particles left out; ``r_v_max`` (comoving): where;
        - ``concentration``: c of the NFW halo with the same ratio of ``v_max`` to the circular velocity at the radius
          r of the first definition, v_max**2 / v**2 = 0.2162 c / (ln(1 + c) - c / (1 + c)); NaN below 2.163, where
          the velocity is largest beyond r.

        NaN for numbers without particles or mass, where no sphere that is smaller than one of the mass of the halo
        alone is so dense, and where a sphere is larger than half of the box.

    Raises
    ------
    ValueError
        As `halo_table`, for definitions that are not known, and units and a cosmology that are missing.

    Notes
    -----
    The sphere ends where the mean density, going outwards, falls below that of the definition for the first time, as in
    SOAP. In halos of few particles this may be noise near the centre. Particles that are near several halos count for
    each.

    The table is computed at once, in four passes over the particles, or some more where a halo has far more mass
    around it than in it: `persist` dask arrays that are read from files. The first two count and collect members, the
    others collect what is near the centres. Each range of halos with a million particles is put together and sorted
    by one task. Time is O(n log n), half of it for the densest points; memory is in proportion to a chunk and to a
    range, of particles in memory to all of them. The answer is the same for any chunks, to the last bit.

    References
    ----------
    Bryan and Norman, "Statistical properties of X-ray clusters", ApJ 495 (1998), doi:10.1086/305262. Prada et al.,
    "Halo concentrations in the standard LCDM cosmology", MNRAS 423 (2012), doi:10.1111/j.1365-2966.2012.21007.x,
    eq. 9. McGibbon et al., "SOAP", JOSS 10 (2025), doi:10.21105/joss.08252.

    Examples
    --------
    >>> from daskclust.datasets import cosmology_box
    >>> ds = cosmology_box(8000, rng=0)
    >>> table = spherical_overdensity(ds, "halo", definitions=("200m",))
    >>> round(float(table["r_200m"].max()), 2), table["r_200m"].attrs["units"]
    (0.66, 'Mpc/h')
    """
    ds = dataset_of(ds)
    for name in AXES:
        variable(ds, name, "positions")
    arrays = {name: ds[name].data for name in AXES} | {"mass": variable(ds, mass, "mass").data}
    check_one_dimension({name: ds[name].dims for name in (*AXES, mass)}, [*AXES, mass])
    unit, ratios = common({name: ds[name].attrs.get("units") for name in AXES}, ds.attrs.get("hubble"))
    mass_unit = ds[mass].attrs.get("units")
    known = densities(ds.attrs, (definitions,) if isinstance(definitions, str) else tuple(definitions), unit, mass_unit)
    arrays = checked({"labels": label_values(ds, labels), **arrays}, ds["x"].shape, {})
    arrays |= {name: converted(arrays[name], by) for name, by in ratios.items()}
    period = tuple(box_sides(box_in(ds, unit, boxsize), AXES))
    columns = _columns(_Chunks(arrays, period), known, min(filter(None, period), default=np.inf) / 2)
    units = {"v_max": "km/s", "concentration": "1"}
    table = table_of(columns, {name: units.get(name, mass_unit if name[:2] == "m_" else unit) for name in columns})
    return table.drop_vars("size")


class _Chunks:
    """Particles in memory, one chunk, or in chunks of dask arrays."""

    def __init__(self, arrays: Mapping[str, Any], period: tuple[float, ...]) -> None:
        self._names, self._period = tuple(arrays), period
        self._lazy = _lazy.is_lazy(arrays)
        self._arrays = _lazy.in_same_chunks(list(arrays.values())) if self._lazy else list(arrays.values())

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of members of each halo; raise for what cannot be."""
        n = self._arrays[0].shape[0]
        options = {"names": self._names, "n": n}
        if not self._lazy:
            return _sizes(*self._arrays, **options)
        one_each = ((1,) * self._arrays[0].numblocks[0],)
        sizes = _lazy.mapped("size", _sizes_of_block, *self._arrays, **options, chunks=one_each)
        found: npt.NDArray[np.int64] = _lazy.as_tree("size", sizes, added).compute()[0]
        return found

    def each(
        self, ranges: Sequence[Any], take: Callable[..., Iterator[NearHalos]], make: Callable[..., Any]
    ) -> list[Any]:
        """Return what `make` makes of what `take` takes of all chunks, for each range."""
        options = {"ranges": ranges, "take": take, "names": self._names, "period": self._period}
        if not self._lazy:
            found = take(_particles(self._arrays, self._names, self._period), ranges)
            return [make([each], own) for each, own in zip(found, ranges, strict=True)]
        if not ranges:
            return []
        chunks = ((1,) * self._arrays[0].numblocks[0], (len(ranges),))
        cut = _lazy.mapped("near", _taken, *self._arrays, **options, chunks=chunks, new_axis=1)
        pieces = _lazy.exchanged(cut, (-1, 1))
        kind = {"ranges": ranges, "make": make, "chunks": ((1,) * len(ranges),), "drop_axis": 0}
        return list(_lazy.mapped("sphere", _made, pieces, **kind).compute())


def _columns(chunks: _Chunks, known: HaloDensities, limit: float) -> dict[str, Array]:
    """Return the columns of the table; no sphere is searched beyond a limit."""
    sizes = chunks.sizes()
    place = np.cumsum(sizes) // _AT_ONCE
    ranges = [np.flatnonzero(place == k) for k in np.unique(place)]
    found = chunks.each(ranges, _members, _centres)
    X = np.concatenate([each[0] for each in found] or [np.empty((0, 3))])
    own = np.concatenate([each[1] for each in found] or [np.empty(0)])  # masses
    rows = np.full((len(sizes), 2 * len(known.names) + 3), np.nan)
    lowest, solve = min(known.values), functools.partial(_solved, known=known)
    reach = _FIRST * _radius(own, lowest)
    waiting = np.flatnonzero(own > 0)
    while len(waiting):
        reach[waiting] = np.minimum(reach[waiting], limit)
        parts = [waiting[place[waiting] == k] for k in np.unique(place[waiting])]
        spheres = [Spheres(mine, X[mine], reach[mine]) for mine in parts]
        solved = chunks.each(spheres, _near, functools.partial(solve, own=own))
        rows[waiting] = np.concatenate([each[0] for each in solved])
        is_done = np.concatenate([each[1] for each in solved]) | (reach[waiting] >= limit)
        waiting = waiting[~is_done]
        reach[waiting] *= _GROWTH
    names = [f"{letter}_{name}" for name in known.names for letter in "mr"] + ["v_max", "r_v_max", "concentration"]
    peaks = dict(zip((f"{axis}_peak" for axis in AXES), X.T, strict=True))
    return {"size": sizes, **peaks, **dict(zip(names, rows.T, strict=True))}


def _radius(mass: Any, density: float) -> Any:
    return np.cbrt(3 * mass / (4 * np.pi * density))


# ---------------------------------------------------------------------------------------------------------- of a chunk
def _particles(
    blocks: Sequence[Any], names: Sequence[str], period: tuple[float, ...]
) -> tuple[Array, Array, Array, Any]:
    """Return labels, positions in the box and masses on the host, and the box."""
    host = dict(zip(names, map(to_host, blocks), strict=True))
    X = np.stack([host[axis].astype(np.float64, copy=False) for axis in AXES], axis=1)
    return host["labels"], wrap_positions(X, period), host["mass"].astype(np.float64, copy=False), period


def _sizes(*blocks: Any, names: Sequence[str], n: int, start: int = 0) -> npt.NDArray[np.int64]:
    """Return the number of members of each halo in a chunk of the n particles."""
    host = dict(zip(names, map(to_host, blocks), strict=True))
    explain(host, start, (*AXES, "mass"), ("mass",))
    row_count(int(host["labels"].max(initial=-1)), n, None)
    return np.bincount(host["labels"][host["labels"] >= 0])


def _sizes_of_block(*blocks: Any, block_info: Any = None, **options: Any) -> Array:
    return _lazy.boxes([_sizes(*blocks, **options, start=block_info[0]["array-location"][0][0])])


def _taken(*blocks: Array, ranges: Sequence[Any], take: Any, names: Sequence[str], period: tuple[float, ...]) -> Array:
    return _lazy.boxes(take(_particles(blocks, names, period), ranges))[None]


def _made(pieces: Array, *, ranges: Sequence[Any], make: Callable[..., Any], block_info: Any = None) -> Array:
    return _lazy.boxes([make(list(pieces[:, 0]), ranges[block_info[0]["chunk-location"][1]])])


def _members(particles: Particles, ranges: Sequence[Array]) -> Iterator[NearHalos]:
    """Yield the members of the halos of each range, in the order of halos."""
    labels, X, mass, period = particles
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], [[mine[0], mine[-1] + 1] for mine in ranges]).reshape(-1, 2)
    for first, end in ends:
        rows = order[first:end]
        yield NearHalos(labels[rows], np.asarray(period), X[rows], mass[rows])


def _near(particles: Particles, ranges: Sequence[Spheres]) -> Iterator[NearHalos]:
    """Yield the particles near the halos of each range."""
    from scipy.spatial import cKDTree

    _, X, mass, period = particles
    tree = cKDTree(X, balanced_tree=False, compact_nodes=False, boxsize=period)
    for spheres in ranges:
        parts = [(np.empty(0, np.int64), np.empty(0), np.empty(0))]
        step = np.floor(np.log(spheres.reach) / np.log(_ALIKE))
        for each in np.unique(step):
            mine = np.flatnonzero(step == each)
            centres = cKDTree(spheres.X[mine], boxsize=period)
            pairs = centres.sparse_distance_matrix(tree, spheres.reach[mine].max(), output_type="ndarray")
            pairs = pairs[pairs["v"] <= spheres.reach[mine][pairs["i"]]]
            parts.append((spheres.halo[mine][pairs["i"]], pairs["v"], mass[pairs["j"]]))
        halo, distance, masses = map(np.concatenate, zip(*parts, strict=True))
        yield NearHalos(halo, distance, np.empty((0, 3)), masses)


# -------------------------------------------------------------------------------------------------------- of all chunks
def _centres(parts: Sequence[NearHalos], halos: Array) -> tuple[Array, Array]:
    """Return the densest member of each halo, NaN without one, and its mass."""
    from scipy.spatial import cKDTree

    period = parts[0].distance
    halo, X, mass = _joined(parts, "halo", "X", "mass")
    order = np.lexsort((mass, *X.T[::-1], halo))
    ends = np.searchsorted(halo[order], [halos, halos + 1]).T
    centre, total = np.full((len(halos), 3), np.nan), np.zeros(len(halos))
    for k, (first, end) in enumerate(ends):
        mine = X[order[first:end]]
        total[k] = mass[order[first:end]].sum()
        if len(mine):
            farthest = cKDTree(mine, boxsize=period).query(mine, [min(_NEIGHBOURS + 1, len(mine))])[0][:, 0]
            centre[k] = mine[np.argmin(farthest)]
    return centre, total


def _solved(parts: Sequence[NearHalos], spheres: Spheres, *, known: HaloDensities, own: Array) -> tuple[Array, Array]:
    """Return a row of the table for each halo, and whether it is done."""
    halo, distance, mass = _joined(parts, "halo", "distance", "mass")
    order = np.lexsort((mass, distance, halo))
    ends = np.searchsorted(halo[order], [spheres.halo, spheres.halo + 1]).T
    rows = np.full((len(ends), 2 * len(known.names) + 3), np.nan)
    is_done = np.zeros(len(ends), bool)
    for k, (first, end) in enumerate(ends):
        mine = order[first:end]
        radii, inside = distance[mine], np.cumsum(mass[mine])
        limits = spheres.reach[k], own[spheres.halo[k]]
        last = [_last_inside(radii, inside, density, *limits) for density in known.values]
        is_done[k] = None not in last
        for j, (place, density) in enumerate(zip(last, known.values, strict=True)):
            if place is not None and place >= 0:
                rows[k, 2 * j : 2 * j + 2] = inside[place], _radius(inside[place], density)
        resolved = np.arange(_UNRESOLVED, (last[0] or 0) + 1)
        resolved = resolved[radii[resolved] > 0]
        if len(resolved):
            ratio = inside[resolved] / radii[resolved]
            top = int(np.argmax(ratio))
            rows[k, -3:] = ratio[top], radii[resolved[top]], ratio[top] * rows[k, 1] / rows[k, 0]
    rows[:, -3] = np.sqrt(known.gravity * rows[:, -3])
    rows[:, -1] = _concentration(rows[:, -1])
    return rows, is_done


def _joined(parts: Sequence[NearHalos], *names: str) -> Iterator[Array]:
    return (np.concatenate([getattr(part, name) for part in parts]) for name in names)


def _last_inside(radii: Array, inside: Array, density: float, reach: float, own: float) -> int | None:
    """Return the last particle in the sphere, -1 where there is no sphere, None where it ends beyond the reach.

    Between two particles the mass is the same: the sphere ends there if it is at least as large as the first's, and
    smaller than the second's.
    """
    end = _radius(inside, density)
    dense = np.flatnonzero((end >= radii) & (inside > 0) & (radii <= _radius(own, density)))
    if not len(dense):
        return -1
    first = dense[0]
    falls = np.flatnonzero(end[first:] < np.append(radii[first + 1 :], reach))
    return int(first + falls[0]) if len(falls) else None


def _concentration(ratio: Array) -> Array:
    """Return c of NFW halos for squares of the ratio of the largest circular velocity to that at their radius."""

    def shape(c: Any) -> Any:
        return (np.log1p(c) - c / (1 + c)) / c  # of the square of the circular velocity

    low, high = np.full(len(ratio), _TURN), np.full(len(ratio), 1e6)
    for _ in range(64):  # bisection, to the last bit
        middle = np.sqrt(low * high)
        is_below = shape(_TURN) / shape(middle) < ratio
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.where((ratio >= 1) & (high < 1e6), high, np.nan)
