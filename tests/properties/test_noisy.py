"""Noisy pixels against pandas, in memory and in any chunks, with chips and without; and in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskclust import EventBuilder, datasets, io
from daskclust.properties import mask_noisy_pixels, noisy_pixels
from daskclust.properties._noisy import hits_of_pixels


@st.composite
def cases(draw: Any) -> Any:
    """Draw hits of few pixels, a limit, and sizes of chunks."""
    n, side = draw(st.integers(0, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = draw(st.sampled_from([0, 3, 4000]))
    dtype = draw(st.sampled_from([np.uint8, np.uint16, np.int64])) if low < 100 else np.uint16
    x, y = (low + rng.integers(0, side, (2, n))).astype(dtype)
    ds = xr.Dataset({"x": ("hit", x), "y": ("hit", y), "toa": ("hit", np.arange(n) * 25.0)}, attrs={"layout": "chips"})
    if draw(st.booleans()):
        ds["chip"] = "hit", rng.integers(0, 3, n).astype(np.uint8)
    most = draw(st.sampled_from([None, 0, 1, 3, 100]))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return ds, most, tuple(np.diff([0, *cuts, n]).tolist())


def by_pandas(ds: xr.Dataset, most: int | None) -> tuple[pd.Series, np.ndarray]:
    """Return the hits of noisy pixels by chip, x and y, and which hits are of others."""
    frame = pd.DataFrame({name: ds[name].values for name in ("x", "y")})
    frame.insert(0, "chip", ds["chip"].values if "chip" in ds else 0)
    counts = frame.groupby(["chip", "x", "y"]).size()
    limit = most if most is not None else int(100 * counts.median()) if len(counts) else 100
    each = frame.groupby(["chip", "x", "y"])["x"].transform("size").to_numpy()
    return counts[counts > limit], each <= limit


@given(cases())
def test_any_hits_in_any_chunks(case: Any) -> None:
    ds, most, chunks = case
    wanted, is_quiet = by_pandas(ds, most)
    noisy = noisy_pixels(ds, most)
    names = [noisy[name].values.tolist() for name in ("chip", "x", "y")]
    assert dict(zip(zip(*names, strict=True), noisy["hits"].values, strict=True)) == wanted.to_dict()
    assert (np.diff(noisy["hits"]) <= 0).all()
    assert ((hits_of_pixels(ds) <= noisy.attrs["max_pixel_hits"]) == is_quiet).all()
    for given_ds in (ds, ds.chunk(hit=chunks)):
        kept = mask_noisy_pixels(given_ds, most)
        assert bool(kept.chunks) == bool(given_ds.chunks)
        assert kept.attrs == {"layout": "chips", "noisy_pixels": len(wanted), **noisy.attrs}
        xr.testing.assert_equal(kept.compute(), ds.isel(hit=np.flatnonzero(is_quiet)))
    xr.testing.assert_identical(noisy_pixels(given_ds, most), noisy)


@given(cases(), st.integers(0, 2**32 - 1))
def test_pixels_of_another_run(case: Any, seed: int) -> None:
    ds, _, chunks = case
    rng, ds = np.random.default_rng(seed), ds.assign({axis: ds[axis] % 32 for axis in "xy"})
    pixels = pd.DataFrame(rng.integers(0, 9, (4, 2)), columns=["x", "y"]).assign(chip=rng.integers(0, 5, 4))
    pixels = pixels if "chip" in ds else pixels.drop(columns="chip")
    masked = set(map(tuple, pixels.to_numpy().tolist()))
    each = zip(*(ds[name].values.tolist() for name in pixels), strict=True)
    is_quiet = np.array([pixel not in masked for pixel in each], bool)
    for given_ds in (ds, ds.chunk(hit=chunks)):
        kept = mask_noisy_pixels(given_ds, pixels=pixels)
        assert bool(kept.chunks) == bool(given_ds.chunks)
        told = {"noisy_pixels": len(masked), "noisy_hits": int((~is_quiet).sum())}
        assert kept.attrs == {"layout": "chips", **told}
        xr.testing.assert_equal(kept.compute(), ds.isel(hit=np.flatnonzero(is_quiet)))
    with pytest.raises(ValueError, match="max_pixel_hits=3 finds pixels, and pixels= names them"):
        mask_noisy_pixels(ds, 3, pixels=pixels)


def test_what_is_refused() -> None:
    ds = xr.Dataset({"x": ("hit", [1, 2]), "y": ("hit", [1, 2])})
    for wrong, message in (
        (ds.drop_vars("x"), "hits have no variable 'x'; they have y"),
        (ds.assign(x=ds["x"] + 0.5), r"x must be whole numbers, got float64; .* x\[0\] = 1.5"),
        (ds + 60_000, r"x = 60002 and y = 60002, more than 2\*\*26 pixels; are x and y pixel numbers"),
        (ds - 2, "y must be from 0 to 65535, got -1 at index 0"),
    ):
        with pytest.raises(ValueError, match=message):
            mask_noisy_pixels(wrong)
    with pytest.raises(ValueError, match="max_pixel_hits must be 0 or more, got -1"):
        mask_noisy_pixels(ds, -1)
    assert len(hits_of_pixels(ds + 60_000)) == 2, "the explorer shows them"


@pytest.fixture(scope="module")
def noisy_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """Return hits of two chips, of which two pixels have a half, and a raw file of them."""
    made = datasets.timepix(3_000, chips=2, rng=0).drop_vars("truth")
    toa = np.linspace(0.0, float(made["toa"].max()), 3_000) // 1.5625 * 1.5625
    which = np.arange(3_000) % 3 == 0
    columns = {"x": np.where(which, 9, 200), "y": np.where(which, 70, 3), "chip": which.astype(int)}
    fires = made.copy(data={**{name: each.astype(made[name].dtype) for name, each in columns.items()},
                            "toa": toa, "tot": made["tot"].values})  # fmt: skip
    hits = xr.concat([made, fires], "hit").sortby("toa")
    path = tmp_path_factory.mktemp("noisy") / "run.tpx3"
    io.write_tpx3(hits, path)
    return path, hits


@pytest.mark.parametrize("kind", ["tpx3", "parquet", "csv"])
def test_terminal(noisy_file: Any, kind: str, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note names the pixels; with the option that it gives the clusters are those of Python, window by window."""
    monkeypatch.setattr("daskclust.cli.pixels.in_time.ROUND", 700)
    path, hits = noisy_file
    if kind != "tpx3":
        path = tmp_path / f"hits.{kind}"
        io.write_hits(hits, path)
    words = ("events", path, "--dt-max", 200, "--json")
    code, out, err = command(*words)
    assert code == 0
    assert (
        "note: 2 pixels have 50% of the hits: (200, 3) of chip 0, (9, 70) of chip 1; --max-pixel-hits 100 leaves" in err
    )
    assert json.loads(out)["hits"] == 6_000
    assert "noisy_pixels" not in json.loads(out)
    code, out, err = command(*words, "--max-pixel-hits", 100, "-o", tmp_path / "out.parquet")
    assert (code, "note" in err) == (0, False), err
    found = json.loads(out)
    quiet = mask_noisy_pixels(hits)
    assert [found[name] for name in ("hits", "noisy_pixels", "noisy_hits")] == [6_000, 2, 3_000 + _others(hits)]
    assert found["clusters"] == EventBuilder(200.0).fit(quiet).n_clusters_
    assert io.read_hits(tmp_path / "out.parquet").sizes["hit"] == quiet.sizes["hit"]
    code, out, err = command(*words[:-1], "--json", "--max-pixel-hits", 0)
    assert code == 2
    assert "max-pixel-hits" in err


@pytest.mark.parametrize("more", [(), ("--follow", "--idle", 0)])
@pytest.mark.parametrize("mask", ["auto", "table.parquet", "table.csv"])
def test_masks_in_the_terminal(noisy_file: Any, command: Any, tmp_path: Path, mask: str, more: Any) -> None:
    """Those of an earlier run are for readouts, too."""
    path, hits = noisy_file
    if mask != "auto":
        io.write_hits(noisy_pixels(hits), tmp_path / mask)
        mask = str(tmp_path / mask)
    code, out, err = command("events", path, "--dt-max", 200, "--json", "--mask-pixels", mask, *more)
    if mask == "auto" and more:
        assert code == 1
        assert "--mask-pixels auto needs a file with all its hits, got --follow" in " ".join(err.split())
        return
    assert code == 0, err
    found = json.loads(out)
    quiet = mask_noisy_pixels(hits)
    assert [found[name] for name in ("hits", "noisy_pixels", "noisy_hits")] == [6_000, 2, quiet.attrs["noisy_hits"]]
    assert found["clusters"] == EventBuilder(200.0).fit(quiet).n_clusters_


@pytest.mark.parametrize("names", [("x", "y", "chip"), ("col", "row", "chip_id"), ("Pixel_X", "Pixel_Y", "ChipID")])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_masks_are_called_as_those_of_hits(
    noisy_file: Any, command: Any, tmp_path: Path, names: Any, suffix: str
) -> None:
    path, hits = noisy_file
    pixels = noisy_pixels(hits).to_dataframe()[["x", "y", "chip"]]
    io.write_hits(xr.Dataset.from_dataframe(pixels.set_axis(list(names), axis=1)), tmp_path / f"mask{suffix}")
    code, out, err = command("events", path, "--dt-max", 200, "--json", "--mask-pixels", tmp_path / f"mask{suffix}")
    assert code == 0, err
    assert json.loads(out)["noisy_hits"] == mask_noisy_pixels(hits).attrs["noisy_hits"]


def _others(hits: xr.Dataset) -> int:
    """Return how many hits of particles are on the noisy pixels."""
    return int(noisy_pixels(hits)["hits"].sum()) - 3_000


@pytest.mark.slow
def test_terminal_on_workers(noisy_file: Any, command: Any) -> None:
    path, hits = noisy_file
    code, out, err = command("events", path, "--dt-max", 200, "--max-pixel-hits", 100, "--workers", 1, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["clusters"] == EventBuilder(200.0).fit(mask_noisy_pixels(hits)).n_clusters_
    assert (found["hits"], found["noisy_pixels"]) == (6_000, 2)


def test_quiet_files_have_no_note(tmp_path: Path, command: Any) -> None:
    for kind in ("gamma", "lead"):
        io.write_hits(datasets.timepix(20_000, kind=kind, rng=1), tmp_path / "hits.parquet")
        code, _, err = command("events", tmp_path / "hits.parquet", "--dt-max", 200)
        assert (code, "pixel" in err) == (0, False), err


def test_a_readout_has_no_limit(command: Any, noisy_file: Any) -> None:
    code, _, err = command("events", noisy_file[0], "--dt-max", 200, "--follow", "--max-pixel-hits", 5)
    assert code == 1
    assert "--max-pixel-hits 5 needs a file with all its hits, got --follow" in " ".join(err.split())
