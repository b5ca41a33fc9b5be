"""The halo catalogue of particles in memory, on the CPU or a CUDA device, and in chunks. Formulas are in `kernels`.

In chunks the first pass gives centres, the second what adds up around them: sums and maxima, so merging is simple.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.boxes import AXES, box_in, box_sides
from daskclust.core.data.checks import check_positive
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.inputs import check_one_dimension
from daskclust.core.data.units import BOX, common, converted
from daskclust.core.device.arrays import HOST, Cuda, Host, keeping_device
from daskclust.core.device.threads import one_thread
from daskclust.properties.kernels import halos as kernels
from daskclust.properties.kernels.halos import Columns as Derived
from daskclust.properties.kernels.halos import Means, Particles, Spreads

from . import _lazy
from ._columns import checked, checked_n_clusters, explain, label_values, on_device, table_of, variable
from ._groups import group_columns
from ._members import GRAIN, empty, empty_means, members_of
from ._summary import Array, Columns, Groups, Summary, TableSteps, numbered, row_count

if TYPE_CHECKING:
    import xarray as xr

_VELOCITIES = ("vx", "vy", "vz")
_BLOCK = 256  # particles that a thread surveys, on all devices: sums of noise have one order

Side = tuple[float, float]  # length of the box along an axis, and its inverse; both 0 where it is open
_OPEN: Side = (0.0, 0.0)


class Setting(NamedTuple):
    """What halos are measured in."""

    box: tuple[Side, Side, Side]
    axes: int  # coordinates of a particle
    gravity: float  # 0 for no spin


@keeping_device()
def halo_table(
    ds: xr.Dataset,
    labels: str | xr.DataArray | npt.ArrayLike = "label",
    *,
    boxsize: float | Sequence[float | None] | Literal["auto"] | None = "auto",
    mass: str | EllipsisType | None = ...,
    velocities: Sequence[str] | EllipsisType | None = ...,
    G: float | None = None,
    n_clusters: int | None = None,
) -> xr.Dataset:
    """Return the properties of every halo.

    Parameters
    ----------
    ds : xarray.Dataset
        Particles along one dimension, numpy, cupy or dask: positions ``x``, ``y``, ``z``, or the first one or two of
        them, in any unit of length, in any image of the box.
    labels : str or array_like of int, shape (n,), default "label"
        Halo numbers, -1 for particles in none: a variable of `ds`, or an array.
    boxsize : float, sequence of float, "auto" or None, default "auto"
        Length of the periodic box in the unit of ``x``, or one for each of ``x``, ``y`` and ``z``, 0 or None where it
        is open. ``"auto"``: ``ds.attrs["boxsize"]`` where it is there; None: open.
    mass : str or None, optional
        Variable with masses, not negative; None: 1 for each. Default: "mass" if `ds` has it.
    velocities : sequence of str or None, optional
        Variables with the velocities along the axes; None leaves out what needs them. Default: ``vx``, ``vy``, ``vz``
        if `ds` has those of all axes.
    G : float, optional
        Gravitational constant in units of velocity**2 * length / mass, for ``spin``; 43009.17 for kpc, km/s and 1e10
        solar masses. For comoving positions and peculiar velocities divide it by the scale factor.
    n_clusters : int, optional
        Number of rows. Default: the largest label plus 1; of dask arrays it is computed at once, and labels are kept
        where they were computed, 8 bytes a particle, as the table needs them again.

    Returns
    -------
    xarray.Dataset
        Lazy where `ds` or labels are. Along ``cluster`` (coordinate 0 to k-1), float64 but for ``size``:

        - ``size`` (int64): number of particles; ``mass``: sum of masses;
        - ``x``, ``y``, ``z``: centre of mass, from 0 to the box size, which is excluded;
        - ``vx``, ``vy``, ``vz``: mean velocity, weighted by mass; ``sigma_v``: velocity dispersion in one dimension,
          the square root of the mean over the axes of the variance weighted by mass (divided by the mass);
        - ``r_rms``, ``r_max``: root mean square distance from the centre, weighted by mass, and the largest distance;
        - ``jx``, ``jy``, ``jz``: angular momentum about the centre by mass; in two dimensions ``jz`` only;
        - ``spin``: lambda' = j / (sqrt(2) V R) with V**2 = G M / R (Bullock et al., eq. 5) of all mass within R =
          ``r_max``; NaN where that is 0; only if `G` is given;
        - ``b_to_a``, ``c_to_a``: ratios of the principal axes a >= b >= c, square roots of the eigenvalues of the mass
          tensor (the mean of products of offsets from the centre, weighted by mass); NaN if all particles are at one
          place; good to 1e-7 where an axis vanishes; in two dimensions ``b_to_a`` only;
        - ``event``, ``layer``, ``chip`` (int64), where `ds` has them: as of `cluster_table`.

        In the row of a number without particles ``size`` and ``mass`` are 0, the others NaN; so are others where all
        masses are 0. Positions, and velocities, are in the unit of the first axis. Noise has no row: ``attrs`` has its
        ``noise_size`` and ``noise_mass``, which are variables without dimension in a lazy table, and ``boxsize``, a
        list with 0 for open axes, with its unit in ``boxsize_units``.

    Raises
    ------
    ValueError
        As `cluster_table`, and for box sizes that are negative or not one for each axis, and `G` without velocities in
        three dimensions.

    See Also
    --------
    where, select : Rows of the table by an expression.

    Notes
    -----
    In a box the offsets of a halo's particles from the first one are those to its nearest image; their mean gives the
    centre, which is ill-defined for a halo wider than half of the box.

    The first pass over the particles gives centres and velocities, the second the sums around them, in float64: no
    digits cancel far from the origin, or in halos that move fast. Time is O(n); memory is chunks and summaries of the
    halos in them, and one range of the table, as of `cluster_table`. As each chunk is used twice, dask keeps it in
    memory in between, or spills it. Sizes are the same for any chunking, all other columns to some 1e-12 of the scale
    of their terms; in memory the answer is the same for any number of threads, and on CPU and GPU.

    References
    ----------
    Bullock et al., "A universal angular momentum profile for galactic halos", The Astrophysical Journal 555 (2001),
    doi:10.1086/321477.

    Examples
    --------
    Two particles on both sides of the face of a box:

    >>> import xarray as xr
    >>> particles = {"x": [9.5, 1.5, 5.0], "y": [2.0, 2.0, 2.0], "vx": [1.0, 3.0, 0.0], "vy": [0.0, 0.0, 0.0]}
    >>> ds = xr.Dataset({name: ("particle", values) for name, values in particles.items()}, attrs={"boxsize": 10.0})
    >>> table = halo_table(ds, [0, 0, -1])
    >>> [float(table[name][0]) for name in ("mass", "x", "vx", "sigma_v", "r_max")]
    [2.0, 0.5, 2.0, 0.7071067811865476, 1.0]
    """
    ds = dataset_of(ds)
    n_clusters = checked_n_clusters(n_clusters, max(ds.sizes.values(), default=0))
    axes = tuple(name for name in AXES if name in ds)
    if not axes or axes != AXES[: len(axes)]:
        got = ", ".join(axes) or f"{', '.join(map(str, ds))} alone"
        raise ValueError(f"halos need positions x, y, z, or the first of them, got {got}; rename them")
    mass = ("mass" if "mass" in ds else None) if mass is ... else mass
    names = _velocity_names(ds, axes, velocities)
    units, ratios = _conversions(ds, axes, names)
    lengths = box_sides(box_in(ds, units.get("x"), boxsize), axes)
    x, y, z = (*((length, 1.0 / length) if length else _OPEN for length in lengths), _OPEN, _OPEN)[:3]
    setting = Setting((x, y, z), len(axes), _gravity(G, axes, names))
    sources = dict(zip(AXES, axes, strict=False)) | dict(zip(_VELOCITIES, names, strict=False))
    sources |= {} if mass is None else {"mass": mass}
    arrays = {
        role: variable(ds, name, "mass" if role == "mass" else "velocities").data for role, name in sources.items()
    }
    check_one_dimension({name: ds[name].dims for name in sources.values()}, list(sources.values()))
    arrays = checked({"labels": label_values(ds, labels), **arrays}, ds["x"].shape, {})
    arrays |= {role: converted(arrays[role], by) for role, by in ratios.items()}
    arrays, n_clusters = _lazy.counted(arrays, n_clusters)
    steps = TableSteps(
        functools.partial(summarise, setting=setting),
        functools.partial(merge, setting=setting),
        functools.partial(finish, setting=setting),
        zero=("size", "mass"),
        noise="noise_mass",
        again=(functools.partial(summarise_again, setting=setting), merge_again),
        one_chunk=functools.partial(measure, setting=setting),
    )
    columns = _lazy.columns(arrays, steps, n_clusters)
    mass_unit = "1" if mass is None else ds[mass].attrs.get("units")
    there = _columns_and_units(len(axes), units, mass_unit, moving=bool(names), spinning=setting.gravity > 0)
    found = group_columns(ds, ds["x"], arrays["labels"], n_clusters, ())
    table = table_of({name: columns[name] for name in there} | found, {**there, **dict.fromkeys(found, "1")})
    box_unit = {BOX: units["x"]} if "x" in units else {}
    return table.assign_attrs(boxsize=lengths, **box_unit) if any(lengths) else table


def _conversions(
    ds: xr.Dataset, axes: tuple[str, ...], velocities: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, Fraction]]:
    """Return the units of positions and of velocities, those of the first axis, and what turns values into them."""
    units: dict[str, str] = {}
    ratios: dict[str, Fraction] = {}
    for roles, names in ((AXES, axes), (_VELOCITIES, velocities)):
        own = {name: variable(ds, name, "velocities").attrs.get("units") for name in names}
        unit, by = common(own, ds.attrs.get("hubble"))
        units |= {} if unit is None else dict.fromkeys(roles[: len(names)], unit)
        ratios |= {role: by[name] for role, name in zip(roles, names, strict=False)}
    return units, ratios


def _velocity_names(
    ds: xr.Dataset, axes: tuple[str, ...], velocities: Sequence[str] | EllipsisType | None
) -> tuple[str, ...]:
    """Return the variables with the velocities along the axes, or none."""
    if velocities is None:
        return ()
    if isinstance(velocities, EllipsisType):
        names = _VELOCITIES[: len(axes)]
        return names if all(name in ds for name in names) else ()
    if isinstance(velocities, str) or len(velocities) != len(axes):
        raise ValueError(f"velocities must name one variable for each of {', '.join(axes)}, got {velocities!r}")
    return tuple(velocities)


def _gravity(G: float | None, axes: tuple[str, ...], names: tuple[str, ...]) -> float:
    """Return the constant of gravity, 0 for no spin."""
    if G is None:
        return 0.0
    if len(axes) < 3 or not names:
        raise ValueError(f"G={G!r}: the spin needs x, y, z and velocities; leave it out, or name them with velocities=")
    return check_positive("G", G)


def _columns_and_units(
    axes: int, units: Mapping[str, str], mass: str | None, *, moving: bool, spinning: bool
) -> dict[str, str | None]:
    """Return the columns of the table with their units, from those of positions, of velocities and of the mass."""
    length, speed = units.get("x"), units.get("vx")
    momentum = None if length is None or speed is None else f"{length} {speed}"
    found: dict[str, str | None] = {"size": "1", "mass": mass, **dict.fromkeys(AXES[:axes], length)}
    found |= dict.fromkeys([*_VELOCITIES[:axes], "sigma_v"], speed) if moving else {}
    found |= {"r_rms": length, "r_max": length}
    found |= dict.fromkeys({1: [], 2: ["jz"], 3: ["jx", "jy", "jz"]}[axes], momentum) if moving else {}
    found |= {"spin": "1"} if spinning else {}
    return found | dict.fromkeys(["b_to_a", "c_to_a"][: axes - 1], "1") | {"noise_size": "1", "noise_mass": mass}


# ------------------------------------------------------------------------------------------------------------ in memory
def measure(device: Host | Cuda, arrays: Mapping[str, Any], setting: Setting, n_clusters: int | None) -> dict[str, Any]:
    """Return the columns of the table of particles in memory."""
    labels, particles = _prepared(device, arrays)
    largest, noise_size, noise_mass = _survey(device, arrays, labels, particles, 0)
    rows = row_count(largest, len(labels), n_clusters)
    first, order, particles = members_of(device, labels, particles, rows)
    means, spreads = empty_means(device, rows), empty(device, Spreads, rows)
    device.run(kernels.find_both, rows, first, order, particles, setting.box, means, spreads, grain=GRAIN)
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


def _columns(device: Host | Cuda, setting: Setting, means: Means, spreads: Spreads) -> dict[str, Any]:
    """Return the columns that follow from both passes."""
    columns = empty(device, Derived, len(means.size))
    device.run(kernels.finish_halo, len(means.size), *setting, means, spreads, columns, grain=1024)
    return {"size": means.size, "mass": means.mass, **columns._asdict()}


# ------------------------------------------------------------------------------------------------------------ in chunks
def summarise(arrays: Mapping[str, Any], start: int, setting: Setting) -> Summary:
    """Return centres and velocities of the halos in one chunk of n particles."""
    labels, particles = _prepared(HOST, arrays)
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
    spreads: Spreads = empty(HOST, Spreads, rows)
    first, order, particles = members_of(HOST, numbered(labels)[1], particles, rows)
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
    first, order, particles = members_of(HOST, local, particles, rows)
    means = empty_means(HOST, rows)
    kernels.find_means.run(rows, first, order, particles, setting.box, means)
    return means
