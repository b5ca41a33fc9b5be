"""Groups of galaxies of a redshift survey, against all pairs and against Nessie."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from astropy import units as u
from astropy.cosmology import FlatLambdaCDM
from cases.lanes import some_of
from dbscan.test_sphere import places
from scipy.sparse.csgraph import connected_components

from daskclust import galaxy_groups
from daskclust.core.merge.labels import same_partition, without_small

NESSIE = Path(__file__).parents[1] / "data" / "nessie" / "galaxies_0.06_18.csv.gz"


def by_all_pairs(ra, dec, distance, across, along, least):
    ra, dec, angle = np.radians(ra), np.radians(dec), across / distance
    u = np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=1)
    chord = np.sqrt(((u[:, None] - u) ** 2).sum(axis=2))
    step = np.abs(distance[:, None] - distance)
    friends = (chord <= (angle[:, None] + angle) / 2) & (step <= np.add.outer(along, along) / 2)
    _, first, label = np.unique(connected_components(friends)[1], return_index=True, return_inverse=True)
    return without_small(np.argsort(np.argsort(first))[label], least)


@some_of(12, seed=range(6), spread=[0.0, 0.5, 2.0], across=[1.0, 6.0, 40.0], least=[1, 2, 5])
def test_groups_are_those_of_all_pairs(seed, spread, across, least):
    """Near the poles and the date line, and with lengths that differ from galaxy to galaxy."""
    rng = np.random.default_rng(seed)
    dec, ra = places(seed).T
    distance = rng.lognormal(np.log(300), 0.8, len(ra))
    lengths = [mean * rng.lognormal(0, spread, len(ra)) for mean in (across, 8 * across)]
    wanted = by_all_pairs(ra, dec, distance, *lengths, least)
    found = galaxy_groups(ra, dec, distance, *lengths, min_members=least)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.int64
    angles = np.radians(ra), np.radians(dec)
    np.testing.assert_array_equal(
        galaxy_groups(*angles, distance, *lengths, min_members=least, units="radians"), wanted
    )
    if spread == 0.0:
        np.testing.assert_array_equal(galaxy_groups(ra, dec, distance, across, 8 * across, min_members=least), wanted)


def test_groups_are_those_of_nessie():
    """Its lengths: b times the mean separation where a galaxy is, and r times this along, as redshifts change it."""
    table = np.genfromtxt(NESSIE, delimiter=",", names=True)
    z, (b, r) = table["z"], map(float, NESSIE.name.removesuffix(".csv.gz").split("_")[1:])
    cosmology = FlatLambdaCDM(H0=70, Om0=0.3, Tcmb0=0)
    across = b * (10 ** (-1.5 - 6 * z) * table["completeness"]) ** (-1 / 3) / cosmology.h * u.Mpc
    along = across * r * (1 + z) / cosmology.efunc(z)
    ra, dec = table["ra"] * u.deg, (table["dec"] * u.deg).to(u.rad)
    found = galaxy_groups(ra, dec, cosmology.comoving_distance(z), across.to(u.kpc), along)
    assert found.max() > 250
    assert same_partition(found, table["label"])


def test_containers():
    X = np.array([[10.0, 10.1, 10.1], [0.0, 0.0, 0.0], [100.0, 102.0, 110.0]])
    frame, ds = pd.DataFrame(X.T, columns=list("abc")), [xr.DataArray(row, dims="galaxy") for row in X]
    for columns in (X, X.tolist(), [frame[name] for name in "abc"], ds):
        assert galaxy_groups(*columns, 0.2, [4.0, 4.0, 4.0]).tolist() == [0, 0, -1]
    assert galaxy_groups(*np.empty((3, 0)), 0.2, 4.0).tolist() == []
    assert galaxy_groups(*X[:, :1], 0.2, 4.0, min_members=1).tolist() == [0]


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"ra": [1.0, np.nan]}, ValueError, r"ra must be finite, got ra\[1\] = nan"),
        ({"dec": [1.0, 91.0]}, ValueError, "a latitude of 91 degrees is beyond a pole"),
        ({"distance": [0.0, 1.0]}, ValueError, r"distance\[0\] must be finite and positive, got 0"),
        ({"across": -1.0}, ValueError, "across must be finite and positive, got -1"),
        ({"along": [1.0, np.nan]}, ValueError, r"along\[1\] must be finite and positive, got nan"),
        ({"along": [1.0] * 3}, ValueError, r"along must have one value for each of the 2 points"),
        ({"across": 1.0 * u.Mpc}, ValueError, "across has the unit 'Mpc', which is compared with values that have"),
        ({"units": "deg"}, ValueError, "units must be 'radians' or 'degrees', got 'deg'"),
        ({"min_members": 0}, ValueError, "min_members must be 1 or more, got 0"),
        ({"distance": da.ones(2)}, TypeError, r"distance must be in memory, .* distance\.compute\(\)"),
        ({"ra": dd.from_pandas(pd.Series([0.0, 1.0]))}, TypeError, r"ra must be in memory, .* ra\.compute\(\)"),
    ],
    ids=str,
)
def test_what_is_refused(changed, error, words):
    given = {"ra": [1.0, 2.0], "dec": [1.0, 2.0], "distance": [9.0, 9.0], "across": 1.0, "along": 1.0}
    with pytest.raises(error, match=words):
        galaxy_groups(**{**given, **changed})
