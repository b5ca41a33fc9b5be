"""Files of Advacam's Pixet program with one hit a line: ``.t3pa``."""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.data.quote import listed, quoted, repeated, short
from daskclust.io.files import check_file
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.several import takes_several
from daskclust.io.timepix.ticks import COARSE, TOT_TICK, hits_of_ticks

logger = logging.getLogger(__name__)

Rows = dict[str, npt.NDArray[np.int64]]

_NEEDED = ("Matrix Index", "ToA", "ToT", "FToA")

# What a column may hold: 256 chips of 65536 pixels; times that are far from the end of int64 in fine ticks; a fine time
# of 5 bits. ToT has 10 bits in the chip, and sums of it have more.
_LIMITS = {"Matrix Index": 1 << 24, "ToA": 1 << 48, "ToT": 1 << 32, "FToA": 32, "Index": 1 << 63, "Overflow": 1 << 32}

_CHIP = 1 << 16
_QUAD, _SINGLE = 1 << 28, 1 << 30  # steps after which ToA of AdvaPIX starts anew; that of MiniPIX does not
_LOST_FROM, _LOST_UNTIL = 0x74, 0x75


@takes_several(".t3pa")
def open_t3pa(
    path: str | os.PathLike[str], *, measurement: int | None = None, turn: int | None = None, chunks: int | None = None
) -> xr.Dataset:
    """Read hits from a ``.t3pa`` file of Advacam's Pixet program.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `read_hits`. Text, with tabs (or spaces, commas, semicolons) between the columns and
        their names in the first line: Matrix Index, ToA, ToT and FToA, perhaps Index and Overflow, in any order. Others
        are passed over.
    measurement : int, optional
        Which measurement to read, from 0, where several were appended to one file: a new one begins where Index is 0
        again or smaller, unless it is 0 in all rows. Times begin anew in each, so that None is for files with one.
    turn : int, optional
        Steps of 25 ns after which ToA starts anew. The file does not tell: by default 2**30, as of an AdvaPIX, or 2**28
        where several chips have no larger ToA, as of an AdvaPIX Quad. With a ToA of 2**30 or more, it never does.
    chunks : int, optional
        Hits per chunk of a Dataset of dask arrays. The file is read at once all the same.

    Returns
    -------
    xarray.Dataset
        Variables ``x``, ``y`` (pixel, uint16), ``toa`` (ns, float64), ``tot`` (ns, float32) and ``chip`` (uint8),
        sorted by (toa, order in the file), and in ``attrs``: ``n_rows`` and ``n_measurements`` of the whole file,
        ``n_toa_turns`` (how many times ToA started anew), ``n_unsorted`` (hits that came after a later one),
        ``n_lost_data_intervals``, their begins
        ``lost_data_toa`` and lengths ``lost_data_length`` (lists, ns), and ``n_special`` (other rows that are no hits).

    Raises
    ------
    OSError, ValueError
        Where `path` is no file or empty; for missing columns, wrong rows (with the line), and several measurements.

    Notes
    -----
    x = Matrix Index % 256, y = Matrix Index // 256 % 256, chip = Matrix Index // 65536, t = 25 * ToA - 25/16 * FToA ns
    with an FToA of 5 bits, as it includes the correction for the phase of the clock. A row whose Overflow is not 0 is
    no hit: Matrix Index 0x74 begins lost data, and 0x75 ends them and has their length for a ToA. Devices of several
    chips write the number of the chip in the place of Overflow: such rows are hits. Rows are roughly in the order of
    time: each is taken from a quarter of a turn before to three quarters after the row before it, none in a turn before
    the first. A longer time without hits loses a turn. Source: Advacam's wiki, pages File types and RawTpx3Pixel.
    """
    per_chunk = None if chunks is None else check_hits_per_chunk(chunks)
    name = os.fspath(path)
    rows = _parse(name, *_header(name))
    n_rows = rows["ToA"].size
    rows, many = _measurement(name, rows, measurement)
    hit, n_turns = _unroll(name, rows, turn)
    others = {code: rows["ToA"][~hit & (rows["Matrix Index"] == code)] for code in (_LOST_FROM, _LOST_UNTIL)}
    begins, lengths = ((each * TOT_TICK).tolist() for each in others.values())
    attrs = {
        "n_rows": n_rows, "n_measurements": many, "n_toa_turns": n_turns,
        "n_lost_data_intervals": max(len(begins), len(lengths)), "lost_data_toa": begins, "lost_data_length": lengths,
        "n_special": int(np.count_nonzero(~hit)) - len(begins) - len(lengths),
    }  # fmt: skip
    rows = {column: values[hit] for column, values in rows.items()}
    index = rows["Matrix Index"]
    columns = {"x": index & 0xFF, "y": (index >> 8) & 0xFF, "chip": index >> 16}
    ticks = rows["ToA"] * COARSE - rows["FToA"]
    return hits_of_ticks(columns, ticks, rows["ToT"], source=path, attrs=attrs, chunks=per_chunk)


def _header(path: str) -> tuple[list[str], str | None]:
    """Return the names of the columns, spelled as ours where they are ours, and what separates them: None is spaces."""
    check_file(path)
    with open(path, "rb") as stream:
        text, row = (stream.readline(1 << 16).decode("utf-8-sig", "replace").strip("# \r\n") for _ in range(2))
    separator = next((mark for mark in "\t;," if mark in text and (mark in row or not row.strip())), None)
    ours = {"".join(name.lower().split()): name for name in _LIMITS}
    names = (text if separator else re.sub(r"(?i)matrix\s+index", "MatrixIndex", text)).split(separator)
    found = [ours.get("".join(name.lower().split()), name) for name in names]
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise ValueError(
            f"{path} has no column {listed(missing)} in its first line, which is {quoted(text)}; "
            "a .t3pa file has tabs between Index, Matrix Index, ToA, ToT, FToA, Overflow"
        )
    if len(set(found)) < len(found):
        raise ValueError(
            f"{path} has columns of the same name in its first line: {listed(repeated(found))}; rename them in the file"
        )
    return found, separator


def _parse(path: str, header: list[str], separator: str | None) -> Rows:
    """Return the columns that we know, as int64, if all their values are such as detectors write."""
    import pyarrow as pa
    from pyarrow import csv

    wanted = [name for name in header if name in _LIMITS]
    source: Any = path
    if separator is None:  # any number of spaces and tabs
        with open(path, "rb") as stream:
            text = re.sub(rb"(?m)^[ \t]+|[ \t\r]+$", b"", stream.read())
        source = pa.BufferReader(re.sub(rb"[ \t]+", b"\t", text))
    try:
        table = csv.read_csv(
            source,
            read_options=csv.ReadOptions(column_names=header, skip_rows=1),
            parse_options=csv.ParseOptions(delimiter=separator or "\t", quote_char=False, ignore_empty_lines=True),
            convert_options=csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.int64()), null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            _explain(path, header, separator, error)
        return {name: np.empty(0, np.int64) for name in wanted}  # a header, and nothing below
    rows = {name: table.column(name).to_numpy() for name in wanted}
    if any(values.min(initial=0) < 0 or values.max(initial=0) >= _LIMITS[name] for name, values in rows.items()):
        _explain(path, header, separator, None)
    return rows


def _explain(path: str, header: list[str], separator: str | None, error: Exception | None) -> NoReturn:
    """Find the first wrong line and raise an error that shows it; on the way to an error only, as it is slow."""
    for number, line in _lines(path):
        fields = line.split(separator)
        if len(fields) != len(header):
            raise ValueError(
                f"{path}, line {number}: expected {len(header)} fields as in the first line, "
                f"found {len(fields)}: {quoted(line)}; write the file again, or remove the line"
            ) from error
        for name, text in zip(header, fields, strict=True):
            digits = text.strip().removeprefix("-")
            is_whole = digits.isascii() and digits.isdigit()
            if name in _LIMITS and not (is_whole and 0 <= int(text[:40]) < _LIMITS[name]):
                raise ValueError(
                    f"{path}, line {number}, column {quoted(name)}: expected a whole number from 0 to "
                    f"{_LIMITS[name] - 1}, found {quoted(text)}; correct it, or remove the line"
                ) from error
    raise ValueError(f"{path} cannot be read as a .t3pa file: {short(error)}") from error


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are rows, with their numbers in the file, counted from 1."""
    with open(path, "rb") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if number > 1 and line.strip(" "):
                yield number, line


def _measurement(path: str, rows: Rows, measurement: int | None) -> tuple[Rows, int]:
    """Return the rows of one measurement, and how many there are."""
    n = rows["ToA"].size
    index = rows.get("Index", np.arange(n))
    begins = (
        np.flatnonzero(((index[1:] == 0) | (index[1:] < index[:-1])) & index.any()) + 1
    )  # zeros alone count nothing
    bounds, many = [0, *begins, n], len(begins) + 1
    if measurement is None and many > 1:
        line, _ = next(itertools.islice(_lines(path), int(bounds[1]), None))
        raise ValueError(
            f"{path} has {many} measurements (Index starts anew in line {line}), and "
            f"times start again in each; choose one with measurement=0 to measurement={many - 1}"
        )
    k = check_whole(f"measurement of {path}", 0 if measurement is None else measurement, 0, many - 1)
    return {name: values[bounds[k] : bounds[k + 1]] for name, values in rows.items()}, many


def _unroll(path: str, rows: Rows, turn: int | None) -> tuple[npt.NDArray[np.bool_], int]:
    """Return which rows are hits, and how many times ToA started anew; ToA of hits and lost data then goes on."""
    index, toa = rows["Matrix Index"], rows["ToA"]
    overflow = rows.get("Overflow", np.zeros_like(index))
    hit = (overflow == 0) | (overflow == index // _CHIP)
    timed = hit | (index == _LOST_FROM)
    times = toa[timed]
    largest = int(times.max(initial=0))
    if turn is None:
        turn = _QUAD if largest < _QUAD and (index[hit] >= _CHIP).any() else _SINGLE
        turn = turn if largest < turn else _LIMITS["ToA"]
    elif check_whole("turn", turn, 4, _LIMITS["ToA"]) <= largest:
        raise ValueError(f"{path} has a ToA of {largest}, which is not below turn={turn}; give a larger one")
    step = np.diff(times)
    up, down = step < -(turn // 4), step > turn - turn // 4
    turns = np.cumsum(np.append(0, up.astype(np.int64) - down))[: times.size]
    turns -= np.minimum(np.minimum.accumulate(turns), 0)
    odd = np.flatnonzero(~up & (step < -(_QUAD // 4)))
    if odd.size:
        before, after = times[odd[0] : odd[0] + 2] * TOT_TICK / 1e9
        logger.warning(
            "%s: ToA falls from %.9g s to %.9g s, and %d times in all by more than a second: if it starts anew after a "
            "number of steps, give open_t3pa(turn=), such as 2**28; if a measurement begins, divide the file there",
            path, before, after, odd.size,
        )  # fmt: skip
    count = int(turns.max(initial=0))
    if count:
        rows["ToA"] = toa.copy()
        rows["ToA"][timed] += turn * turns
        logger.warning("%s: ToA starts anew %d times, taken as after %d steps of 25 ns; times go on", path, count, turn)
    return hit, count
