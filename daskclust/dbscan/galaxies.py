"""Groups of galaxies of a redshift survey: friends-of-friends with one length across the line of sight, one along."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from daskclust.core.data.checks import check_distance, check_length, check_whole, raise_not_finite_value
from daskclust.core.data.columns import column, doubles, named_for_kernels
from daskclust.core.data.foreign import unit_of
from daskclust.core.data.units import in_unit
from daskclust.core.device.arrays import device_of, keeping_device, library, on_device_of
from daskclust.core.device.unionfind import flatten, start, unite_edges
from daskclust.core.merge.labels import without_small
from daskclust.core.space import near
from daskclust.dbscan.kernels.cylinders import beyond_cylinder, box_beyond_cylinder
from daskclust.dbscan.sphere import check_units, unit_vectors

__all__ = ["galaxy_groups"]


@keeping_device()
def galaxy_groups(
    ra: Any,
    dec: Any,
    distance: Any,
    across: Any,
    along: Any,
    *,
    min_members: int = 2,
    units: Literal["degrees", "radians"] = "degrees",
) -> Any:
    """Return the group of each galaxy of a redshift survey.

    Two galaxies are friends where they are near each other across the line of sight and along it [1]_; friends of
    friends are one group. Peculiar velocities stretch groups along the line of sight: `along` is many times `across`.

    Parameters
    ----------
    ra, dec : array, shape (n,)
        Right ascension and declination.
    distance : array, shape (n,)
        Comoving distances, as of ``cosmology.comoving_distance(z)`` of astropy.
    across, along : float or array, shape (n,)
        Linking lengths, of all galaxies or of each, in the unit of `distance`.
    min_members : int, default 2
        Groups with fewer members are none.
    units : {"degrees", "radians"}, default "degrees"
        Of `ra` and `dec`, where they carry none.

    Returns
    -------
    array of int64, shape (n,)
        Groups, numbered by the smallest index of a member; -1 outside of groups. Of the class of `distance`.

    Raises
    ------
    ValueError, TypeError
        For distances and lengths that are not positive, values that are not finite, declinations beyond a pole, columns
        of different lengths, units that cannot be converted, and dask arrays.

    See Also
    --------
    FriendsOfFriends : Of positions in space, or with ``metric="haversine"`` on the sky.

    Notes
    -----
    Friends are at most the mean of their lengths `along` apart in `distance`, and their directions, as unit vectors, at
    most the mean of their ``across / distance``. Where all lengths are equal, the latter is a length at the harmonic
    mean of both distances. Both limits are inclusive, and are those of Nessie [2]_, whose groups these are.

    Time is O(n log n) and memory O(n), and both grow with the number of pairs of friends.

    References
    ----------
    .. [1] A. S. G. Robotham et al., Galaxy and Mass Assembly (GAMA): the GAMA galaxy group catalogue (G3Cv1), Mon. Not.
       R. Astron. Soc. 416 (2011) 2640, https://doi.org/10.1111/j.1365-2966.2011.19217.x
    .. [2] Nessie, a group finder based on the former, https://pypi.org/project/nessie-py

    Examples
    --------
    >>> from daskclust import galaxy_groups
    >>> galaxy_groups([10.0, 10.1, 10.1], [0.0, 0.0, 0.0], [100.0, 102.0, 110.0], across=0.2, along=4.0)
    array([ 0,  0, -1])
    """
    least, units = check_whole("min_members", min_members, 1, clamp=True), check_units(units)
    given = {"ra": ra, "dec": dec, "distance": distance, "across": across, "along": along}
    for name, values in given.items():
        if "dask" in (library(values), library(getattr(values, "data", None))):
            raise TypeError(f"{name} must be in memory, got one of dask; call {name}.compute()")
    own = {name: unit_of(name, values) for name, values in given.items()}
    columns = {name: column(name, values, doubles) for name, values in given.items()}
    n = np.size(columns["distance"])
    for name, values in columns.items():
        is_angle = name in ("ra", "dec")
        values = in_unit(name, values, own[name], units if is_angle else own["distance"])
        if np.ndim(values) or name not in ("across", "along"):
            check_length(name, values, n)
        for row in {int(values.argmin()), int(values.argmax())} if n else ():  # the first NaN is both
            value = float(values.ravel()[row])
            if not is_angle:
                check_distance(f"{name}[{row}]" if np.ndim(values) else name, value)
            elif not np.isfinite(value):
                raise_not_finite_value(name, value, row)
        columns[name] = on_device_of(columns["distance"], values)
    ra, dec, distance, across, along = columns.values()
    axes = np.stack(np.broadcast_arrays(distance, across / distance / 2, along / 2), axis=1)
    X = np.concatenate([unit_vectors(np.stack([dec, ra], axis=1), units), axes], axis=1)
    tree = near.plant(named_for_kernels({"X": X})["X"], (0.0,) * 6)
    pairs = near.pairs_within(tree, 1.0, distance2=beyond_cylinder, box_gap2=box_beyond_cylinder)

    device = device_of(X)
    parent, ends = device.empty(n, np.int32), device.cast(pairs.T, np.int32)
    device.run(start, n, parent)
    device.run(unite_edges, len(pairs), ends[0], ends[1], parent)
    device.run(flatten, n, parent)
    labels = np.unique(device.to_host(parent), return_inverse=True)[1]  # a root is the smallest index of its set
    return device.from_host(without_small(labels, least))
