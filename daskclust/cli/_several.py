"""Inputs and outputs of a command: several inputs in one run or one for each, pipes, and what is refused."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from daskclust.cli._console import console
from daskclust.io.files import HDF5, MAGIC, check_file, files_of, numeric_order, split_member
from daskclust.io.replacing import check_replaced, clash, place_of

PIPE = "-"
OPTIONS = {"output": "-o", "table": "--table", "merges_output": "--merges"}
"""Options of outputs, by the names of their parameters."""
_PLACE = "{}"  # in the name of an output, where the name of the input goes
_FORMAT = ".parquet"  # of outputs in a folder
_PIPES = "daskclust-pipe-"  # begins the names of folders that have what goes through pipes


def runs(given: Mapping[str, Any], argument: str, endings: Sequence[str]) -> Generator[dict[str, Any]]:
    """Yield the arguments of each run of a command: one for all files that are given, or one for each.

    What is piped in is written to a file first; what is to be piped out is read from one after the run.
    """
    is_each, paths = given.get("each", False), [str(path) for path in given[argument]]
    outputs = {name: str(given[name]) for name in OPTIONS if given.get(name) is not None}
    with ExitStack() as stack:
        piped_out = [name for name, path in outputs.items() if path == PIPE and name != "merges_output"]
        if PIPE in (*paths, *outputs.values()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix=_PIPES)))
            _check_pipes(paths, [OPTIONS[name] for name in piped_out], given)
            paths = [_piped_in(folder)] if PIPE in paths else paths
            outputs |= {name: str(folder / "stdout.csv") for name in piped_out}
        paths = paths if any("://" in path for path in paths) else _inputs(paths, endings)
        if piped_out:
            console.stderr = True  # the summary
            stack.callback(setattr, console, "stderr", False)
        named = [{name: _for_each(path, name, outputs[name]) for name in outputs} for path in paths if is_each]
        _check_apart(paths, named)
        kind = type(given[argument][0])
        for files, targets in zip([[path] for path in paths], named, strict=True) if is_each else [(paths, outputs)]:
            made = {name: Path(target) for name, target in targets.items()}
            yield {**given, **made, argument: [kind(file) for file in files]}
        sys.stdout.flush()
        for name in piped_out:  # after the run, if it had no error
            with open(outputs[name], "rb") as stream:
                shutil.copyfileobj(stream, sys.stdout.buffer)


def shown(path: str | Path) -> str:
    """Return the name of a file for the user, who has none for what goes through a pipe."""
    return PIPE if Path(path).parent.name.startswith(_PIPES) else str(path)


def names_of(paths: Sequence[str | Path]) -> str:
    """Return the name of a file, or how many there are."""
    first, last = shown(paths[0]), shown(paths[-1])
    return first if len(paths) == 1 else f"{len(paths)} files, {first} to {os.path.basename(last)}"


def _inputs(paths: Sequence[str], endings: Sequence[str]) -> list[str]:
    """Return the files that are given, in the order of their names; those of a snapshot once."""
    if len(paths) == 1 and files_of(paths[0], endings) is None:
        return list(paths)
    found, known = [], set[str]()
    for path in sorted(files_of(paths, endings) or [], key=numeric_order):
        if path in known:
            continue
        found.append(path)
        if path.lower().endswith(HDF5):
            from daskclust.io.particles.snapshot import files_of_snapshot

            known.update(files_of_snapshot(path))
    return found


# ---------------------------------------------------------------------------------------------------------------- pipes
def _check_pipes(paths: Sequence[str], piped_out: Sequence[str], given: Mapping[str, Any]) -> None:
    if PIPE in paths and len(paths) > 1:
        raise ValueError(f"- is what is piped in, which is read alone, got {' '.join(paths)}; write it to a file first")
    if PIPE in paths and sys.stdin.isatty():
        raise ValueError("- is what is piped in, and nothing is: cat hits.csv | daskclust clue - ...")
    if len(piped_out) > 1:
        raise ValueError(f"{' and '.join(piped_out)} cannot both be -; write one of them to a file")
    for option in ("each", "as_json"):
        if piped_out and given.get(option):
            name = option.removeprefix("as_")
            raise ValueError(
                f"{piped_out[0]} - prints rows, and --{name} prints more than these; leave one of them out"
            )


def _piped_in(folder: Path) -> str:
    """Write what is piped in to a file, whose ending tells its format, and return its name."""
    stream = sys.stdin.buffer
    head = stream.read(8)
    path = folder / f"stdin{next((ending for mark, ending in MAGIC.items() if head.startswith(mark)), '.csv')}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return str(path)


# ----------------------------------------------------------------------------------------------------- outputs of each
def _for_each(path: str, name: str, output: str) -> str:
    """Return the output for one input: in a folder, or with the name of the input in its own."""
    stem = Path(path).stem
    if output == PIPE:  # merges are printed
        return output
    if _PLACE in output:
        return output.replace(_PLACE, stem)
    if os.path.isdir(output) and not output.endswith(".zarr"):
        return os.path.join(output, stem + _FORMAT)
    raise ValueError(
        f"{OPTIONS[name]} {output} would be the output of every input; with --each give a folder that is there, or a "
        f"name with {_PLACE} for that of the input, as labels_{_PLACE}.csv"
    )


def _check_apart(paths: Sequence[str], named: Sequence[Mapping[str, str]]) -> None:
    """Refuse inputs of which two would have the same output."""
    inputs: dict[str, str] = {}
    for path, targets in zip(paths, named, strict=False):
        for target in targets.values():
            if target != PIPE and inputs.setdefault(target, path) != path:
                raise ValueError(
                    f"{inputs[target]} and {path} would both be written to {target}; run them one by one, as their "
                    "names differ in folder or ending alone"
                )


# ------------------------------------------------------------------------------------------------- what is refused
def check_source(source: str | Path) -> None:
    """Refuse, before libraries are imported, a file that is not there, or is none; folders are left to readers."""
    name, _ = split_member(str(source))
    if not name.startswith(("tcp://", "udp://")) and not os.path.isdir(name):
        check_file(name)


def check_outputs(sources: Sequence[str | Path], outputs: Mapping[str, Path], suffixes: Sequence[str]) -> None:
    """Refuse, before any work, outputs by option that are no files of a kind, the input, or one and the same."""
    for option, path in outputs.items():
        if path.suffix not in suffixes:
            raise ValueError(f"{option} must be a file with one of {', '.join(suffixes)}, got {path}")
        place, _ = place_of(path)
        folder = place.parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} to write {place.name} to; make it first")
        wrong = next(filter(None, (clash(path, source) for source in sources)), None)
        if wrong:
            raise ValueError(f"{option} {path} {wrong}; write to another file")
        if path.is_dir() and path.suffix == ".zarr":
            check_replaced(path)
        elif path.is_dir():
            raise IsADirectoryError(f"{path} is a folder, not a file to write to; name a file in it")
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"nothing may be written to the folder {folder}; write to another one")
    if len({os.path.realpath(path) for path in outputs.values()}) < len(outputs):
        raise ValueError(f"{' and '.join(outputs)} are one file, {path}; write to different ones")
