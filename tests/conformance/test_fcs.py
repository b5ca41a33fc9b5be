"""FCS 2.0 to 3.2: the tables of the standards, in files that are written without this package."""

from __future__ import annotations

import json
import re
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from cases.files.fcs_writer import changed, fcs_file, keywords, linear, pack
from cases.lanes import some_of
from hypothesis import example, given
from hypothesis import strategies as st

from daskclust.io import open_fcs, read_cells

VERSIONS = ["2.0", "3.0", "3.1", "3.2"]
MARKS = ["/", "\\", "|", "^", "+", ".", "?", "@", ",", "*", "(", ")", "[", "]", "{", "}", "-", "#", "~", "!", "\x0c"]
MARKS += ["\x1e", "\t", "\x01", "\x7f"]
FLOATS = [[10.0, 1000.0], [200.0, 3.0]]
LITTLE, BIG = "1,2,3,4", "4,3,2,1"
TWO = [("F", 32)] * 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for files that are drawn."""
    return tmp_path_factory.mktemp("fcs")


def opened(folder: Path, content: bytes, **options: Any) -> xr.Dataset:
    """Return the cells of a file as they are."""
    path = folder / "a.fcs"
    path.write_bytes(content)
    return open_fcs(path, transform=None, compensate=False, **options)


def values(folder: Path, content: bytes, **options: Any) -> Any:
    """Return the values of a file as they are."""
    return opened(folder, content, **options)["X"].values


def floats(**given: str | None) -> Any:
    """Return the keywords of a small file of floats, some of them changed."""
    return changed(keywords(TWO, 2, LITTLE), **given)


# Numbers


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["I", "F", "D"])
def test_every_scale(tmp_path: Path, version: str, kind: str) -> None:
    """$DATATYPE, $PnE, $PnG and $PnR: each combination is a channel, and the same once more as the channel of time."""
    amplifiers = ["0,0", "0.0,0.0", "", "4,1", "4,0", " 4.0, 0.1", "4.07918,1", "2.5,10", "0,1"]
    gains, spans = [None, "", "1.0", "2.5", "10", "0", "NA"], ["1024", "1000", "65536", "262144", "0", "NA", ""]
    table = list(product(amplifiers, gains, spans))
    if kind == "I":  # a logarithm needs its range
        table = [(e, g, r) for e, g, r in table if e.strip()[:1] in ("", "0") or r not in ("", "0", "NA")]
    rows = [[0] * len(table), [513] * len(table), [0xFFFF] * len(table), [1023] * len(table)]
    stored = [(kind, {"I": 16, "F": 32, "D": 64}[kind])] * len(table)
    scales: dict[str, str | None] = {}
    for n, (e, g, r) in enumerate(table, start=1):
        scales |= {f"P{n}E": e, f"P{n}R": r, f"P{n}G": g}
    pairs = changed(keywords(stored, len(rows), LITTLE, version), **scales)
    found = values(tmp_path, fcs_file(pairs, pack(rows, stored, LITTLE), version=version))
    right = [[linear(x, kind, *scale) for x, scale in zip(row, table, strict=True)] for row in rows]
    np.testing.assert_allclose(found, right, rtol=1e-6 if kind == "F" else 1e-14)


@pytest.mark.parametrize(("kind", "bits"), [("I", 32), ("F", 32), ("D", 64)])
@pytest.mark.parametrize("name", ["Time", "TIME", "time", "Time1"])
@pytest.mark.parametrize("step", ["0.01", None, "", "unknown"])
def test_steps_of_time(tmp_path: Path, kind: str, bits: int, name: str, step: str | None) -> None:
    stored = [(kind, bits)] * 2
    pairs = changed(keywords(stored, 1, LITTLE), P1N=name, P1G="0.01" if name != "Time1" else None, TIMESTEP=step)
    ds = opened(tmp_path, fcs_file(pairs, pack([[500, 500]], stored, LITTLE)))
    is_scaled = name != "Time1" and step == "0.01"
    np.testing.assert_allclose(ds["X"], [[5.0 if is_scaled else 500.0, 500.0]])
    assert ("$TIMESTEP is 'unknown'" in "".join(ds.attrs.get("fcs_notes", []))) == (
        step == "unknown" and name != "Time1"
    )


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, list[tuple[str, int]], str, list[list[Any]]]:
    """Return a version, the types and bits of channels, an order of bytes, and events."""
    version = draw(st.sampled_from(VERSIONS))
    whole = st.tuples(st.just("I"), st.one_of(st.sampled_from([8, 10, 12, 16, 24, 32]), st.integers(1, 64)))
    even = st.tuples(st.just("I"), st.sampled_from([8, 16, 32, 64]))
    single, double = st.just(("F", 32)), st.just(("D", 64))
    kinds = [whole, even, single, double] + ([st.one_of(whole, single, double)] if version == "3.2" else [])
    stored = draw(st.lists(draw(st.sampled_from(kinds)), min_size=1, max_size=5))
    number = {
        "I": lambda bits: st.integers(0, 2 ** min(bits, 53) - 1),
        "F": lambda _: st.floats(width=32, allow_nan=False),
        "D": lambda _: st.floats(allow_nan=False),
    }
    rows = draw(st.lists(st.tuples(*(number[kind](bits) for kind, bits in stored)), min_size=1, max_size=12))
    return version, stored, draw(st.sampled_from([LITTLE, BIG])), [list(row) for row in rows]


@given(layout=layouts(), chunks=st.integers(1, 5))
@example(("3.0", [("I", 24)] * 2, BIG, [[1, 2], [3, 70000]]), 1)
@example(("2.0", [("I", 10)] * 2, BIG, [[512, 100], [1023, 700]]), 1)
@example(("3.2", [("I", 12), ("F", 32), ("D", 64)], LITTLE, [[4095, 0.5, -1.0]] * 3), 2)
def test_numbers_of_any_width(folder: Path, layout: Any, chunks: int) -> None:
    """Each version, type, width and order of bytes; lazily, chunks begin within a byte."""
    version, stored, order, rows = layout
    content = fcs_file(keywords(stored, len(rows), order, version), pack(rows, stored, order), version=version)
    found = values(folder, content)
    np.testing.assert_array_equal(found, np.array(rows, float))
    assert found.dtype == (np.float32 if {kind for kind, _ in stored} == {"F"} else np.float64)
    np.testing.assert_array_equal(values(folder, content, chunks=chunks), found)


@some_of(32, places=list(permutations("1234")), version=VERSIONS)
def test_orders_of_bytes(tmp_path: Path, version: str, places: tuple[str, ...]) -> None:
    """Before 3.1 bytes come in any order, as on a PDP-11; since then, in two."""
    order, stored, rows = ",".join(places), [("I", 32)] * 2, [[0x01020304, 7], [0xF0E0D0C0, 0]]
    content = fcs_file(keywords(stored, 2, order, version), pack(rows, stored, order), version=version)
    if version < "3.1" or order in (LITTLE, BIG):
        np.testing.assert_array_equal(values(tmp_path, content), rows)
        np.testing.assert_array_equal(values(tmp_path, content, chunks=1), rows)
    else:
        with pytest.raises(ValueError, match=rf"has \$BYTEORD '{order}'; known: 1,2,3,4"):
            opened(tmp_path, content)


@pytest.mark.parametrize("order", ["1", "1,2", "2,1", "1,2,3", "1,2,3,4,5,6,7,8", "8,7,6,5,4,3,2,1", " 1, 2, 3, 4 "])
def test_orders_of_other_lengths(tmp_path: Path, order: str) -> None:
    """As many places as a number has bytes."""
    usual, stored = LITTLE if order.strip()[0] == "1" else BIG, [("I", 16)] * 2
    pairs = changed(keywords(stored, 1, usual), BYTEORD=order)
    np.testing.assert_array_equal(values(tmp_path, fcs_file(pairs, pack([[1, 515]], stored, usual))), [[1, 515]])


@pytest.mark.parametrize(("told", "there"), [(10, 16), (14, 16), (12, 16), (20, 32)])
@pytest.mark.parametrize("order", [LITTLE, BIG])
def test_numbers_that_are_wider_than_told(tmp_path: Path, told: int, there: int, order: str) -> None:
    """Some programs write whole bytes, and the bits that count in $PnB; the length of DATA tells."""
    rows = [[512, 100], [1023, 700], [1, 2]]
    pairs = keywords([("I", told)] * 2, 3, order)
    ds = opened(tmp_path, fcs_file(pairs, pack(rows, [("I", there)] * 2, order)))
    np.testing.assert_array_equal(ds["X"], rows)
    assert "whole bytes" in ds.attrs["fcs_notes"][0]


# Keywords


MARKERS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)


@given(
    mark=st.sampled_from(MARKS),
    markers=st.lists(MARKERS, min_size=2, max_size=2),
    count=st.integers(1, 3),
    spaces=st.integers(0, 2),
    is_lower=st.booleans(),
    is_before=st.booleans(),
    data=st.data(),
)
def test_any_delimiters_and_empty_values(
    folder: Path, mark: str, markers: list[str], count: int, spaces: int, is_lower: bool, is_before: bool, data: Any
) -> None:
    """Values are empty, or have the delimiter, doubled, at any place; keywords are in any order and case."""
    edge = "" if mark == "\t" else mark * count  # spaces about a value do not count
    given = [edge + markers[0] if is_before else markers[0] + edge, f"x{markers[1]}{mark * count}x"]
    stored, rows = [("I", 16)] * 3, [[512, 100, 3]]
    pairs = changed(keywords(stored, 1, LITTLE), P1E="4,1", P2G="2", CYT="", P3S="", P1S=given[0], P2S=given[1])
    pairs = [(" " * spaces + (key.lower() if is_lower else key), value) for key, value in pairs]
    pairs = data.draw(st.permutations(changed(pairs, P1R="1024")))
    pairs = [(key, value) for key, value in pairs if (key.strip().upper(), value) != ("$P1R", "65536")]
    ds = opened(folder, fcs_file(pairs, pack(rows, stored, LITTLE), mark=mark))
    np.testing.assert_allclose(ds["X"], [[100.0, 50.0, 3.0]])
    assert ds["channel"].values.tolist() == [*given, "D3"]
    (note,) = ds.attrs["fcs_notes"]
    assert set(re.findall(r"'(.*?)'", note)) == {"$CYT", "$P3S"}


@some_of(16, mark=["/", "\\", "\x0c", "\t"], after=["", " ", "\n", "\0\0", "@", "@ ", "  garbage", "garbage@1@"])
def test_what_follows_the_last_value(tmp_path: Path, mark: str, after: str) -> None:
    """TEXT that is longer than its keywords, or has no delimiter at its end."""
    pairs = [*floats(P2S="CD8", TOT=None), ("$TOT", "2")]
    content = fcs_file(pairs, pack(FLOATS, TWO, LITTLE), mark=mark)
    end = f"$TOT{mark}2{mark}".encode()
    assert content.count(end) == 1
    padded = fcs_file([*pairs[:-1], ("$X", "x" * 20), pairs[-1]], pack(FLOATS, TWO, LITTLE), mark=mark)
    filled = end + after.replace("@", mark).encode()
    wrong = padded.replace(f"$X{mark}{'x' * 20}{mark}".encode() + end, filled.ljust(24 + len(end)))
    assert len(wrong) == len(padded)
    for each in (content, content.replace(end, end[:-1] + b" "), wrong):
        ds = opened(tmp_path, each)
        np.testing.assert_array_equal(ds["X"], FLOATS)
        assert ds["channel"].values.tolist() == ["D1", "CD8"]


def test_the_dollar_as_delimiter(tmp_path: Path) -> None:
    """It begins keywords, too, where it is doubled or not."""
    for keys, doubled in ((floats(), True), (floats(), False), ([(key[1:], value) for key, value in floats()], True)):
        content = fcs_file(keys, pack(FLOATS, TWO, LITTLE), mark="$", doubled=doubled)
        np.testing.assert_array_equal(values(tmp_path, content), FLOATS)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_in_other_letters(tmp_path: Path, encoding: str) -> None:
    content = fcs_file(floats(P1S="µ-Zähler", P2S="CD3"), pack(FLOATS, TWO, LITTLE), encoding=encoding)
    assert opened(tmp_path, content)["channel"].values.tolist() == ["µ-Zähler", "CD3"]


@some_of(12, key=["$P1E", "$P2N", "$P1G", "$BYTEORD", "$SPILLOVER", "$TOT", "$P2B", "$DATATYPE"], count=[1, 2, 3])
def test_an_empty_value_before_any_keyword(tmp_path: Path, key: str, count: int) -> None:
    """The keyword after it counts: the channel is logarithmic, has its gain, is compensated."""
    stored = [("I", 16)] * 2
    pairs = changed(keywords(stored, 1, LITTLE), P1E="4,1", P1R="1024", P2G="4", P1G="1", SPILLOVER="2,D1,D2,1,.5,0,1")
    at = [name for name, _ in pairs].index(key)
    pairs[at:at] = [(f"$P{n}S", "") for n in (1, 2, 3)][:count]
    path = tmp_path / "a.fcs"
    path.write_bytes(fcs_file(pairs, pack([[512, 100]], stored, LITTLE)))
    ds = open_fcs(path, transform=None)
    np.testing.assert_allclose(ds["X"], [[100.0, 25.0 - 50.0]])
    assert ds.attrs["fcs_notes"] == [
        "doubled delimiters are empty values of " + ", ".join(f"'$P{n}S'" for n in range(1, count + 1))
    ]


@pytest.mark.parametrize("mark", ["/", ".", ",", "-", " "])
def test_delimiters_that_are_not_doubled(tmp_path: Path, mark: str) -> None:
    """Values that have the delimiter once end where the next keyword begins, and this is said."""
    pairs = floats(P1G="2.0", FIL="home/me/a-b c.fcs", P1S="CD-8/a b.c", SPILLOVER="2,D1,D2,1,0,0,1", P2S="CD3")
    ds = opened(tmp_path, fcs_file(pairs, pack(FLOATS, TWO, LITTLE), mark=mark, doubled=False))
    np.testing.assert_array_equal(ds["X"], [[5, 1000], [100, 3]])
    assert ds["channel"].values.tolist() == ["CD-8/a b.c", "CD3"]
    assert f"values have the delimiter '{mark}', too" in ds.attrs["fcs_notes"][0]


def test_a_keyword_with_and_without_dollar(tmp_path: Path) -> None:
    """That of the standard counts, and of two the first."""
    pairs = [("P1G", "8"), *floats(P1G="2"), ("$P1G", "4"), ("P2G", "5")]
    found = values(tmp_path, fcs_file(pairs, pack(FLOATS, TWO, LITTLE)))
    np.testing.assert_allclose(found, np.array(FLOATS) / [2, 5])


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("there", [True, False])
def test_supplemental_keywords(tmp_path: Path, version: str, there: bool) -> None:
    more = [("$P1S", "CD3"), ("$P2N", "other"), ("$CYT", "S3")]
    content = fcs_file(floats(), pack(FLOATS, TWO, LITTLE), version=version, supplement=more)
    content = content if there else content[: content.rindex(b"/$P1S")] + b"PK" + bytes(40)
    ds = opened(tmp_path, content)
    np.testing.assert_array_equal(ds["X"], FLOATS)
    assert ds["channel"].values.tolist() == ["CD3" if there else "D1", "D2"]
    assert ds.attrs.get("cytometer") == ("S3" if there else None)
    assert ("$BEGINSTEXT" in "".join(ds.attrs.get("fcs_notes", []))) is not there


# Files that are not damaged


@some_of(
    36,
    version=VERSIONS,
    header=["right", "zero", "blank", "late", "after", "large"],
    text=["right", "zero", "blank", "late", "after", "large", "absent"],
)
def test_offsets_of_data(tmp_path: Path, version: str, header: str, text: str) -> None:
    """One of both places is right, or both are wrong, which is an error."""
    pairs = changed(keywords(TWO, 2, BIG, version), BEGINDATA="@first", ENDDATA="@last")
    content = fcs_file(pairs, pack(FLOATS, TWO, BIG), version=version, header=header, text=text)
    if {"right", "after"} & {header, text}:
        np.testing.assert_array_equal(values(tmp_path, content), FLOATS)
        np.testing.assert_array_equal(values(tmp_path, content, chunks=1), FLOATS)
    else:
        with pytest.raises(ValueError, match=r"a\.fcs claims 2 events .*it is cut or damaged"):
            opened(tmp_path, content)


@pytest.mark.parametrize("bits", [8, 10, 24, 32])
@pytest.mark.parametrize("order", [LITTLE, BIG])
def test_the_number_of_events_in_fcs_2(tmp_path: Path, bits: int, order: str) -> None:
    """DATA tells it where $TOT does not; since FCS 3.0 it must be there."""
    stored, rows = [("I", bits)] * 3, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    pairs = changed(keywords(stored, 3, order, "2.0"), TOT=None)
    np.testing.assert_array_equal(values(tmp_path, fcs_file(pairs, pack(rows, stored, order), version="2.0")), rows)
    with pytest.raises(ValueError, match=r"has no keyword \$TOT"):
        opened(tmp_path, fcs_file(pairs, pack(rows, stored, order), version="3.0"))


@pytest.mark.parametrize("version", VERSIONS)
def test_names_that_are_left_out(tmp_path: Path, version: str) -> None:
    content = fcs_file(floats(P1N=None, P2N=None), pack(FLOATS, TWO, LITTLE), version=version)
    if version < "3.1":
        assert opened(tmp_path, content)["channel"].values.tolist() == ["P1", "P2"]
    else:
        with pytest.raises(ValueError, match=r"claims 2 channels \(\$PAR\), and names 0 \(\$PnN\)"):
            opened(tmp_path, content)
    empty = fcs_file(floats(P1N="", P2N="B"), pack(FLOATS, TWO, LITTLE), version=version)
    assert opened(tmp_path, empty)["channel"].values.tolist() == ["P1", "B"]


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["A", "A"], ["A", "A (P2)"]),
        (["A", "B", "A", "A"], ["A", "B", "A (P3)", "A (P4)"]),
        (["", "P1"], ["P1", "P1 (P2)"]),
        (["A ", " A"], ["A", "A (P2)"]),
    ],
)
def test_names_that_are_there_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, names: list[str], unique: list[str]
) -> None:
    stored, rows = [("F", 32)] * len(names), [list(range(len(names)))]
    given = {f"P{n}N": name for n, name in enumerate(names, start=1)}
    content = fcs_file(changed(keywords(stored, 1, LITTLE), **given), pack(rows, stored, LITTLE))
    ds = opened(tmp_path, content)
    assert ds["channel"].values.tolist() == unique
    assert re.search("the same name .*get their number, too", caplog.messages[0])
    assert f"{tmp_path / 'a.fcs'}: {ds.attrs['fcs_notes'][0]}" == caplog.messages[0]
    np.testing.assert_array_equal(values(tmp_path, content, channels=unique[-1]), [[len(names) - 1]])


@pytest.mark.parametrize("place", ["1", "58", "99999", "9" * 17, "9" * 30, "NA", " ", "-5"])
def test_a_next_data_set_that_is_not_there(tmp_path: Path, place: str) -> None:
    content = fcs_file(floats(NEXTDATA=place), pack(FLOATS, TWO, LITTLE))
    np.testing.assert_array_equal(values(tmp_path, content), FLOATS)
    np.testing.assert_array_equal(read_cells(tmp_path / "a.fcs", transform=None)["X"], FLOATS)


@pytest.mark.parametrize("span", ["NA", "0", "", "inf", "1e400", "262144", "-1", "many"])
def test_the_range_of_floats_means_nothing(tmp_path: Path, span: str) -> None:
    for kind, bits in (("F", 32), ("D", 64)):
        stored = [(kind, bits)] * 2
        content = fcs_file(changed(keywords(stored, 2, LITTLE), P1R=span, P2R=span), pack(FLOATS, stored, LITTLE))
        np.testing.assert_array_equal(values(tmp_path, content), FLOATS)


@pytest.mark.parametrize(
    "name",
    [
        "TIME_MSW",
        "TIME_LSW",
        "HDR-T",
        "HDR-CE",
        "Time1",
        "TIME",
        "Time (51.20 sec.)",
        "Time-1",
        "Elapsed Time",
        "Clock",
        "FSC-A",
        "SSC-HEIGHT",
        "FS",
        "SS Lin",
        "FS INT LIN",
    ],
)
def test_clocks_and_scatter_stay_linear(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.fcs"
    path.write_bytes(fcs_file(floats(P1N=name), pack(FLOATS, TWO, LITTLE)))
    assert open_fcs(path).attrs["linear"] == [name]
    assert open_fcs(path, channels=name).attrs["linear"] == [name]


@pytest.mark.parametrize("name", ["TIM3", "Timer-Blue", "CD-time4", "FSP1", "SSEA-4", "Foxp3"])
def test_markers_whose_names_are_like_these_do_not(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.fcs"
    path.write_bytes(fcs_file(floats(P1N=name), pack(FLOATS, TWO, LITTLE)))
    assert open_fcs(path).attrs["linear"] == []


def test_files_of_others(shared_data: Path) -> None:
    """Names, and values by a reader that was written from the standard."""
    files = sorted((shared_data / "fcs").glob("*.fcs"))
    assert files
    for file in files:
        right = json.loads(file.with_suffix(".json").read_text())
        ds = open_fcs(file, transform=None, data_set=0)
        names = [name or f"P{n}" for n, name in enumerate(right["names"], start=1)]
        assert ds["channel"].values.tolist() == names, file.name
        np.testing.assert_allclose(ds["X"], right["values"], rtol=1e-14, err_msg=file.name)
