"""Make the file of `tests/data/nessie` again: `python tests/data/make_nessie.py`, with nessie-py installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "nessie" / "galaxies_0.06_18.csv.gz"
SEED = 2026


def make() -> None:
    """Write galaxies in groups stretched in redshift, some at RA 0 and at a pole, and the group of each by Nessie."""
    from nessie import FlatCosmology, RedshiftCatalog

    rng = np.random.default_rng(SEED)
    k, n, field = 300, 1600, 900
    group = rng.integers(0, k, n)
    z = rng.uniform(0.02, 0.3, k)[group] + rng.normal(0, 1.5e-3, n)
    pole = rng.random(k)[group] < 0.3
    dec = np.where(pole, 90 - rng.uniform(0, 2, k)[group], rng.uniform(-3, 3, k)[group]) + rng.normal(0, 0.003, n) / z
    ra = np.where(pole, rng.uniform(0, 360, k)[group], rng.normal(0, 4, k)[group]) + rng.normal(0, 0.003, n) / z
    ra, dec = np.append(ra, rng.normal(0, 4, field)) % 360, np.append(np.minimum(dec, 90), rng.uniform(-3, 3, field))
    ra, dec, z = ra.round(4) % 360, dec.round(4), np.append(z, rng.uniform(0.02, 0.3, field)).round(5)
    completeness = rng.uniform(0.5, 1.0, n + field).round(2)
    catalog = RedshiftCatalog(ra, dec, z, lambda z: 10 ** (-1.5 - 6 * z), FlatCosmology(0.7, 0.3))
    catalog.set_completeness(completeness)
    catalog.run_fof(*map(float, FILE.name.removesuffix(".csv.gz").split("_")[1:]), max_stellar_mass=1e30)  # no caps
    rows = np.column_stack([ra, dec, z, completeness, catalog.group_ids])
    np.savetxt(FILE, rows, "%.9g", delimiter=",", header="ra,dec,z,completeness,label", comments="")


if __name__ == "__main__":
    make()
