"""The page of transcripts: its commands still print what it shows, but for times and what the machine is."""

import importlib.util
import re
from pathlib import Path

import pytest
from cases.lanes import in_long_lane

ROOT = Path(__file__).resolve().parents[2]
OF_THE_MACHINE = {
    "daskclust clue --help": "More options, columns of files, examples: daskclust clue --help-all",
    "daskclust info": "processor",
    "daskclust warm clue": "systems",
    "daskclust explore hits.parquet --no-browser": "exploring hits.parquet at http://localhost:",
}
"""Lines whose output depends on the machine or on typer's version, and what it has anyway."""
_TIMES = re.compile(r"second|compiling|the time is an estimate|distributed")


@pytest.fixture(scope="module")
def transcripts():
    """Return the script that makes the page."""
    spec = importlib.util.spec_from_file_location("transcripts", ROOT / "docs" / "transcripts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(transcripts, tmp_path_factory):
    """Return a folder with the sample files."""
    folder = tmp_path_factory.mktemp("samples")
    transcripts.make_samples(folder)
    return folder


def blocks():
    """Return what the page shows for each line."""
    page = (ROOT / "docs" / "howto" / "transcripts.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", page, flags=re.M))


def without_times(text):
    """Return the words of lines that tell no time: the width of a table depends on it."""
    lines = [re.sub(r"[\s\u2500-\u257f]+", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not _TIMES.search(line)]


def test_the_page_has_every_command(transcripts):
    from daskclust.cli import app

    shown = blocks()
    assert list(shown) == [line for lines in transcripts.SECTIONS.values() for line in lines]
    names = {command.callback.__name__ for command in app.registered_commands} - {"manual"}
    assert {line.split()[1] for line in shown if line.startswith("daskclust")} == names


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_commands_print_what_the_page_shows(transcripts, folder):
    """In the long lane all of them, else the first one of each section."""
    wrong, page = {}, blocks()
    lines = in_long_lane(list(page), otherwise=[lines[0] for lines in transcripts.SECTIONS.values()])
    for line in lines:
        text = page[line]
        if line == "daskclust demo":
            continue  # has a test of its own
        found = transcripts.shown(line, folder)
        if line in OF_THE_MACHINE:
            assert OF_THE_MACHINE[line] in found
            continue
        if "--workers" in line:  # Dask may add words of its own on a busy machine
            found = "\n".join(each for each in found.splitlines() if each in text.splitlines() or "\u2502" in each)
        if without_times(found) != without_times(text):
            wrong[line] = found
    assert wrong == {}
