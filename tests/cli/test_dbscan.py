"""``daskclust dbscan`` and ``daskclust fof``, run as users run them: points, catalogues, messages."""

import numpy as np
import pandas as pd
import pytest

from daskclust.datasets import cosmology_box, seed_spreader
from daskclust.io import open_particles, read_hits, write_hits, write_particles
from daskclust.properties import halo_table

N = 4000


@pytest.fixture(scope="module")
def particles():
    return cosmology_box(N, rng=0).drop_vars("halo")


@pytest.fixture(scope="module")
def snapshot(particles, tmp_path_factory):
    path = tmp_path_factory.mktemp("box") / "snapshot.hdf5"
    write_particles(particles, path)
    return path


@pytest.fixture(scope="module")
def flat():
    return seed_spreader(1000, 2, n_clusters=3.0, noise=0.05, rng=0).drop_vars("truth")


def assert_catalogue(written, particles, **parameters):
    """Compare a file with the table of all particles at once."""
    result = particles.clust.fof(**parameters)
    table = halo_table(result, n_clusters=int(result["label"].max()) + 1)
    assert list(written["cluster"]) == list(range(table.sizes["cluster"]))
    for name in table.data_vars:
        np.testing.assert_allclose(written[name], table[name], rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(written["size"], table["size"])
    return result


# ------------------------------------------------------------------------------------------------------------------ fof
def test_from_snapshot_to_catalogue(summary, particles, snapshot, tmp_path):
    target, labels = tmp_path / "halos.parquet", tmp_path / "particles.parquet"
    told = summary("fof", snapshot, "--b", 0.168, "--min-members", 20, "--table", target, "-o", labels)
    result = assert_catalogue(pd.read_parquet(target), particles, b=0.168, min_members=20)
    label = result["label"].values
    assert min(told.pop("seconds"), told.pop("seconds_compiling")) >= 0
    assert told == {
        "particles": N,
        "linking_length": result["label"].attrs["linking_length"],
        "halos": label.max() + 1,
        "particles_in_halos": int((label >= 0).sum()),
        "largest": np.bincount(label[label >= 0]).max(),
        "output": str(labels),
        "table": str(target),
    }
    written = pd.read_parquet(labels)
    np.testing.assert_array_equal(written["label"], label)
    assert {"x", "y", "z", "vx", "vy", "vz", "mass"} <= set(written)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["halos.parquet", "particles.parquet"]
    catalogue = read_hits(target)
    assert catalogue["r_max"].attrs["units"] == "Mpc/h"
    assert catalogue.attrs["noise_size"] == int((label < 0).sum())
    assert "largest" not in summary("fof", snapshot, "--b", 0.168)


def test_box_of_the_user(summary, particles, snapshot, tmp_path):
    target = tmp_path / "halos.csv"
    length = ("--linking-length", 0.25, "--table", target)
    summary("fof", snapshot, "--boxsize", "none", *length)
    assert_catalogue(pd.read_csv(target), particles.drop_attrs(deep=False), linking_length=0.25)
    side = particles.attrs["boxsize"]
    summary("fof", snapshot, "--boxsize", f"{side}, none,{2 * side}", *length)
    assert_catalogue(pd.read_csv(target), particles.assign_attrs(boxsize=[side, 0.0, 2 * side]), linking_length=0.25)
    told = summary("fof", snapshot, "--boxsize", 2 * side, "--b", 0.2)
    assert told["linking_length"] == pytest.approx(0.4 * side / N ** (1 / 3))


def test_particles_of_a_type(summary, particles, tmp_path):
    gas = particles.isel(particle=slice(0, 500)).assign_attrs(particle_type=0, boxsize=particles.attrs["boxsize"])
    write_particles(gas, tmp_path / "gas.hdf5")
    for kind in ("gas", 0):
        told = summary("fof", tmp_path / "gas.hdf5", "--linking-length", 0.5, "--particle-type", kind)
        assert told["particles"] == 500


def test_no_halos(summary, snapshot, tmp_path):
    target = tmp_path / "halos.parquet"
    told = summary("fof", snapshot, "--b", 0.01, "--min-members", 1000, "--table", target)
    assert (told["halos"], told["particles_in_halos"], told["largest"]) == (0, 0, 0)
    assert len(pd.read_parquet(target)) == 0


# --------------------------------------------------------------------------------------------------------------- dbscan
@pytest.mark.parametrize(
    ("given", "suffix"),
    [
        (".npy", ".parquet"),
        (".arborx", ".parquet"),
        *[(kind, kind) for kind in (".csv", ".parquet", ".npz", ".h5", ".zarr")],
    ],
)
def test_files_of_every_kind_and_points_with_labels_read_again(summary, flat, tmp_path, given, suffix):
    source, target = tmp_path / f"points{given}", tmp_path / f"labels{suffix}"
    (write_particles if given in (".npy", ".zarr", ".arborx") else write_hits)(flat, source)
    told = summary("dbscan", source, "--eps", 60, "--min-samples", 8, "-o", target)
    result = flat.clust.dbscan(60.0, min_samples=8)
    written = open_particles(target) if suffix == ".zarr" else read_hits(target, field="particles")
    np.testing.assert_array_equal(written["label"], result["label"])
    np.testing.assert_array_equal(written["is_core"], result["is_core"])
    np.testing.assert_array_equal(written["x"].astype(np.float32), flat["x"])  # text has the shortest digits
    counts = {
        "points": 1000,
        "clusters": int(result["label"].max()) + 1,
        "core_points": int(result["is_core"].sum()),
        "noise": int((result["label"] < 0).sum()),
    }
    assert min(told.pop("seconds"), told.pop("seconds_compiling")) >= 0
    assert told == {**counts, "output": str(target)}
    again = summary("dbscan", target, "--eps", 60, "--min-samples", 8)
    assert counts.items() <= again.items()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, target.name])


def test_weights_coordinates_and_boxes(summary, particles, snapshot, tmp_path):
    weighted = particles.assign(weight=("particle", np.linspace(0.0, 3.0, N)))
    source, target = tmp_path / "points.parquet", tmp_path / "labels.parquet"
    write_hits(weighted, source)
    side = particles.attrs["boxsize"]
    arguments = ("--min-samples", 4, "--weight", "weight", "--coordinates", "x,y", "--boxsize", side, "-o", target)
    expected = weighted.clust.dbscan(0.1, min_samples=4, weight="weight", coordinates=("x", "y"))
    told = summary("dbscan", source, "--eps", 0.1, *arguments)
    np.testing.assert_array_equal(pd.read_parquet(target)["label"], expected["label"])
    assert told["clusters"] == int(expected["label"].max()) + 1
    periodic, is_open = (summary("dbscan", snapshot, "--eps", 0.3, *box) for box in ((), ("--boxsize", "none")))
    assert periodic["clusters"] == int(particles.clust.dbscan(0.3)["label"].max()) + 1
    assert is_open["noise"] == int((particles.clust.dbscan(0.3, boxsize=None)["label"] < 0).sum())
    assert periodic != is_open


def test_columns_without_names(summary, tmp_path):
    source = tmp_path / "points.csv"
    source.write_text("7,0,0\n7,0,0.1\n7,5,5\n")
    told = summary("dbscan", source, "--eps", 1, "--min-samples", 2, "--columns", "t,x,y", "--coordinates", "x, y")
    assert (told["clusters"], told["noise"]) == (1, 1)
    assert summary("dbscan", source, "--eps", 1, "--min-samples", 2)["clusters"] == 1  # x, y, z
