"""Defaults are one: those of estimators, of ``ds.clust``, of the terminal and of the explorer."""

from __future__ import annotations

import inspect

import pytest
import typer
import xarray as xr

from daskclust import cli, datasets
from daskclust.cli._job import _DEFAULTS
from daskclust.systems import SYSTEMS

PROGRAM = typer.main.get_command(cli.app)
WITHOUT_EFFECT = {"metric", "metric_params", "algorithm", "leaf_size", "p", "n_jobs"}  # of scikit-learn's DBSCAN
# None, or ...: a box that the Dataset tells, a cut that is asked for, what else is given
IN_WORDS = {("fof", "linking_length"), ("fof", "boxsize"), ("dbscan", "boxsize"), ("hca", "n_clusters")}
IN_WORDS |= {("hca", "order"), ("hca", "threshold"), ("dbscan", "eps")}
BY_THE_DATA = {"dc", "rhoc", "delta_c", "delta_o", "dt_max", "eps", "linking_length", "b", "threshold", "n_clusters"}
DATA = {
    "clue": lambda: datasets.calorimeter(2, 100, rng=0),
    "events": lambda: datasets.timepix(300, rng=0),
    "dbscan": lambda: datasets.seed_spreader(300, 2, rng=0),
    "fof": lambda: datasets.cosmology_box(300, rng=0),
    "hca": lambda: datasets.cytometry(60, 3, rng=0),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_defaults_are_those_of_the_estimator(name):
    estimator = inspect.signature(SYSTEMS[name].estimator).parameters
    method = inspect.signature(getattr(xr.Dataset().clust, name)).parameters
    options = {each.name: each for each in PROGRAM.commands[name].params}
    explorer = {each.name: each for each in SYSTEMS[name].explorer(DATA[name]()).parameters}
    assert not estimator.keys() - method.keys() - WITHOUT_EFFECT
    compared = 0
    for parameter, of_estimator in estimator.items():
        default = of_estimator.default
        if parameter in method and (name, parameter) not in IN_WORDS:
            assert method[parameter].default == default, parameter
        if parameter in options and (name, parameter) not in IN_WORDS:
            option = options[parameter]
            assert option.required == (default is inspect.Parameter.empty), parameter
            if not option.required:
                assert (option.default, type(option.default)) == (default, type(default)), parameter
                compared += 1
        if parameter in explorer and parameter not in BY_THE_DATA:
            assert explorer[parameter].default == default, parameter
            compared += 1
    assert compared >= 2
    assert all(estimator[each].default == _DEFAULTS[each] for each in estimator.keys() & _DEFAULTS.keys())
    shown = {each.name: each for each in PROGRAM.commands["explore"].params}
    assert explorer.keys() - shown.keys() <= {"cut", "by", "max_pixel_hits"}
    assert all(shown[each].default is None for each in explorer.keys() & shown.keys())
