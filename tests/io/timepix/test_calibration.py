"""Energy calibration and timewalk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pint
import pytest
import xarray as xr
from cases.clue import raise_if_dask_computes
from hypothesis import given
from hypothesis import strategies as st

from daskclust.io import (
    Calibration,
    CalibrationTable,
    calibrate,
    correct_timewalk,
    open_pixet,
    open_tpx3,
    read_calibration,
    write_clog,
    write_tpx3,
)


def matrices(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return plausible coefficients, different for each pixel."""
    rng = np.random.default_rng(seed)
    ends = {"a": (1.0, 3.0), "b": (10.0, 60.0), "c": (20.0, 300.0), "t": (-2.0, 2.0)}
    return {name: rng.uniform(low, high, (256, 256)) for name, (low, high) in ends.items()}


def hits(n: int = 1000, seed: int = 1) -> xr.Dataset:
    """Return hits on four chips, with energies that they had."""
    rng = np.random.default_rng(seed)
    return xr.Dataset(
        {
            **{axis: ("hit", rng.integers(0, 256, n).astype(np.uint16), {"units": "pixel"}) for axis in "xy"},
            "toa": ("hit", np.sort(rng.integers(0, 2000, n)) * 1.5625, {"units": "ns"}),
            "chip": ("hit", rng.integers(0, 4, n).astype(np.uint8)),
            "true": ("hit", rng.uniform(4, 200, n)),
        },
        attrs={"field": "timepix", "layout": "chips"},
    )


def with_tot(ds: xr.Dataset, coefficients: dict[int, dict[str, Any]], unit: float = 1.0) -> xr.Dataset:
    """Return hits with the ToT of their energy: a*E + b - c/(E - t), hit by hit."""
    tot = []
    for x, y, chip, energy in zip(*(ds[name].values for name in ("x", "y", "chip", "true")), strict=True):
        a, b, c, t = (coefficients[chip][name][y, x] for name in "abct")
        tot.append((a * energy + b - c / (energy - t)) * unit)
    return ds.assign(tot=("hit", np.array(tot, np.float64), {"units": "ns"}))


def four_chips() -> tuple[xr.Dataset, dict[int, Calibration]]:
    """Return hits with ToT on four chips, and the calibration of each."""
    coefficients = {chip: matrices(chip) for chip in range(4)}
    return with_tot(hits(), coefficients), {chip: Calibration(**m) for chip, m in coefficients.items()}


# Energy


def table(seed: int = 0, count: int = 7) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the ToT of each pixel at some energies: a curve of its own, at rising energies."""
    energies = np.sort(np.random.default_rng(seed).uniform(3, 200, count))
    m = matrices(seed)
    return np.stack([m["a"] * e + m["b"] - m["c"] / (e - m["t"]) for e in energies]), energies


@given(seed=st.integers(0, 99), count=st.integers(2, 20), chunks=st.none() | st.integers(1, 400))
def test_energies_of_a_table_are_those_of_numpy(seed: int, count: int, chunks: int | None) -> None:
    tot, energies = table(seed, count)
    tot[:, 5:9] = np.nan
    ds = hits(300, seed).drop_vars("chip")
    x, y, rng = ds["x"].values, ds["y"].values, np.random.default_rng(seed)
    given_tot = np.where(rng.random(300) < 0.2, tot[rng.integers(0, count, 300), y, x], rng.uniform(0, 700, 300))
    expected = []
    for column, row, value in zip(x, y, np.nan_to_num(given_tot, nan=50.0), strict=True):
        of_pixel = tot[:, row, column]
        end = energies[-1] + (value - of_pixel[-1]) * np.diff(energies)[-1] / np.diff(of_pixel)[-1]
        expected.append(end if value > of_pixel[-1] else np.interp(value, of_pixel, energies, left=np.nan))
    expected = np.where((y >= 5) & (y < 9), np.nan, expected)
    ds = ds.assign(tot=("hit", np.nan_to_num(given_tot, nan=50.0), {"units": "ns"}))
    found = calibrate(ds if chunks is None else ds.chunk(hit=chunks), CalibrationTable(tot, energies))
    np.testing.assert_allclose(found["energy"].values, expected, rtol=1e-6)
    if chunks is None:
        assert found.attrs["n_uncalibrated"] == np.isnan(expected).sum()


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    tot, energies = table()
    np.savez(tmp_path / "table.npz", tot=tot, energies=energies)
    read = read_calibration((tmp_path / "table.npz").rename(tmp_path / "TABLE.NPZ"))
    assert read.energy([3], [4], tot[2:3, 4, 3]) == pytest.approx(energies[2:3])
    np.savez(tmp_path / "other.npz", tot=tot)
    with pytest.raises(ValueError, match=r"other.npz has no array 'energies'; it has 'tot'"):
        read_calibration(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tot, e: (tot, e[::-1]), "energies must be two or more that rise"),
        (
            lambda tot, e: (tot[:3], e),
            r"tot has shape \(3, 256, 256\), expected a matrix of a chip for each of 7 energies",
        ),
        (lambda tot, e: (tot[:, :9], e), r"a matrix of tot has shape \(9, 256\)"),
        (lambda tot, e: (tot[::-1], e), r"tot of pixel \(0, 0\) does not rise with the energy"),
    ],
)
def test_tables_that_cannot_be_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CalibrationTable(*change(*table()))


@pytest.mark.parametrize(("tot_unit", "unit"), [("ns", 1.0), ("tick", 25.0)])
@pytest.mark.parametrize("by_chip", [False, True])
def test_energy_is_the_inverse_of_tot(tot_unit: Any, unit: float, by_chip: bool) -> None:
    coefficients = {chip: matrices(chip if by_chip else 0) for chip in range(4)}
    ds = with_tot(hits(), coefficients, unit)
    calibrations = {chip: Calibration(**m) for chip, m in coefficients.items()}
    result = calibrate(ds, calibrations if by_chip else calibrations[0], tot_unit=tot_unit)
    np.testing.assert_allclose(result["energy"], ds["true"], rtol=2e-7)
    assert result["energy"].dtype == np.float32
    assert result["energy"].attrs["units"] == "keV"
    assert (result.attrs["n_uncalibrated"], result.attrs["n_negative_energy"]) == (0, 0)
    assert "energy" not in ds
    assert "n_uncalibrated" not in ds.attrs


@pytest.mark.parametrize("gap", [0, 3])
def test_quad(gap: int) -> None:
    """Pixels of a quad have the coefficients of the chips' own pixels."""
    ds, calibrations = four_chips()
    x, y, chip = (ds[name].values.astype(int) for name in ("x", "y", "chip"))
    far = 511 + gap
    common = ds.assign(
        x=("hit", np.choose(chip, [x + 256 + gap, far - x, 255 - x, x]).astype(np.uint16)),
        y=("hit", np.choose(chip, [y, far - y, far - y, y]).astype(np.uint16)),
    ).assign_attrs(layout="quad", gap=gap)
    expected = calibrate(ds, calibrations)["energy"]
    np.testing.assert_array_equal(calibrate(common, calibrations)["energy"], expected)
    with pytest.raises(ValueError, match=r"a hit of chip \d lies at pixel .* check ds.attrs\['layout'\]"):
        calibrate(common.assign_attrs(gap=gap + 1), calibrations)
    with pytest.raises(ValueError, match=r"a hit of chip \d lies at pixel"):
        calibrate(common.assign_attrs(layout="chips"), calibrations)
    with pytest.raises(ValueError, match=r"a quad has the chips 0 to 3, got 4; check ds.attrs\['layout'\]"):
        calibrate(common.assign(chip=common["chip"] + 1), calibrations)
    with pytest.raises(ValueError, match="needs the variable 'chip'"):
        calibrate(common.drop_vars("chip"), calibrations)


def test_bad_pixels_are_nan_and_counted() -> None:
    m = matrices()
    m["a"][0, 0] = 0
    m["c"][0, 1] = np.nan
    m["a"][0, 2] = np.inf
    ds = xr.Dataset(
        {"x": ("hit", [0, 1, 2, 3, 3]), "y": ("hit", [0] * 5), "tot": ("hit", [50.0, 50, 50, 50, -2000])},
        attrs={"layout": "chips"},
    )
    result = calibrate(ds, Calibration(**m))
    np.testing.assert_array_equal(np.isnan(result["energy"]), [True, True, True, False, False])
    assert result.attrs["n_uncalibrated"] == 3
    assert result.attrs["n_negative_energy"] == int((result["energy"] < 0).sum())


@pytest.mark.parametrize("names", [["x", "y", "toa", "chip", "true", "tot"], ["tot"]])
@pytest.mark.parametrize("chunks", [1000, 300, (1, 0, 999)])
def test_calibration_is_lazy(chunks: Any, names: list[str]) -> None:
    """Also where other variables are in memory."""
    ds, calibrations = four_chips()
    with raise_if_dask_computes():
        lazy = calibrate(ds.assign({name: ds[name].chunk(hit=chunks) for name in names}), calibrations)
        walked = correct_timewalk(lazy, {"a": 20.0, "e0": 1.0})
    assert lazy["energy"].data.name.startswith("daskclust-io-calibrate-")
    assert lazy["energy"].chunks == ds.chunk(hit=chunks)["x"].chunks
    assert "n_uncalibrated" not in lazy.attrs
    expected = calibrate(ds, calibrations)
    np.testing.assert_array_equal(lazy["energy"].compute(), expected["energy"])
    again = np.sort(walked["toa"].compute())
    np.testing.assert_array_equal(again, correct_timewalk(expected, {"a": 20.0, "e0": 1.0})["toa"])


def test_no_hits() -> None:
    ds = with_tot(hits(0), {})
    assert calibrate(ds, Calibration(**matrices()))["energy"].dtype == np.float32
    assert correct_timewalk(ds, [[1.0, 2.0]], by="tot").sizes["hit"] == 0


# Files


def write_matrices(folder: Path) -> dict[str, Any]:
    """Write four files."""
    values = matrices()
    for name, matrix in values.items():
        np.savetxt(folder / f"{name}.txt", matrix)
    return values


def test_files(tmp_path: Path) -> None:
    values, before = write_matrices(tmp_path), ""
    for prefix in ("", "calib", "Calib_"):
        files = [tmp_path / f"{prefix}{name}.txt" for name in "abct"]
        for name, file in zip("abct", files, strict=True):
            (tmp_path / f"{before}{name}.txt").rename(file)
        before = prefix
        for paths in ([tmp_path], files):
            calibration = read_calibration(*paths)
            for name, matrix in values.items():
                np.testing.assert_array_equal(getattr(calibration, name), matrix)


def test_wrong_matrix_files(tmp_path: Path) -> None:
    write_matrices(tmp_path)
    b = tmp_path / "b.txt"
    good = b.read_text()
    lines = good.splitlines()
    for text, message in {
        "\n".join(lines[:255]): r"b\.txt has shape \(255, 256\), expected \(256, 256\)",
        "\n".join([*lines[:9], "1 2 3", *lines[10:]]): r"b\.txt, line 10: expected 256 fields .* found 3",
    }.items():
        b.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_calibration(tmp_path)
    b.unlink()
    with pytest.raises(FileNotFoundError, match=r"has no b\.txt or calibb\.txt; it has 'a\.txt', 'c\.txt', 't\.txt'"):
        read_calibration(tmp_path)
    b.write_text(good)
    (tmp_path / "calibb.txt").write_text(good)
    with pytest.raises(ValueError, match=r"has b\.txt and calibb\.txt, which could both be matrix b"):
        read_calibration(tmp_path)


# Timewalk


def test_table_is_interpolated_and_held_at_its_ends() -> None:
    energy = [1.0, 5.0, 10.0, 15.0, 20.0, 90.0, np.nan]
    ds = xr.Dataset({"toa": ("hit", 1000.0 * np.arange(7)), "energy": ("hit", energy)})
    for by in ("energy", "tot"):
        result = correct_timewalk(ds.rename(energy=by), [[5, 30], [15, 10], [20, 4]], by=by)  # type: ignore[arg-type]
        np.testing.assert_array_equal(result["toa"] - ds["toa"], [-30, -30, -20, -10, -4, -4, 0])
        assert result.attrs["n_uncorrected"] == 1


def test_parameters() -> None:
    energy = np.array([2.0, 3.0, 4.0, 6.0, 102.0, -1.0])
    ds = xr.Dataset({"toa": ("hit", 1000.0 * np.arange(6)), "energy": ("hit", energy)})
    result = correct_timewalk(ds, {"a": 8.0, "e0": 2.0, "b": 2.0, "c": 0.5})
    np.testing.assert_allclose(result["toa"] - ds["toa"], [0, -8.5, -2.5, -1.0, -0.5008, 0], atol=1e-9)
    assert result.attrs["n_uncorrected"] == 2
    hyperbola = correct_timewalk(ds, {"a": 8.0, "e0": 1.0})
    np.testing.assert_allclose(hyperbola["toa"][:4] - ds["toa"][:4], [-8, -4, -8 / 3, -1.6])


@given(
    toa=st.lists(st.integers(0, 60), max_size=30).map(sorted),
    energies=st.lists(st.sampled_from([1.0, 2.0, 3.0, np.nan]), min_size=30, max_size=30),
)
def test_order_after_the_correction(toa: list[int], energies: list[float]) -> None:
    n = len(toa)
    delay = {1.0: 20.0, 2.0: 10.0, 3.0: 0.0}
    columns = {"toa": np.array(toa, float), "energy": np.array(energies[:n], float), "label": np.arange(n)}
    ds = xr.Dataset({name: ("hit", values) for name, values in columns.items()})
    result = correct_timewalk(ds, [[e, d] for e, d in delay.items()])
    expected = sorted((toa[k] - delay.get(energies[k], 0.0), k) for k in range(n))
    assert list(zip(result["toa"].values.tolist(), result["label"].values.tolist(), strict=True)) == expected


def test_quantities_count_as_units_in_attributes(tmp_path: Path) -> None:
    ds = xr.Dataset({
        "x": ("hit", [1, 2]), "y": ("hit", [3, 4]), "toa": ("hit", [25.0, 50.0]), "tot": ("hit", [100.0, 2500.0]),
        "label": ("hit", [0, 0]),
    })  # fmt: skip
    us = pint.UnitRegistry().us
    carried = ds.assign({name: ("hit", ds[name].values / 1000 * us) for name in ("toa", "tot")})
    calibration = Calibration(**matrices())
    np.testing.assert_allclose(calibrate(carried, calibration)["energy"], calibrate(ds, calibration)["energy"])
    table = np.array([[0.0, 5.0], [5000.0, 0.0]])
    corrected = [correct_timewalk(each, table, by="tot")["toa"] for each in (carried, ds)]
    np.testing.assert_allclose(*corrected)
    write_tpx3(carried, tmp_path / "a.tpx3")
    write_clog(carried, tmp_path / "a.clog", value="tot")
    for found in (open_tpx3(tmp_path / "a.tpx3"), open_pixet(tmp_path / "a.clog", value="tot")):
        np.testing.assert_allclose(found["toa"], ds["toa"])
        np.testing.assert_allclose(found["tot"], ds["tot"])
