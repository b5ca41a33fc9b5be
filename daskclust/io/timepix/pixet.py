"""Frames of Advacam's Pixet program as text: cluster logs, matrices, and lists of pixels."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import raise_not_finite_value
from daskclust.core.data.quote import quoted
from daskclust.core.data.units import HITS
from daskclust.io.blocks import to_write
from daskclust.io.files import check_file
from daskclust.io.replacing import replacing
from daskclust.io.rows import check_hits_per_chunk
from daskclust.io.schema import to_dataset
from daskclust.io.several import takes_several
from daskclust.io.timepix.hitwise import hits_with
from daskclust.io.timepix.ticks import TOT_TICK

_NUMBER = r"[ \t]*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[ \t]*"
_HEAD = re.compile(rf"(?m)^Frame[ \t]+(\d+)[ \t]*\(({_NUMBER}),({_NUMBER})s\)[ \t\r]*$".encode())
_CLUSTER = re.compile(rf"(?:\[{_NUMBER}(?:,{_NUMBER}){{2,3}}\]\s*)*".encode())
_MOST = 1 << 16  # pixels across
_DSC = re.compile(r"^Type=(\w+) (matrix|\[X,Y,C\]|\[X,C\]) width=(\d+) height=(\d+)\s*$", re.MULTILINE)

Columns = dict[str, npt.NDArray[Any]]


@takes_several(".clog", ".pmf", ".txt")
def open_pixet(
    path: str | os.PathLike[str],
    *,
    value: Literal["tot", "energy", "counts"] | None = None,
    chunks: int | None = None,
) -> xr.Dataset:
    """Read hits of frames that Advacam's Pixet program wrote as text.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `read_hits`: a cluster log (``.clog``), or frames (``.pmf``, ``.txt``) as matrices
        or as lists of pixels, with the description (``.dsc``) beside it. Without one, a matrix is a square, and lists
        are of a chip of 256 x 256 pixels.
    value : {"tot", "energy", "counts"}, optional
        What the values are: counts of ToT, which become ns, energies in keV, or other counts, such as of particles.
        Default: as the description says, ``"energy"`` of calibrated frames and ``"counts"`` of those that are called
        other than ToT; of a cluster log ``"energy"`` where a value is no whole number; else ``"tot"``.
    chunks : int, optional
        Hits per chunk of a Dataset of dask arrays. The file is read at once all the same.

    Returns
    -------
    xarray.Dataset
        Variables ``x``, ``y`` (pixel, uint16), ``frame`` (int64: the number in a cluster log, from 1, or in the order
        of the file, where these do not rise; else from 0), the `value`, and ``frame_time`` and ``frame_exposure`` (s),
        where the file tells them; of a cluster log ``label`` (int64), its cluster, and ``toa`` (ns) where it has times.
        Hits are in the order of the file; pixels with the value 0 are none. ``attrs["n_frames"]`` counts all frames.

    Raises
    ------
    OSError, ValueError
        Where `path` is no file or empty; for binary files, wrong lines, pixels that are none, frames that are missing.

    See Also
    --------
    write_clog : Write clusters to a cluster log.
    daskclust.EventBuilder : Without ``dt_max``, finds the clusters of frames.

    Notes
    -----
    A count of ToT is one step of the clock that the description names (``Timepix clock`` or ``Mpx clock``, MHz), else
    25 ns. Sources: Advacam's wiki, page File types, and Pixet's own code for these files, which is public.
    """
    rows, name = None if chunks is None else check_hits_per_chunk(chunks), os.fspath(path)
    check_file(name)
    if value not in (None, "tot", "energy", "counts"):
        raise ValueError(f"value must be 'tot', 'energy' or 'counts', got {value!r}")
    data = Path(name).read_bytes()
    is_log, about = name.lower().endswith(".clog"), dict[str, Any]()
    columns, n_frames = _of_log(name, data) if is_log else _of_frames(name, data, about)
    values = columns.pop("value")
    for numbers in (values, columns.get("toa", values)):
        if not (np.abs(numbers) < 2.0**53).all():
            wrong = numbers[~(np.abs(numbers) < 2.0**53)][0]
            raise ValueError(f"{name} has the value {wrong}, which is no count, energy or time; is it damaged?")
    if value is None:
        is_energy = bool((values % 1).any()) if is_log else about.get("Calibrated", 0.0) == 1
        named = str(about.get("Frame name", "ToT")).strip().lower()
        value = "energy" if is_energy else "tot" if named == "tot" else "counts"
    clock = about.get("Timepix clock") or about.get("Mpx clock")
    step = 1e3 / clock if clock else TOT_TICK
    columns[value] = values * step if value == "tot" else values
    is_chip = max(int(columns[axis].max(initial=0)) for axis in "xy") < 256
    attrs = {"n_frames": n_frames, "layout": "chips" if is_chip else "quad"}
    units = {"counts": "1", "frame_time": "s", "frame_exposure": "s"}
    units = {each: unit for each, unit in units.items() if each in columns}
    ds = to_dataset(columns, field="timepix", source=name, attrs=attrs, units=units)
    return ds if rows is None else ds.chunk({"hit": rows}, name_prefix="daskclust-io-")


def write_clog(
    ds: xr.Dataset, path: str | os.PathLike[str], labels: str = "label", *, value: str | None = None
) -> None:
    """Write the clusters of hits to a cluster log of Pixet (``.clog``), completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        Hits with ``x``, ``y`` and `labels`; those of noise (-1) are not written. With ``frame``, each frame has its
        clusters, and its ``frame_time`` and ``frame_exposure`` where they are known; numbers begin with 1 at least.
        Without, all clusters are of one frame.
    path : str or path
        The file. One that exists is replaced.
    labels : str, default "label"
        Variable with the cluster of each hit.
    value : str, optional
        Variable that is written for each pixel, ToT in steps of 25 ns. Default: ``energy``, ``tot`` or ``counts``,
        whichever comes first; with ``toa``, a pixel has its time (ns), too.

    Raises
    ------
    ValueError
        For variables that are missing, values and times that are not finite, units that are none of these, and hits of
        several chips that have no common coordinates.

    Examples
    --------
    >>> hits = {"x": [7, 8, 9], "y": [5, 5, 1], "frame": [1, 1, 1], "tot": [25.0, 50.0, 25.0]}
    >>> ds = to_dataset(hits, field="timepix").clust.events()
    >>> write_clog(ds, "run.clog")  # doctest: +SKIP
    """
    import pyarrow as pa
    from pyarrow import compute

    ds = to_write(ds).compute()
    value = value or next((each for each in ("energy", "tot", "counts") if each in ds), "energy")
    for each in ("x", "y", labels, value):
        if each not in ds:
            raise ValueError(f"the hits have no variable {each!r}; they have {', '.join(map(str, ds))}")
    ds = hits_with(ds, [each for each in ("toa", value) if each in ds and each in HITS], "write_clog")
    if "chip" in ds and ds.attrs.get("layout") != "quad" and ds["chip"].size and (ds["chip"] != ds["chip"][0]).any():
        raise ValueError("a cluster log has no chips, and the hits are of several; write each chip to its own file")
    zeros = np.zeros(len(ds["x"]), np.int64)
    frame = ds["frame"].values if "frame" in ds else zeros
    frame = frame - min(int(frame.min(initial=1)) - 1, 0)
    order = np.lexsort((ds[labels].values, frame))
    order = order[ds[labels].values[order] >= 0]
    frame, label = frame[order], ds[labels].values[order]
    step = TOT_TICK if value == "tot" else 1.0
    columns = [ds["x"].values[order], ds["y"].values[order], ds[value].values[order] / step]
    columns += [ds["toa"].values[order]] if "toa" in ds else []
    for each, numbers in zip((value, "toa"), columns[2:], strict=False):
        if not np.isfinite(numbers).all():
            row = int(order[~np.isfinite(numbers)][0])
            raise_not_finite_value(each, ds[each].values[row], row)
    span = float(np.ptp(ds["toa"].values)) / 1e9 if "toa" in ds and "frame" not in ds and len(zeros) else 0.0
    about = [ds[each].values[order] if each in ds else zeros[order] for each in ("frame_time", "frame_exposure")]
    frames = np.flatnonzero(np.diff(frame, prepend=-1))
    begin = (np.diff(label, prepend=-1) == 0).astype(np.int64)  # of a cluster, of another pixel, of a frame each
    begin[frames] = 2 + np.arange(len(frames))
    begins = ["\n[", " ["]
    for k in frames:
        exposure = about[1][k] if "frame" in ds else span
        begins.append(f"{chr(10) if k else ''}Frame {frame[k]} ({about[0][k]:f}, {exposure:f} s)\n[")
    texts = [compute.cast(pa.array(each), pa.large_string()) for each in columns]
    pixels = compute.binary_join_element_wise(*texts, pa.scalar(", ", pa.large_string()))
    around = [
        pa.array(begins, pa.large_string()).take(pa.array(begin)),
        pixels,
        *(pa.scalar(each, pa.large_string()) for each in ("]", "")),
    ]
    _, ends, text = compute.binary_join_element_wise(*around).buffers()
    with replacing(Path(path)) as stream:
        if len(begin):
            stream.write(memoryview(text)[: int(np.frombuffer(ends, np.int64)[len(begin)])])
        stream.write(b"\n")


# ---------------------------------------------------------------------------------------------------------- their text
def _of_log(path: str, data: bytes) -> tuple[Columns, int]:
    """Return the hits of a cluster log, and how many frames it has."""
    heads = list(_HEAD.finditer(data))
    text = np.frombuffer(data, np.uint8)
    opens, ends = np.flatnonzero(text == ord("[")), np.flatnonzero(text == ord("\n"))
    at = np.searchsorted([head.start() for head in heads], opens) - 1
    line = np.searchsorted(ends, opens)
    body = _HEAD.sub(b"", data).translate(bytes.maketrans(b"]", b"\n"), b"[ \t\r")
    has_toa = body.lstrip().partition(b"\n")[0].count(b",") == 3
    names = ("x", "y", "value", "toa")[: 3 + has_toa]
    found = _numbers(body, names, ",") if data.rstrip()[-1:] in (b"", b"]", b")") else None
    if found is None or len(found["x"]) != len(opens) or (len(at) and at[0] < 0) or (len(opens) and not heads):
        _explain(path, data)
    number = np.array([int(head[1][:19]) % 2**62 for head in heads] or [0])
    time, exposure = (np.array([float(head[k]) for head in heads] or [0.0]) for k in (2, 3))
    if (np.diff(number) <= 0).any():
        number = np.arange(1, len(heads) + 1)
    found |= {"frame": number[at], "frame_time": time[at], "frame_exposure": exposure[at]}
    return found | {"label": np.cumsum(np.diff(line, prepend=line[:1]) != 0)}, len(heads)


def _explain(path: str, data: bytes) -> NoReturn:
    """Raise for the first line of a cluster log that is none."""
    begun = False
    for number, line in enumerate(data.splitlines(), start=1):
        is_head = _HEAD.fullmatch(line) is not None
        if not is_head and (not _CLUSTER.fullmatch(line) or (line.strip() and not begun)):
            raise ValueError(
                f"{path}, line {number}: expected Frame N (time, exposure s), or below it pixels as [x, y, value], all "
                f"with a time or none, found {quoted(line.decode('utf-8', 'replace'))}; correct it, or remove the line"
            )
        begun |= is_head
    raise ValueError(f"{path} is no cluster log: some pixels are [x, y, value], others [x, y, value, time]")


def _of_frames(path: str, data: bytes, about: dict[str, Any]) -> tuple[Columns, int]:
    """Return the hits of frames, and how many there are; `about` gets what their description tells."""
    kind, width, height, each = _described(path, about)
    line = data.lstrip(b"#\r\n").partition(b"\n")[0].split()
    if kind is None:
        kind = {2: "[X,C]", 3: "[X,Y,C]"}.get(len(line), "matrix")
        width = height = len(line) if kind == "matrix" else 256
    if not data.endswith(b"\n"):
        raise ValueError(f"{path} ends within a line, {quoted(data[-40:].decode('utf-8', 'replace'))}; is it complete?")
    data = re.sub(rb"[ \t]+", b"\t", re.sub(rb"[ \t\r]+(?=\n|$)", b"", data))
    if kind == "matrix":
        found = _numbers(data, [str(k) for k in range(width)], "\t") if width else None
        many = len(found["0"]) // height if found else 0
        if found is None or many * height != len(found["0"]):
            raise ValueError(f"{path} has no frames of {height} lines with {width} numbers each; is it complete?")
        values = np.column_stack(list(found.values())).reshape(many, height, width)
        at, y, x = np.nonzero(values)
        columns = {"x": x, "y": y, "value": values[at, y, x]}
    else:
        names = ("x", "y", "value") if kind == "[X,Y,C]" else ("x", "value")
        parts = data.split(b"#")
        many, rows = len(parts), [part.count(b"\t") // (len(names) - 1) for part in parts]
        columns = _numbers(b"\n".join(parts), names, "\t") or {}
        if not columns or len(columns["x"]) != sum(rows):
            raise ValueError(f"{path} has lines that are not {len(names)} numbers, or #; is it complete?")
        at = np.repeat(np.arange(many), rows)
        if kind == "[X,C]":
            columns["y"], columns["x"] = np.divmod(columns["x"], width)
        if ((columns["x"] >= width) | (columns["y"] >= height) | (columns["x"] < 0) | (columns["y"] < 0)).any():
            raise ValueError(f"{path} has pixels beyond {width} x {height}; is its .dsc file that of another one?")
    if each and len(each) != many:
        raise ValueError(f"{path} has {many} frames, and its .dsc file {len(each)}; copy both again")
    columns["frame"] = at.astype(np.int64)
    for name, told in {"frame_time": "Start time", "frame_exposure": "Acq time"}.items():
        if each and all(told in one for one in each):
            columns[name] = np.array([one[told] for one in each])[at]
    return columns, many


def _described(path: str, about: dict[str, Any]) -> tuple[str | None, int, int, list[dict[str, Any]]]:
    """Return the kind of frames, their width and height, and what is said of each, as the file beside them tells."""
    place = f"{path}.dsc"
    if not os.path.exists(place):
        return None, 0, 0, []
    text = Path(place).read_text("utf-8", "replace")
    kinds = {(kind, int(width), int(height)) for _, kind, width, height in _DSC.findall(text)}
    if text[:1] != "A" or len(kinds) != 1 or max(max(each[1:]) for each in kinds) > _MOST:
        raise ValueError(
            f"{place} describes no frames of one kind as text, but {quoted(text[:40])}; save them as ASCII in Pixet"
        )
    each = [_told(block) for block in re.split(r"(?m)^\[F\d+\]\s*$", text)[1:]]
    about |= each[0] if each else {}
    return *kinds.pop(), each


def _told(block: str) -> dict[str, Any]:
    """Return what a block of a description says, by name: numbers, or texts."""
    found = re.findall(r'(?m)^"([^"\n]+)" \("[^\n]*"\):\n(\w+)\[\d+\]\n(.*)$', block)
    texts = {name: (text.strip().replace(",", "."), kind) for name, kind, text in found}
    is_number = re.compile(_NUMBER).fullmatch
    return {
        name: float(text) if "char" not in kind and is_number(text) else text for name, (text, kind) in texts.items()
    }


def _numbers(text: bytes, names: Any, separator: str) -> Columns | None:
    """Return columns of numbers, those of pixels as integers; None where a line is none of them."""
    import pyarrow as pa
    from pyarrow import csv

    types: Mapping[str, Any] = {name: pa.int64() if name in ("x", "y") else pa.float64() for name in names}
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=list(names), use_threads=False),  # small parts, some are wrong
            parse_options=csv.ParseOptions(delimiter=separator, quote_char=False, ignore_empty_lines=True),
            convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            return None
        return {name: np.empty(0, np.int64 if name in ("x", "y") else np.float64) for name in names}
    return {name: table.column(name).to_numpy().copy() for name in names}
