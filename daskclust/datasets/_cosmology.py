"""A box of the universe: halos on filaments, and a uniform background."""

from __future__ import annotations

import itertools
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.ndimage import map_coordinates

from ._arguments import RNG, Float, Int, given
from ._indexed import Bits, Order, Steps, clusters, directions, draw, make_blocks, normals, uniforms

_OMEGA_M = 0.3
_CRITICAL = 2.775366e11  # density, in Msun/h (Mpc/h)**-3
_GRAVITY = 4.30091e-9  # Mpc (km/s)**2 / Msun
_OVERDENSITY = 200.0
_BULK = 200.0  # km/s along each axis
_HALOS_PER_FILAMENT = 2000
_MESH = 64  # of displacements
_SMOOTH = 0.02  # of the side
_UNITS = {**dict.fromkeys("xyz", "Mpc/h"), **dict.fromkeys(("vx", "vy", "vz"), "km/s"), "mass": "Msun/h", "halo": "1"}


class _Halos(NamedTuple):
    """The halos: number of the first particle, centre, radius, bulk velocity and dispersion; and a profile."""

    order: Order
    side: float  # Mpc/h
    particle_mass: float  # Msun/h
    first: Int  # (k,)
    centre: Float  # (3, k), Mpc/h
    radius: Float  # (k,), Mpc/h
    velocity: Float  # (3, k), km/s
    dispersion: Float  # (k,), km/s
    enclosed: Float  # fraction of the mass ...
    within: Float  # ... within this fraction of the radius
    displaced: Float  # (3, m, m, m), Mpc/h: by how much the background is displaced; m is 0 for nothing


def cosmology_box(
    n: int = 1_000_000,
    *,
    separation: float = 1.0,
    background: float = 0.36,
    slope: float = 1.9,
    smallest: int = 5,
    largest: float = 2e-3,
    concentration: float = 8.0,
    filaments: float = 0.6,
    web: float = 0.0,
    shuffle: bool = True,
    chunks: int | None = None,
    rng: RNG = None,
) -> xr.Dataset:
    """Make the particles of a periodic box with halos, weak filaments and a uniform background.

    Parameters
    ----------
    n : int, default 1000000
        Number of particles.
    separation : float, default 1.0
        Mean separation of particles, in Mpc/h: the side of the box is ``separation * n**(1/3)``.
    background : float, default 0.36
        Fraction of particles that are in no halo, from 0 to 1.
    slope : float, default 1.9
        Of the number of halos with mass: dN/dM is proportional to M**-slope.
    smallest, largest : int and float
        Particles of the smallest halos, and those of the largest as a fraction of n; at least 100.
    concentration : float, default 8.0
        Ratio of the radius of a halo to that where its NFW profile bends.
    filaments : float, default 0.6
        Fraction of halos along filaments, from 0 to 1. Below some ten million particles most of these halos touch.
    web : float, default 0.0
        Displace halos and background by a Gaussian random field (Zel'dovich), by this fraction of the side in the root
        mean square along each axis: 0.03 makes a cosmic web of filaments and voids. Set `filaments` to 0 then.
    shuffle : bool, default True
        Whether particles are in random order. Otherwise they come halo after halo, the background last.
    chunks : int, optional
        Particles per chunk of a Dataset of dask arrays, the same for any chunks. Default: in memory.
    rng : int, numpy.random.Generator or None, default None
        Seed or generator.

    Returns
    -------
    xarray.Dataset
        Along ``particle``: ``x``, ``y``, ``z`` (Mpc/h, from 0 to the side), ``vx``, ``vy``, ``vz`` (km/s, peculiar),
        ``mass`` (Msun/h), all float32, and ``halo`` (int64, numbered from 0, background -1). ``attrs`` have
        ``boxsize``, ``omega_m`` and the arguments.

    Notes
    -----
    A halo of N particles has the radius R in which its mean density is 200 times that of the box, and an NFW profile
    that ends there. Its particles have its bulk velocity, and along each axis a normal dispersion of sqrt(G M / (2 R)).
    Bulk velocities, and velocities of the background, have a dispersion of 200 km/s along each axis. Omega_m is 0.3.
    Filaments are straight, 15 % of the side long and thick by a standard deviation of 0.6 % of it; there is one for
    about 2000 halos, and at least 8. The other halos are uniform. Halos may overlap: ``halo`` tells where a particle
    was put, not which group it belongs to.

    The density of the random field of `web` is white noise that is smoothed by a Gaussian with a standard deviation of
    2 % of the side. Halos move as wholes; particles of the background by what is interpolated between 64 places a side.

    Each particle is made from its number alone, so that chunks need only the table of halos, which is made once on a
    worker: 72 bytes for each of 17 thousand halos for a million particles. Time and memory are O(n).

    References
    ----------
    Navarro, Frenk and White, "A universal density profile from hierarchical clustering", ApJ 490 (1997),
    doi:10.1086/304888.

    Examples
    --------
    >>> ds = cosmology_box(1000, rng=0)
    >>> ds.attrs["boxsize"], int((ds["halo"] == -1).sum())
    (10.0, 360)
    """
    attrs = given("cosmology_box", locals())
    side = float(separation * np.cbrt(n))
    order = draw(rng, n, background, shuffle, 4 + 1 + 4)
    particle_mass = _OMEGA_M * _CRITICAL * separation**3
    power_law = (slope, int(smallest), max(100.0, largest * n, smallest))
    table = partial(_table, order, side, particle_mass, power_law, filaments, concentration, web)
    of: Steps = {
        _positions: (3, np.float32),
        _velocities: (3, np.float32),
        _masses: (1, np.float32),
        clusters: (1, np.int64),
    }
    columns = itertools.chain(*make_blocks(table, of, int(n), chunks, "daskclust-datasets-cosmology"))
    attrs |= {"boxsize": side, "boxsize_units": "Mpc/h", "omega_m": _OMEGA_M}
    variables = {name: ("particle", v, {"units": _UNITS[name]}) for name, v in zip(_UNITS, columns, strict=True)}
    return xr.Dataset(variables, attrs=attrs)


def _table(
    order: Order,
    side: float,
    particle_mass: float,
    power_law: tuple[float, int, float],
    filaments: float,
    concentration: float,
    web: float,
) -> _Halos:
    """Return halos that have as many particles as they shall have together."""
    random = np.random.default_rng(order.seed)
    sizes = _halo_sizes(random, order.n_inside, *power_law)
    k = len(sizes)
    centre = random.random((k, 3)) * side
    n_filaments = max(8, k // _HALOS_PER_FILAMENT)
    origin, along = random.random((n_filaments, 3)) * side, random.normal(size=(n_filaments, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    chosen = np.flatnonzero(random.random(k) < filaments)
    filament = random.integers(0, n_filaments, len(chosen))
    place = random.uniform(-0.075, 0.075, len(chosen)) * side
    thick = random.normal(0.0, 0.006 * side, (len(chosen), 3))
    centre[chosen] = origin[filament] + along[filament] * place[:, None] + thick
    mass = sizes * particle_mass
    density = _OVERDENSITY * _OMEGA_M * _CRITICAL
    radius = np.cbrt(mass / (4 / 3 * np.pi * density))
    x = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 1024)]) * concentration
    enclosed = np.log1p(x) - x / (1 + x)
    velocity = random.normal(0.0, _BULK, (3, k))
    displaced = web * side * _zeldovich(random) if web else np.zeros((3, 0, 0, 0))
    return _Halos(
        order=order,
        side=side,
        particle_mass=particle_mass,
        first=np.cumsum(sizes) - sizes,
        centre=_moved(np.ascontiguousarray(centre.T), displaced, side),
        radius=radius,
        velocity=velocity,
        dispersion=np.sqrt(_GRAVITY * mass / (2 * radius)),
        enclosed=enclosed / enclosed[-1],
        within=x / concentration,
        displaced=displaced,
    )


def _zeldovich(random: np.random.Generator) -> Float:
    """Return displacements on a periodic mesh, shape (3, m, m, m), with a root mean square of 1 along each axis."""
    waves = np.meshgrid(*[np.fft.fftfreq(_MESH, 1 / _MESH)] * 2, np.fft.rfftfreq(_MESH, 1 / _MESH), indexing="ij")
    square = sum(wave**2 for wave in waves)
    square[0, 0, 0] = np.inf
    field = np.fft.rfftn(random.normal(size=(_MESH,) * 3)) * np.exp(-square * (2 * np.pi * _SMOOTH) ** 2 / 2)
    found: Float = np.stack([np.fft.irfftn(1j * wave / square * field, (_MESH,) * 3, (0, 1, 2)) for wave in waves])
    found /= found.std()
    return found


def _moved(places: Float, displaced: Float, side: float) -> Float:
    """Return places (3, n) after the displacement that is interpolated there."""
    if not displaced.size:
        return places
    at = places * (_MESH / side)
    moved: Float = places + [map_coordinates(axis, at, order=1, mode="grid-wrap") for axis in displaced]
    return moved


def _halo_sizes(random: np.random.Generator, n: int, slope: float, smallest: int, largest: float) -> Int:
    """Return particles of each halo, n in all, by a power law between two bounds; the last one has what is left."""
    parts: list[Int] = [np.zeros(0, np.int64)]
    total, power = 0, 1.0 - slope
    while total < n:
        u = random.random(1 << 16)
        if power == 0:
            drawn = smallest * (largest / smallest) ** u
        else:
            low, high = smallest**power, largest**power
            drawn = (low + u * (high - low)) ** (1 / power)
        parts.append(np.maximum(drawn.astype(np.int64), smallest))
        total += int(parts[-1].sum())
    ends = np.minimum(np.cumsum(np.concatenate(parts)), n)
    return np.diff(ends[: np.searchsorted(ends, n) + 1], prepend=0)


def _positions(table: _Halos, index: Bits) -> npt.NDArray[np.float32]:
    keys = table.order.keys
    number, is_inside, halo = table.order.places(table.first, index)
    inside, outside = number[is_inside], number[~is_inside]
    out = np.empty((3, len(index)))
    distance = np.interp(uniforms(keys[4], inside), table.enclosed, table.within) * table.radius[halo]
    out[:, is_inside] = table.centre[:, halo] + distance * directions(keys[:4], inside, 3)
    background = np.array([uniforms(key, outside) * table.side for key in keys[:3]])
    out[:, ~is_inside] = _moved(background, table.displaced, table.side)
    side = np.float32(table.side)
    # What is rounded up to the side would be outside of a box that begins with 0.
    return np.minimum((out % table.side).astype(np.float32), np.nextafter(side, np.float32(0)))


def _velocities(table: _Halos, index: Bits) -> npt.NDArray[np.float32]:
    number, is_inside, halo = table.order.places(table.first, index)
    out = normals(table.order.keys[5:9], number)[:3]
    out[:, is_inside] = table.velocity[:, halo] + out[:, is_inside] * table.dispersion[halo]
    out[:, ~is_inside] *= _BULK
    return out.astype(np.float32)


def _masses(table: _Halos, index: Bits) -> npt.NDArray[np.float32]:
    return np.full((1, len(index)), table.particle_mass, np.float32)
