"""A default is one: what an estimator takes unasked, ``ds.clust``, the terminal and the explorer take, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import typer
import xarray as xr
from cases.explorer import DATA

from daskclust.accessor._hca import cut_of
from daskclust.cli import app
from daskclust.cli._job import _DEFAULTS
from daskclust.cli._options import box_of
from daskclust.systems import SYSTEMS as ALL

SYSTEMS = {name: system for name, system in ALL.items() if system.explorer_at}
WITHOUT_EFFECT = {"metric_params", "algorithm", "leaf_size", "p", "n_jobs"}  # scikit-learn's, of DBSCAN
SPHERE = {"metric", "units"}  # the explorer has planes and boxes alone, a terminal --units of columns, too
ASKED = {("dbscan", "eps"), ("hca", "threshold")}  # a terminal demands them: there is no one scale for all files
FROM_DATA = {  # what the explorer has from the data: lengths, densities and sizes, which sliders change
    *("dc", "rhoc", "delta_c", "delta_o", "eps", "linking_length", "b", "dt_max"),
    *("threshold", "apriori", "cut", "n_clusters", "height", "min_size", "max_pixel_hits"),
    *("by", "channels"),
    *("min_cluster_size", "cluster_selection_epsilon"),
}
FOLLOWS = {("hdbscan", "min_samples")}  # by default another parameter, which "what next" tells in numbers
# What None, or a text, of an option or an argument means, where it is not the value itself.
MEANT: dict[str, Callable[[Any], Any]] = {
    "boxsize": lambda text: box_of(text) if text is None else text,
    "n_clusters": lambda number: cut_of(number, None, 1, 9)["n_clusters"],
    "order": lambda order: order or "height",  # by the file: "groups" for one of gmhclust
    "apriori": lambda text: ... if text is None else text,
    "min_size": float,
}


def of_function(function: Any) -> dict[str, Any]:
    """Return the defaults of a function's parameters; those without any are left out."""
    parameters = inspect.signature(function).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not inspect.Parameter.empty}


def of_command(name: str) -> dict[str, Any]:
    """Return the defaults of a command's options."""
    command: Any = typer.main.get_command(app)
    return {each.name: each.default for each in command.commands[name].params if not each.required}


def of_explorer(name: str) -> dict[str, Any]:
    return {each.name: each.default for each in SYSTEMS[name].explorer(DATA[name]()).parameters}


def effective(defaults: dict[str, Any]) -> dict[str, Any]:
    return {name: MEANT.get(name, lambda value: value)(value) for name, value in defaults.items()}


@pytest.mark.parametrize("name", SYSTEMS)
def test_defaults_are_one(name: str) -> None:
    estimator = SYSTEMS[name].estimator
    wanted = effective({**of_function(estimator.fit), **of_function(estimator)})
    method = effective(of_function(getattr(xr.Dataset().clust, name)))
    # columns of ``fit``; the others take names of variables
    columns = {"y", "layer", "event", "section", "chip", "frame", "sample_weight"}
    names = wanted.keys() - WITHOUT_EFFECT - columns
    assert {key: method[key] for key in names} == {key: wanted[key] for key in names}
    terminal = effective(of_command(name))
    options = (names | method.keys()) & terminal.keys() - {"layer", "event", "section", "weight"} - SPHERE
    assert {key: terminal[key] for key in options} == {key: (wanted | method)[key] for key in options}
    assert {key for key in names - options if (name, key) not in ASKED} <= {"coordinates", "partition"} | SPHERE
    explorer = effective(of_explorer(name))
    follows = {key for system, key in FOLLOWS if system == name}
    shown = explorer.keys() - FROM_DATA - follows
    assert {key: explorer[key] for key in shown} == {key: wanted[key] for key in shown}
    assert all(wanted[key] == _DEFAULTS[key] for key in wanted.keys() & _DEFAULTS.keys() - follows), (
        "what next: leaves out"
    )
    assert explorer.keys() - {"cut", "by", "channels"} <= of_command("explore").keys()


def test_defaults_of_showers_are_one() -> None:
    estimator, method = ALL["showers"].estimator, of_function(xr.Dataset().clust.showers)
    assert of_function(estimator).items() <= method.items()


def test_each_exception_is_one() -> None:
    """Names that no system has are left from before."""
    systems = {name: of_function(each.estimator) | of_explorer(name) for name, each in SYSTEMS.items()}
    every = {parameter for parameters in systems.values() for parameter in parameters}
    required = {name for each in SYSTEMS.values() for name in inspect.signature(each.estimator).parameters}
    assert every | required >= FROM_DATA | WITHOUT_EFFECT | SPHERE
    assert all(systems[name][parameter] is not None for name, parameter in FOLLOWS)
    assert all(parameter in systems[name] and parameter not in of_command(name) for name, parameter in ASKED)
