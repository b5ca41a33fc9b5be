"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import partial, wraps
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from daskclust.cli._console import RUNNING, TO_BEGIN
from daskclust.cli._run import tell_error
from daskclust.cli._several import names_of, runs
from daskclust.io.files import READABLE
from daskclust.parameters import described


def option(panel: str, help: str, *names: str, default: str | bool = True, **more: Any) -> Any:
    """Return an option for `Annotated`; `default` says in words what is taken where the value is None."""
    if {"min", "max"} & set(more):
        more.setdefault("metavar", "N")  # else it tells the range, and fills the line
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=default, **more)


SHOWN = (".tpx3", ".t3pa", ".fcs", *READABLE, ".zarr", ".arborx")
"""Extensions of files that the explorer reads."""

# Panels of the help, in this order.
clustering, reading = partial(option, "Clustering"), partial(option, "Reading")
writing, running = partial(option, "Output"), partial(option, RUNNING)


def file_argument(help: str, *endings: str) -> Any:
    """Return the argument for the files that a command reads: of a folder, those with such endings."""
    argument: Any = typer.Argument(metavar="FILE", help=help)
    argument.endings = endings
    return argument


Box = Annotated[str | None, clustering("Period of all axes, or of each: 9,9,none.", default="the file's, or open")]
Axes = Annotated[str | None, reading("Columns of the axes, e.g. eta,phi.", default="x,y,z, those there are")]
Json = Annotated[bool, running("Print the summary as one JSON document, and nothing else.", "--json")]
Quiet = Annotated[bool, running("Show neither progress nor a summary.", "--quiet", "-q")]


def in_chunks(about: str) -> Any:
    """Return the option of how many points a chunk has."""
    words = "Points of a chunk, with --workers or --scheduler. A number is taken as it is."
    return running(words, default=f"about {about}, in whole chunks of the file", min=1)


Chunks = Annotated[int | None, in_chunks("a million")]


# ----------------------------------------------------------------------------------------- parameters of an estimator
_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([^\W\d_].*)", re.IGNORECASE)
_WITH_UNITS = ("dc", "delta_c", "delta_o", "eps", "cluster_selection_epsilon", "linking_length", "dt_max")
_TYPES = {"float": float, "int": int, "bool": bool}


class ParametersOf:
    """Options of ``Annotated[dict[str, Any], ParametersOf("clue:CLUE", "dc", ...)]``: parameters of an estimator.

    Their types, defaults, choices and words are those of its docstring. That is read from the source: an import of the
    estimator, and so of NumPy, would make help and completion slow. Those in `required` have no default here.
    """

    def __init__(self, estimator: str, *names: str, required: tuple[str, ...] = ()) -> None:
        module, name = estimator.split(":")
        source = resources.files("daskclust").joinpath(module, "estimator.py").read_text(encoding="utf-8")
        docstring = source.partition(f"\nclass {name}(")[2].split('"""')[1]
        entries = described(docstring).items()
        known = {name: _option(name, kind, " ".join(words.split()), required) for name, (kind, words) in entries}
        self.options = {name: known[name] for name in names}


class AnyParametersOf(ParametersOf):
    """Options that are parameters of several estimators, none of which must be given: None, where it is not."""

    def __init__(self, *estimators: tuple[str, ...]) -> None:
        self.options = {}
        for estimator, *names in estimators:
            for name, option in ParametersOf(estimator, *names).options.items():
                type_, info = get_args(option.annotation)
                if info.parser is lengths:
                    info.parser, info.metavar = quantity, "N[UNIT]"
                has_one = option.default is not None and option.default is not inspect.Parameter.empty
                info.rich_help_panel, info.show_default = TO_BEGIN, str(option.default) if has_one else "by the data"
                self.options[name] = option.replace(default=None, annotation=Annotated[type_ | None, info])


def _option(name: str, kind: str, words: str, required: tuple[str, ...]) -> inspect.Parameter:
    """Return the option for a parameter that numpydoc describes as ``name : kind`` and, below it, `words`."""
    kind, _, default_words = kind.partition(", default ")
    words = words.replace("`", "")
    help = re.split(r"[.:;] ", words.rstrip("."), maxsplit=1)[0]
    how: dict[str, Any] = {}
    type_: Any = _TYPES.get(kind.removesuffix(", optional"))
    if kind.startswith("{"):
        choices = ast.literal_eval(kind[: kind.index("}") + 1].replace("{", "[").replace("}", "]"))
        type_ = Literal[tuple(choices)]
        if isinstance(choices[0], int):  # typer knows choices of texts alone
            type_, help = int, f"{help}: {', '.join(map(str, choices))}"
    elif name in _WITH_UNITS:
        several = "mapping" in kind
        type_, how = float, {"parser": lengths if several else quantity, "metavar": "N|NAME" if several else "N[UNIT]"}
    elif type_ is None:  # a number, or a name
        type_, how["parser"] = str, number_or_text
        how["metavar"] = "N|NAME" if "str" in kind else "N"
    default: Any = ast.literal_eval(default_words) if default_words else None
    if name in required or not (default_words or kind.endswith(", optional")):
        default = inspect.Parameter.empty
    elif default is None:
        told = words.partition("Default: ")[2].removesuffix(".").partition(". ")[0]
        how["show_default"] = told.replace("_", "-") or "none"
        type_ |= None
    names = [f"--{name.replace('_', '-')}"] if type_ is bool else []
    option = typer.Option(*names, help=f"{help}.", rich_help_panel="Clustering", **how)
    kinds = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kinds, default=default, annotation=Annotated[type_, option])


class Quantity(float):
    """A number with the unit that the user gave, None for that of the data."""

    unit: str | None = None


def quantity(text: str) -> Quantity:
    """Return the number in a text such as ``0.2``, ``0.2us`` or ``1.5 cm``, with its unit."""
    with suppress(ValueError):
        return Quantity(text)  # first, as 1e-6 has no unit
    found = _QUANTITY.fullmatch(str(text).strip())
    if found is None:
        raise ValueError(f"it must be a number, or one with a unit, got {text!r}")
    number = Quantity(found[1])
    number.unit = found[2]
    return number


def lengths(text: str) -> Quantity | str | dict[int, Quantity]:
    """Return a quantity, one for each section as in ``120=1.3,300=1.8 cm``, or the name of a column."""
    if "=" in text:
        pairs = pairs_of("lengths of sections", text, "120=1.3,300=1.8") or {}
        wrong = next((name for name in pairs if not name.lstrip("-").isdecimal()), None)
        if wrong is not None:
            raise ValueError(f"a section must be a whole number, got {wrong!r} in {text!r}")
        return {int(name): quantity(length) for name, length in pairs.items()}
    try:
        return quantity(text)
    except ValueError:
        if not text.isidentifier():
            raise
        return text


def in_unit_of(data: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain numbers in the unit of the data, None where these have none."""
    sections = {name: in_unit_of(data, value) for name, value in given.items() if isinstance(value, dict)}
    given = {**given, **sections}
    quantities = {name: value for name, value in given.items() if isinstance(value, Quantity)}
    plain = {name: float(value) for name, value in quantities.items()}
    for name, unit in ((name, value.unit) for name, value in quantities.items() if value.unit is not None):
        from daskclust.core.data.units import known, parse, ratio

        if parse(unit) is None:
            raise ValueError(f"{name} is given in {unit!r}, which is no known unit; known: {known()}")
        by = None if data is None else ratio(unit, data)
        if by is None:
            why = "the data have no unit" if data is None else f"that cannot be converted to {data!r}, as the data have"
            raise ValueError(f"{name} is given in {unit!r}, and {why}; give a plain number, or the right unit")
        try:
            plain[name] = float(Fraction(str(plain[name])) * by)  # rounded once, as if it were given in that unit
        except (ValueError, OverflowError):
            plain[name] = math.inf  # which is refused
    return {**given, **plain}


def number_or_text(text: str) -> int | float | str:
    """Return the number that a text is, whole or not, or the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


# --------------------------------------------------------------------------------------------------- groups of options
def _show_manual(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:
        command: Any = context.command
        command.show_manual(context)
        raise typer.Exit


def help_all(panel: str | None) -> Any:
    """Return the option that shows the whole manual of a command."""
    words = "Show the whole manual: every option, columns of files, examples."
    return typer.Option("--help-all", is_eager=True, callback=_show_manual, help=words, rich_help_panel=panel)


def _with_choices(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter whose choices are in its help: as metavar they would fill the page."""
    type_, info = get_args(parameter.annotation) or (None, None)
    kinds = [each for each in (type_, *get_args(type_)) if get_origin(each) is Literal]
    if not kinds or not isinstance(info, OptionInfo):
        return parameter
    info = copy(info)
    info.help = f"{(info.help or '').rstrip('.')}: {', '.join(get_args(kinds[0]))}."
    info.metavar = "NAME"
    return parameter.replace(annotation=Annotated[type_, info])


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let parameters of a command be several options: the fields of a dataclass, or `ParametersOf`; add --help-all."""
    manual = Annotated[bool, help_all(RUNNING)]
    added = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    options = [added("help_all", default=False, annotation=manual)]
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    own: list[inspect.Parameter] = []
    for name, parameter in _parameters_of(command).items():
        kind = parameter.annotation
        if is_dataclass(kind):
            make: Any = kind
            found = _parameters_of(make)
        elif get_origin(kind) is Annotated and isinstance(kind.__metadata__[0], ParametersOf):
            make, found = dict, kind.__metadata__[0].options
        else:
            own.append(parameter)
            continue
        groups[name] = make, list(found)
        own += found.values()

    files = {each.name: _endings(each) for each in own if _endings(each) is not None}
    options += [added("called", annotation=typer.Context)] if files else []

    @wraps(command)
    def call(*, help_all: bool, called: Any = None, **flat: Any) -> None:
        status = 0
        for argument, endings in files.items():
            with closing(runs(flat, argument, endings)) as each:
                for given in each:
                    try:
                        run(dict(given))
                    except Exception as error:
                        if not flat.get("each") or isinstance(error, BrokenPipeError | typer.Exit):
                            raise  # else the other files are clustered
                        source = names_of(given[argument])
                        status = max(status, tell_error(error, called.command, flat["as_json"], source))
        if status:
            raise typer.Exit(status)
        if not files:
            run(flat)

    def run(given: dict[str, Any]) -> None:
        for name, (make, members) in groups.items():
            given[name] = make(**{each: given.pop(each) for each in members})
        command(**given)

    call.__signature__ = inspect.Signature([_with_choices(each) for each in own + options])  # type: ignore[attr-defined]
    return call


def _endings(parameter: inspect.Parameter) -> Any:
    """Return the endings of the files that an argument names, None for other parameters."""
    return next((info.endings for info in get_args(parameter.annotation)[1:] if hasattr(info, "endings")), None)


def _parameters_of(called: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    hints, kind = get_type_hints(called, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    given = inspect.signature(called).parameters.items()
    return {name: each.replace(kind=kind, annotation=hints[name]) for name, each in given}


def words_of(options: Any, group: Any) -> list[str]:
    """Return the options of a group as they are given on a command line, without those that have their default."""
    words: list[str] = []
    for each in fields(group):
        value, name = getattr(options, each.name), each.name.replace("_", "-")
        if isinstance(value, bool) and value != each.default:
            words.append(f"--{name}" if value else f"--no-{name}")
        elif value != each.default:
            words += [f"--{name}", str(value)]
    return words


# -------------------------------------------------------------------------------------------------------------- reading
def names(text: str | None) -> list[str] | None:
    """Return the names in ``x, y``."""
    return None if text is None else [name.strip() for name in text.split(",")]


def box_of(text: str | None) -> Any:
    """Return the period of all axes or of each, None for open ones, "auto" for that of the file."""
    if text is None:
        return "auto"
    from daskclust.core.data.checks import check_positive

    try:
        sides = [None if side.strip().lower() == "none" else float(side) for side in text.split(",")]
    except ValueError:
        raise ValueError(f"boxsize must be a number, or one for each axis, or none, got {text!r}") from None
    for side in sides:
        if side is not None:
            check_positive("boxsize", side)
    return sides[0] if len(sides) == 1 else sides


def pairs_of(option: str, text: str | None, example: str) -> dict[str, str] | None:
    """Return the values by name in ``a=x,b=y``; they may be empty where one of the example is."""
    if text is None:
        return None
    pairs: dict[str, str] = {}
    for pair in text.split(","):
        name, mark, value = (part.strip() for part in pair.partition("="))
        if not mark or not name or not (value or example.endswith("=")):
            raise ValueError(f"{option} must be pairs such as {example}, got {text!r}")
        if name in pairs:
            raise ValueError(f"{option} names {name!r} twice, in {text!r}")
        pairs[name] = value
    return pairs


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Options of what the columns of a file are."""

    columns: Annotated[
        str | None, reading("PosX=x,E=energy: what columns are; NAME= leaves one out.", default="by name")
    ] = None
    units: Annotated[
        str | None, reading("x=mm,energy=MeV: units, where the file tells none.", default="as --help-all says")
    ] = None

    def naming(self, field: str | None, sources: Sequence[str | Path] = (), **needs: Any) -> dict[str, Any]:
        """Return what readers take, and as `needs` the variables that options name: a name each, several or none.

        Columns of text that are no variables of the field and that no option names are left out: readers have no use
        for them.
        """
        columns: Any = names(self.columns)
        if self.columns is not None and "=" in self.columns:
            pairs = pairs_of("--columns", self.columns, "PosX=x,PosY=y,note=") or {}
            columns = {theirs: ours or None for theirs, ours in pairs.items()}
        units = pairs_of("--units", self.units, "x=mm,energy=MeV")
        given = {option: [value] if isinstance(value, str) else value for option, value in needs.items()}
        named = {option: value for option, value in given.items() if isinstance(value, list)}
        if sources and (columns is None or (isinstance(columns, dict) and "*" not in columns)):
            from daskclust.io.outputs.own_columns import text_columns

            used = {*(columns or {}), *(name for value in named.values() for name in value)}
            text = [name for source in sources for name in text_columns(source, field) if name not in used]
            columns = {**dict.fromkeys(text), **(columns or {})} if text else columns
        found = {"columns": columns, "units": units}
        return found | ({"needs": named} if named else {})


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """Options of how a file of cells is read."""

    channels: Annotated[str | None, reading("Of cells: CD3,CD4 or CD*.", default="not time")] = None
    transform: Annotated[Literal["auto", "arcsinh", "none"], reading("Of cells.")] = "auto"
    cofactor: Annotated[float | None, reading("Of arcsinh: 150; 5 for mass.", default="150")] = None
    compensate: Annotated[
        bool | None, reading("By the file's matrix.", "--compensate/--no-compensate", default="if it can be")
    ] = None
    data_set: Annotated[int | None, reading("Number in an FCS file.", default="only one", min=0)] = None

    @property
    def reading(self) -> dict[str, Any]:
        """What readers take; a cofactor alone asks for arcsinh."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        found = {each.name: given[each.name] for each in fields(self) if given[each.name] != each.default}
        if self.cofactor is not None and found.setdefault("transform", "arcsinh") == "none":
            raise ValueError("--cofactor is for --transform arcsinh; leave one of them out")
        found |= {"channels": names(self.channels)} if self.channels is not None else {}
        return found | ({"transform": None} if self.transform == "none" else {})
