"""Groups in files of other codes: read by swiftsimio, and as SOAP and readers of Gadget's catalogues do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from daskclust.datasets import cosmology_box
from daskclust.io import write_group_ids, write_groups
from daskclust.properties import halo_table, spherical_overdensity

HUBBLE, Z = 0.7, 1.0


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    box = cosmology_box(3000, rng=0)
    ids = np.random.default_rng(0).permutation(3000).astype(np.uint64) + 2**40
    attrs = {"hubble": HUBBLE, "redshift": Z, "omega_lambda": 0.7}
    return box.rename(halo="label").assign(id=("particle", ids)).assign_attrs(attrs)


@pytest.fixture(scope="module")
def halos(found: xr.Dataset) -> xr.Dataset:
    labels = found["label"].values.copy()
    labels[labels == 2] = -1  # a row without particles
    table = halo_table(found, labels).merge(spherical_overdensity(found, labels)).assign_attrs(found.attrs)
    assert table["size"][2] == 0
    return table


@pytest.mark.parametrize("chunks", [None, 700])
def test_soap_finds_the_groups_of_particles(found: xr.Dataset, chunks: int | None, tmp_path: Path) -> None:
    """As its group_membership.py: types by the header, particles by their ids, none 2147483647."""
    stars = found.isel(particle=slice(0, 100)).assign_attrs(particle_type=4)
    write_group_ids([found if chunks is None else found.chunk(particle=chunks), stars], tmp_path / "fof.hdf5")
    with h5py.File(tmp_path / "fof.hdf5") as file:
        header = file["Header"].attrs
        assert header["NumFilesPerSnapshot"][0] == 1
        types = [k for k in range(header["NumPartTypes"][0]) if f"PartType{k}" in file]
        assert types == [1, 4]
        assert header["NumPart_ThisFile"].tolist() == [0, 3000, 0, 0, 100, 0]
        for kind, ds in zip(types, (found, stars), strict=True):
            ids, groups = (file[f"PartType{kind}/{name}"][:] for name in ("ParticleIDs", "FOFGroupIDs"))
            of_particle = dict(zip(ids.tolist(), groups.tolist(), strict=True))
            for own, label in zip(ds["id"].values.tolist(), ds["label"].values.tolist(), strict=True):
                assert of_particle[own] == (2147483647 if label < 0 else label + 1)


def test_swiftsimio_reads_groups_with_units(halos: xr.Dataset, tmp_path: Path) -> None:
    import swiftsimio  # not above: where numba-cuda is installed, its kernels for GPUs fail to compile

    write_groups(halos, tmp_path / "fof_output.hdf5", layout="swift")
    there = halos.isel(cluster=np.flatnonzero(halos["size"]))
    data: Any = swiftsimio.load(str(tmp_path / "fof_output.hdf5"))
    groups, a = data.fof_groups, 1 / (1 + Z)
    assert data.metadata.output_type == "FOF"
    assert data.metadata.redshift == pytest.approx(Z)
    assert data.metadata.cosmology.h == pytest.approx(HUBBLE, rel=1e-5)  # of H0, by its parsec and its year
    np.testing.assert_allclose(np.asarray(data.metadata.boxsize.to_value("Mpc")), [halos.attrs["boxsize"] / HUBBLE] * 3)
    np.testing.assert_array_equal(groups.sizes.value, there["size"])
    np.testing.assert_array_equal(groups.group_ids.value, there["cluster"] + 1)
    masses = np.asarray(groups.masses.to_value("Msun"))
    np.testing.assert_allclose(masses, there["mass"] / HUBBLE, rtol=1e-4)  # its solar mass
    centres = np.stack([there[axis] for axis in "xyz"], axis=1) / HUBBLE
    np.testing.assert_allclose(np.asarray(groups.centres.to_comoving().to_value("Mpc")), centres, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(groups.centres.to_physical().to_value("Mpc")), centres * a, rtol=1e-6)


def test_gadgets_catalogue_has_groups_and_spheres(halos: xr.Dataset, tmp_path: Path) -> None:
    write_groups(halos.chunk(), tmp_path / "fof_tab_001.hdf5")
    there = halos.isel(cluster=np.flatnonzero(halos["size"]))
    with h5py.File(tmp_path / "fof_tab_001.hdf5") as file:
        header, group = file["Header"].attrs, file["Group"]
        assert header["Ngroups_ThisFile"] == header["Ngroups_Total"] == there.sizes["cluster"]
        assert (header["NumFiles"], header["Redshift"], header["Time"]) == (1, Z, 0.5)
        assert header["BoxSize"] == pytest.approx(halos.attrs["boxsize"])
        assert set(group) == {
            *("GroupPos", "GroupMass", "GroupMassType", "GroupLen", "GroupLenType"),
            *(f"Group_{letter}_{name}" for letter in "MR" for name in ("Crit200", "Mean200", "TopHat200")),
        }
        np.testing.assert_array_equal(group["GroupLen"], there["size"])
        np.testing.assert_array_equal(group["GroupLenType"][:, 1], there["size"])
        assert not group["GroupLenType"][:, [0, 2, 3, 4, 5]].any()
        np.testing.assert_allclose(group["GroupMass"][:] * 1e10, there["mass"])
        np.testing.assert_allclose(group["GroupPos"], np.stack([there[axis] for axis in "xyz"], axis=1))
        np.testing.assert_allclose(group["Group_M_TopHat200"][:] * 1e10, there["m_vir"])
        np.testing.assert_allclose(group["Group_R_Crit200"], there["r_200c"])


@pytest.mark.parametrize("layout", ["gadget", "swift"])
def test_no_groups_are_a_file_too(halos: xr.Dataset, layout: Any, tmp_path: Path) -> None:
    write_groups(halos.isel(cluster=slice(0)), tmp_path / "none.hdf5", layout=layout)
    with h5py.File(tmp_path / "none.hdf5") as file:
        assert file["Groups/Masses" if layout == "swift" else "Group/GroupMass"].shape == (0,)


def test_what_cannot_be_written_is_told(found: xr.Dataset, halos: xr.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "groups.hdf5"
    for ds, words in [
        (found.drop_vars("id"), "'id'"),
        ([found, found], "particle_type"),
        ([], "particle_type"),
        (found.assign(label=found["label"] - 2), "label must be from -1"),
        (found.assign(label=found["label"] + 2**31 - 3), "label must be from -1"),
    ]:
        with pytest.raises(ValueError, match=words):
            write_group_ids(ds, path)
    bare = halos.assign(mass=halos["mass"].drop_attrs())
    unknown: Any = "ahf"
    with pytest.raises(ValueError, match="mass must have a unit"):
        write_groups(bare, path)
    with pytest.raises(ValueError, match="hubble"):
        write_groups(halos.drop_attrs(deep=False), path, layout="swift")
    with pytest.raises(ValueError, match="'size'"):
        write_groups(halos.drop_vars("size"), path)
    with pytest.raises(ValueError, match="'ahf'"):
        write_groups(halos, path, layout=unknown)
    assert list(tmp_path.iterdir()) == []
