"""The systems of the registry and of the how-to pages, their runs by name, and what comes of a fit."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import dask
import numpy as np

from daskclust.systems import SYSTEMS, Run, Sample, System

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
sys.path.insert(0, str(EXAMPLES))
ENTRIES: list[System] = [
    *SYSTEMS.values(),
    *(importlib.import_module(f"{path.parent.name}.entry").ENTRY for path in sorted(EXAMPLES.glob("*/entry.py"))),
]


def name_of(system: System, run: Run) -> str:
    said = [f"{name}={value}" for name, value in run.parameters.items()]
    return " ".join([system.name, f"{run.dimensions}-d", *said, *run.columns])


RUNS = {name_of(system, run): (system, run) for system in ENTRIES for run in system.runs}
"""Each run of each system, by its name."""


def results_of(fitted: Any) -> set[str]:
    """Return the attributes of a fitted estimator that end in one underscore, and such properties of its class."""
    names = {*vars(fitted), *(name for name, _ in inspect.getmembers(type(fitted)))}
    return {name for name in names if name.endswith("_") and not name.startswith("_")}


def computed(fitted: Any) -> dict[str, Any]:
    """Return the results, in memory."""
    return dict(dask.compute({name: getattr(fitted, name) for name in sorted(results_of(fitted))})[0])


def sample_of(name: str, n: int = 150, dtype: Any = np.float64) -> Sample:
    system, run = RUNS[name]
    return system.sample(n, run, dtype)


def fit(name: str, sample: Sample, **how: Any) -> Any:
    system, run = RUNS[name]
    return system.estimator(**run.parameters).fit(sample.X, **sample.columns, **how)


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Demand the same results, to the last bit."""
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        assert np.asarray(found[name]).dtype == np.asarray(values).dtype, name
