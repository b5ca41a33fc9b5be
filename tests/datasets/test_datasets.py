"""What is true of all generators: they repeat, conform, do not depend on chunks, and refuse what cannot be."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes

from daskclust import datasets

NUMBERED = [  # generators that make points from their numbers: arguments, those of more than are made at a time, truth
    (datasets.cosmology_box, {"n": 500}, {"n": 70_001}, "halo"),
    (datasets.cosmology_box, {"n": 500, "web": 0.03, "filaments": 0.0}, {"n": 70_001}, "halo"),
    (datasets.seed_spreader, {"n": 500, "d": 1}, {"n": 70_001}, "truth"),
    (datasets.seed_spreader, {"n": 500, "noise": 0.1}, {"n": 70_001}, "truth"),
    (datasets.seed_spreader, {"n": 500, "d": 5, "density": "varying"}, {"n": 70_001}, "truth"),
    (datasets.cytometry, {"n": 500}, {"n": 70_001}, "population"),
    (datasets.cytometry, {"n": 500, "channels": 3, "noise": 0.0, "shuffle": False}, {"n": 70_001}, "population"),
    (datasets.apriori_gaussians, {"groups": 50, "size": 10}, {"groups": 101, "size": 701}, "apriori"),
    (datasets.apriori_gaussians, {"groups": 50, "size": 10, "channels": 1}, {"groups": 101, "size": 701}, "apriori"),
]
GENERATORS = [
    (datasets.calorimeter, {"n_layers": 3, "points_per_layer": 200}, {}, "truth"),
    (datasets.hgcal_event, {"n_showers": 5, "n_noise": 100}, {}, "truth"),
    (datasets.moons, {"n": 500}, {}, "truth"),
    (datasets.circles, {"n": 500}, {}, "truth"),
    (datasets.anisotropic_blobs, {"n": 500}, {}, "truth"),
    *NUMBERED,
]


def values(ds: xr.Dataset) -> np.ndarray[Any, Any]:
    """Return all columns side by side, in the order of all of them."""
    table = np.column_stack([ds[name].values for name in ds])
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize(("make", "kwargs", "_many", "truth"), GENERATORS)
def test_generators_repeat_and_conform(make: Any, kwargs: dict[str, Any], _many: Any, truth: str) -> None:
    ds = make(**kwargs, rng=1)
    xr.testing.assert_identical(ds, make(**kwargs, rng=np.random.default_rng(1)))
    assert not ds[next(iter(ds))].equals(make(**kwargs, rng=2)[next(iter(ds))])
    assert {name: ds[name].dtype for name in ds} == {
        name: np.dtype({truth: np.int64, "layer": np.int32}.get(str(name), np.float32)) for name in ds
    }
    assert all(np.isfinite(ds[name]).all() for name in ds)
    assert "channel" not in ds.dims or ds["X"].values.flags.c_contiguous
    assert ds[truth].min() >= -1
    if make not in (datasets.hgcal_event, datasets.calorimeter):
        assert len(ds[truth]) == 500
    if ds.sizes.get("hit"):
        assert {"x", "y", "layer", "energy", "truth"} <= set(ds)
        assert ds["truth"].min() == -1
        assert all("units" in ds[name].attrs for name in ds)
    assert ds.attrs["generator"] == make.__name__
    assert all(ds.attrs[name] == value for name, value in kwargs.items())
    assert all(isinstance(v, str | int | float | list) and not isinstance(v, bool) for v in ds.attrs.values())
    assert make(**kwargs).sizes


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(("make", "kwargs", "many", "_truth"), NUMBERED)
def test_any_chunks_give_the_same_points(make: Any, kwargs: Any, many: Any, _truth: str, large: bool) -> None:
    kwargs = kwargs | (many if large else {})
    whole = make(**kwargs, rng=5)
    dim, n = next(iter(whole.sizes.items()))
    for chunks in (n // 7 + 1, 65_536, 10**6):
        with raise_if_dask_computes():
            lazy = make(**kwargs, rng=5, chunks=chunks)
        assert max(lazy.chunks[dim]) <= chunks
        assert all(len(of_dim) == 1 for name, of_dim in lazy.chunks.items() if name != dim)
        assert all(lazy[name].data._meta.dtype == lazy[name].dtype == whole[name].dtype for name in lazy)
        xr.testing.assert_identical(pickle.loads(pickle.dumps(lazy)).compute(), whole)
    part = {dim: slice(n // 3, n // 2)}
    xr.testing.assert_identical(lazy.isel(part).compute(), whole.isel(part))


@pytest.mark.parametrize(("make", "kwargs", "_many", "truth"), NUMBERED)
def test_shuffling_is_an_order(make: Any, kwargs: dict[str, Any], _many: Any, truth: str) -> None:
    mixed, in_order = (make(**{**kwargs, "shuffle": shuffle}, rng=3) for shuffle in (True, False))
    np.testing.assert_array_equal(values(mixed), values(in_order))
    number = in_order[truth].values
    assert (np.diff(number[number >= 0]) >= 0).all()
    assert (number[np.argmax(number < 0) :] < 0).all() or (number >= 0).all()
    assert (np.diff(mixed[truth].values[mixed[truth].values >= 0]) < 0).any()


def test_few_points_and_none() -> None:
    for n in (0, 1, 2, 3):
        assert datasets.cytometry(n, 2, rng=0).sizes == {"cell": n, "channel": 2}
        for d in (1, 3, 5):
            assert datasets.seed_spreader(n, d, noise=0.1).sizes["particle"] == n
        assert datasets.cosmology_box(n).sizes["particle"] == n
        assert datasets.cosmology_box(n, chunks=4).compute().sizes["particle"] == n
        for make in (datasets.moons, datasets.circles, datasets.anisotropic_blobs):
            assert make(n, rng=0).sizes["hit"] == n
    assert datasets.seed_spreader(0, chunks=4).compute().sizes["particle"] == 0
    assert datasets.apriori_gaussians(0, 5, rng=0).sizes["cell"] == 0
    assert datasets.apriori_gaussians(3, 0, rng=0, chunks=4).compute().sizes["cell"] == 0
    assert datasets.apriori_gaussians(3, 1, rng=0)["apriori"].values.tolist() == [0, 1, 2]
    assert datasets.hgcal_event(0, n_noise=0, rng=0).sizes["hit"] == 0
    assert datasets.hgcal_event(0, 1, n_noise=5, rng=0)["truth"].max() == -1


def test_all_noise_and_none() -> None:
    for make in (datasets.moons, datasets.circles, datasets.anisotropic_blobs):
        assert (make(10, noise=1.0, rng=0)["truth"] == -1).all()
    assert (datasets.cytometry(50, noise=1.0, rng=0)["population"] == -1).all()
    assert (datasets.cytometry(50, populations=1, noise=0.0, rng=0)["population"] == 0).all()
    assert (datasets.cosmology_box(500, background=1.0, rng=0)["halo"] == -1).all()
    assert (datasets.cosmology_box(500, background=0.0, rng=0)["halo"] >= 0).all()


@pytest.mark.parametrize("make", [*dict.fromkeys(make for make, *_ in GENERATORS), datasets.timepix])
def test_every_number_is_checked(make: Any) -> None:
    arguments = inspect.signature(make).parameters.values()
    names = [each.name for each in arguments if each.annotation in ("int", "float", "int | None")]
    assert len(names) >= 4
    for name in names:
        for wrong in (-1, np.nan, "many", True):
            with pytest.raises((ValueError, TypeError), match=rf"{name}\b.*{wrong}"):
                make(**{name: wrong})


@pytest.mark.parametrize(
    ("make", "kwargs", "message"),
    [
        (datasets.calorimeter, {"noise": 1.5}, "noise must be from 0 to 1, got 1.5"),
        (datasets.hgcal_event, {"energy_range": (5.0, 1.0)}, "energy_range must be two positive energies"),
        (datasets.cosmology_box, {"chunks": 0}, "chunks must be 1 or more, got 0"),
        (datasets.seed_spreader, {"density": "equal"}, "density must be one of similar, varying, got 'equal'"),
        (datasets.cytometry, {"rarest": 0.0}, "rarest must be finite and positive, got 0.0"),
        (datasets.cytometry, {"rarest": 1.5}, "rarest must be from 0 to 1, got 1.5"),
        (datasets.timepix, {"kind": "muon"}, "kind must be one of gamma, pion0, .*, got 'muon'"),
        (datasets.timepix, {"chips": 257}, "chips must be at most 256, got 257"),
        (datasets.timepix, {"layout": "quad", "chips": 2}, "a quad has 4 chips, got chips=2; leave chips out"),
        (datasets.timepix, {"layout": "ring"}, "layout must be one of chips, quad, timepix4, got 'ring'"),
        (datasets.timepix, {"start": 1.0}, "start must be a multiple of 1.5625 ns, got 1.0"),
    ],
)
def test_wrong_arguments(make: Any, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**kwargs)
