"""Columns with one prefix are taken for the variables of a field, whatever the prefix, the case and the format are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daskclust import io
from daskclust.core.data.fields import FIELDS

VALUES = np.arange(5)
OWN = {"calorimeter": ("x", "y", "z", "layer", "energy", "event"), "timepix": ("x", "y", "toa", "tot", "chip")}
OWN["particles"] = ("x", "y", "z", "vx", "vy", "vz", "mass")


def to_csv(columns: dict[str, np.ndarray], path: Path) -> None:
    pd.DataFrame(columns).to_csv(path, index=False)


@given(
    field=st.sampled_from(sorted(FIELDS)), prefix=st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
    mark=st.sampled_from("_.- /"), upper=st.booleans(), chosen=st.sets(st.integers(0, 4)),
)  # fmt: skip
def test_any_prefix(field: str, prefix: str, mark: str, upper: bool, chosen: set[int]) -> None:
    known = FIELDS[field]
    names = [*known.required, *(name for k, name in enumerate(OWN[field]) if k in chosen)]
    columns = {f"{prefix}{mark}{name.upper() if upper else name}": VALUES for name in names}
    assume(not {name.lower() for name in columns} & {alias for v in known.variables for alias in v.aliases})  # as f_toa
    assert set(io.to_dataset(columns, field=field)) == set(names)


def test_naming_the_required_ones_takes_the_others_along(tmp_path: Path) -> None:
    path = tmp_path / "beam.csv"
    to_csv({f"rechit_{name}": VALUES for name in OWN["calorimeter"]} | {"genpart_x": VALUES, "run": VALUES}, path)
    found = io.read_hits(path, columns={"rechit_x": "x", "rechit_y": "y"})
    assert set(found) == {*OWN["calorimeter"], "genpart_x", "run"}
    left_out = io.read_hits(path, columns={"rechit_x": "x", "rechit_y": "y", "rechit_energy": None})
    assert "energy" not in left_out
    named = io.read_hits(path, columns={"rechit_x": "x", "rechit_y": "y", "run": "energy"})
    assert "rechit_energy" in named  # an explicit name wins


def test_two_prefixes_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    to_csv({f"{prefix}_{name}": VALUES for prefix in ("rechit", "simhit") for name in "xy"}, path)
    with pytest.raises(ValueError, match=r"prefixes 'rechit_', 'simhit_'.*columns="):
        io.read_hits(path)
    assert set(io.read_hits(path, columns={"simhit_x": "x", "simhit_y": "y"})) == {"x", "y", "rechit_x", "rechit_y"}


def test_own_names_win(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    to_csv({"x": VALUES, "y": VALUES, "hit_layer": VALUES, "hit_energy": VALUES}, path)
    assert set(io.read_hits(path)) == {"x", "y", "hit_layer", "hit_energy"}


def test_hits_with_times_of_a_prefix_are_of_timepix(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    to_csv({f"hit_{name}": VALUES for name in OWN["timepix"]}, path)
    assert io.read_hits(path).attrs["field"] == "timepix"
    to_csv({f"hit_{name}": VALUES for name in ("x", "y", "layer", "toa")}, path)
    assert io.read_hits(path).attrs["field"] == "calorimeter"
