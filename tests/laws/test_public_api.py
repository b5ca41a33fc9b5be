"""Every public name has a docstring that tells its parameters and results, and stands in the reference of the docs.

Public are the names of the package's stub, those of the modules that it names, and what the reference lists beside
them: parts of the core, for contributors. Rules are numpydoc's, of which the house keeps those in `RULES`.
"""

import importlib
import inspect
import re
import types
from collections import Counter
from pathlib import Path
from pydoc import locate

import numpy as np
import pytest
from laws.registry import fit, name_of, results_of
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import daskclust
from daskclust.systems import SYSTEMS

REFERENCE = Path(__file__).parents[2] / "docs" / "api" / "index.md"
RULES = {
    "GL08",  # a docstring
    "SS01",  # a summary
    "SS03",  # that ends with a full stop
    "PR01",  # every parameter
    "PR02",  # and no other
    "RT01",  # what is returned
    "YD01",  # or yielded
}


def names_of(module):
    """Return the public names of a module: its ``__all__``, or else the functions and classes that are its own."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == module.__name__
    ]


def public_names():
    modules = {name: getattr(daskclust, name) for name in daskclust.__all__}
    names = [f"daskclust.{name}" for name, value in modules.items() if not isinstance(value, types.ModuleType)]
    modules = {name: value for name, value in modules.items() if isinstance(value, types.ModuleType)}
    modules["core.hierarchy"] = importlib.import_module("daskclust.core.hierarchy")
    return names + [f"daskclust.{key}.{name}" for key, module in modules.items() for name in names_of(module)]


def listed_names():
    """Return the names in the tables of the reference, and those of constants, which it describes itself."""
    lines = REFERENCE.read_text().splitlines()
    entries = [line.strip() for line in lines if re.fullmatch(r" +daskclust\.[\w.]+", line)]
    return entries + constants()


def constants():
    return re.findall(r"^\.\. py:data:: (daskclust\.[\w.]+)$", REFERENCE.read_text(), flags=re.M)


def with_methods(name):
    """Return a name, and if it is a class, those of its own public methods and properties."""
    found = locate(name)
    if not inspect.isclass(found):
        return [name]
    kinds = (types.FunctionType, property, classmethod, staticmethod)
    public = ((key, value) for key, value in vars(found).items() if not key.startswith("_"))
    own = (key for key, value in public if isinstance(value, kinds) or inspect.isroutine(value))
    return [name, *(f"{name}.{key}" for key in own)]


def complaints(name):
    """Return what numpydoc misses in the docstring of a name."""
    found = locate(name)
    errors = [(code, text) for code, text in validate(name)["errors"] if code in RULES]
    if inspect.isclass(found) and getattr(found, "_is_protocol", False):
        errors = [each for each in errors if each[0] != "PR01"]  # nobody calls it
    if fields := getattr(found, "_fields", ()):  # a named tuple: its fields are attributes
        errors = [each for each in errors if each[0] != "PR01"]
        missing = set(fields) - {name for name, *_ in NumpyDocString(inspect.getdoc(found))["Attributes"]}
        errors += [("fields", f"{sorted(missing)} not documented")] if missing else []
    return [f"{name}: {code} {text}" for code, text in errors]


def undocumented_results(fitted):
    entries = NumpyDocString(inspect.getdoc(type(fitted)))["Attributes"]
    told = {name.strip() for entry in entries for name in entry.name.split(",")}
    return sorted(results_of(fitted) - told)


def test_every_public_name_is_in_the_reference():
    assert sorted(set(public_names()) - set(listed_names())) == []


def test_every_name_in_the_reference_exists_and_is_there_once():
    listed = listed_names()
    assert sorted({name for name in listed if listed.count(name) > 1}) == []
    assert [name for name in listed if locate(name) is None] == []
    assert locate("daskclust.metrics.impurity") is None
    assert [name for name in constants() if callable(locate(name))] == []


def test_docstrings_tell_every_parameter_and_result():
    documented = [name for name in listed_names() if name not in constants()]
    names = [each for name in documented for each in with_methods(name)]
    assert len(names) > len(documented) > 100
    assert [text for name in names for text in complaints(name)] == []


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=str)
def test_results_of_estimators_are_documented(system):
    name = name_of(system, system.runs[0])
    fitted = fit(name, system.sample(60, system.runs[0], np.float64))
    assert len(results_of(fitted)) > 1
    assert undocumented_results(fitted) == []


def test_a_class_name_means_one_thing():
    """But for what two compilers of CUDA kernels each have a version of."""
    package = Path(daskclust.__file__).parent
    names = Counter(
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"^ *class (\w+)", path.read_text(), re.MULTILINE)
        if path.name != "cuda_mlir.py"
    )
    assert [name for name, count in names.items() if count > 1] == []
