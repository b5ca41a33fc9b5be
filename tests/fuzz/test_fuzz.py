"""Files that nobody vouches for: damaged ones by the thousand, claims that are not true, and pickles."""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases.lanes import in_long_lane
from fuzz import files as fuzz_files
from fuzz.readers import KINDS, is_clear
from hypothesis import given
from hypothesis import strategies as st

from daskclust import app
from daskclust.io import attrs as _attrs
from daskclust.io import open_particles, read_cells, read_gmhc, read_hits
from daskclust.io.tables import binary as _binary
from daskclust.io.tables import parquet as _parquet

_FINDS_TESTS = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
_SEED = 20
_TIMES = in_long_lane(20, otherwise=1)


# -------------------------------------------------------------------------------------------------------- damaged files
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(tmp_path: Path, kind: str) -> None:
    """Each kind in a process of its own, as a crash or a hang of one is to be told, and memory to be bounded."""
    given = {"--times": _TIMES, "--seed": _SEED, "--folder": tmp_path}
    command = [sys.executable, "-m", "fuzz.readers", kind, *(str(word) for option in given.items() for word in option)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_FINDS_TESTS)
    left = sorted(path.name for path in tmp_path.iterdir() if path.name != "valid")
    how = f"signal {signal.Signals(-done.returncode).name}" if done.returncode < 0 else f"exit code {done.returncode}"
    assert done.returncode == 0, (
        f"{how}; cases left in {tmp_path}: {left}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    )


FAULTS = {
    "raise IndexError('list index out of range')": "IndexError",
    "raise ValueError('no name of a file')": "ValueError: no name of a file",
    "b'\\xff'.decode()": "UnicodeDecodeError",
    "np.array([np.nan]).astype('i4')": "RuntimeWarning",
    "np.empty(1 << 26, np.uint8)": "allocated 671",
    "np.empty(1 << 33, np.uint8)": "MemoryError",
    "recurse(recurse)": "RecursionError",
    "raise ValueError(f'{path} is damaged')": None,
    "raise OSError(f'{path} is damaged')": None,
    "np.empty(1 << 20, np.uint8)": None,
}
WRONG_READER = """
import sys
import numpy as np
from fuzz import files as fuzz_files, readers as fuzz
faults = {faults!r}
def recurse(f):
    f(f)
def read(path):
    if path.parent.name != "valid":
        exec(faults[int(path.stem.removeprefix("case"))])
fuzz.KINDS["wrong"] = fuzz.Kind(fuzz_files.particles_npy, read)
sys.exit(fuzz.run("wrong", len(faults), 1, fuzz.Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    """The check itself: readers that fail in one way each, and some that do not."""
    code = WRONG_READER.replace("{faults!r}", repr(list(FAULTS)))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=_FINDS_TESTS,
    )
    said = {entry["case"]: entry["said"] for entry in map(json.loads, done.stdout.splitlines())}
    expected = {number: told for number, told in enumerate(FAULTS.values()) if told}
    assert done.returncode == len(expected), done.stderr
    assert said.keys() == expected.keys()
    for number, told in expected.items():
        assert told in said[number]


def test_unclear_errors() -> None:
    path = Path("folder/run.csv")
    assert is_clear(ValueError("folder/run.csv is empty"), path)
    assert not is_clear(ValueError("it is empty"), path)
    assert not is_clear(KeyError("run.csv"), path)


# ------------------------------------------------------------------------------------------- claims that are not true
def largest(action: Any, *arguments: Any, **options: Any) -> int:
    """Return the bytes that Python and NumPy allocate until an error that names the file."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=str(arguments[0])):
            action(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_npy_header_of_gigabytes(tmp_path: Path) -> None:
    for name, read in (("a.npy", read_hits), ("b.npy", open_particles)):
        path = tmp_path / name
        path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 3 << 30) + b"{'descr': '<f8'}".ljust(500))
        assert largest(read, path) < 1 << 20


def test_npz_member_of_gigabytes(tmp_path: Path) -> None:
    """Header, directory and local entry agree, and what is stored is a few bytes."""
    n, path = 3 << 27, tmp_path / "a.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (n,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x", "y"):
            archive.writestr(f"{name}.npy", header.getvalue() + bytes(64))
    data = path.read_bytes()
    true, false = (struct.pack("<I", len(header.getvalue()) + size) for size in (64, 8 * n))
    assert data.count(true) == 4
    path.write_bytes(data.replace(true, false))
    assert largest(read_hits, path) < 1 << 20


def test_parquet_of_one_number(tmp_path: Path, monkeypatch: Any) -> None:
    """Arrow makes pages of 20 000 rows, which alone keep its files below the limit, so that this one is lower."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, n = tmp_path / "a.parquet", 1 << 21
    zeros = pa.table({name: pa.array(np.zeros(n, np.int64)) for name in ("x", "y", "layer")})
    with pq.ParquetWriter(path, zeros.schema) as writer:
        for _ in range(8):
            writer.write_table(zeros)
    monkeypatch.setattr(_parquet, "_MOST_EXPANSION", 1000)
    assert path.stat().st_size < 300_000
    with pytest.raises(ValueError, match=r"a.parquet has .* bytes, and claims to hold 402653184 bytes .* with chunks="):
        read_hits(path)
    with pytest.raises(ValueError, match=r"a.parquet has .* bytes, and claims to hold 402653184 bytes"):
        read_cells(path)
    assert read_hits(path, chunks=n)["x"][5:7].values.tolist() == [0, 0]
    path.unlink()
    pq.write_table(zeros, path)  # 48 MB are no matter
    assert read_hits(path).sizes == {"hit": n}


def test_zarr_chunks_of_gigabytes(tmp_path: Path) -> None:
    """By the header of a chunk, of three codecs, and by the metadata of an array."""
    import numcodecs
    import zarr

    size = 1 << 30
    path, told = tmp_path / "a.zarr", struct.pack("<I", size)
    group = zarr.open_group(path, mode="w", zarr_format=2)
    codecs = {"x": numcodecs.Blosc(), "y": numcodecs.Zstd(), "z": numcodecs.LZ4()}
    for name, codec in codecs.items():
        group.create_array(name, data=np.ones(100), chunks=(100,), compressors=codec)
    ds = open_particles(path)
    assert [ds[name].values.sum() for name in codecs] == [100, 100, 100]
    good = {name: (path / name / "0").read_bytes() for name in codecs}
    (path / "x" / "0").write_bytes(good["x"][:4] + told + good["x"][8:])
    (path / "y" / "0").write_bytes(b"\x28\xb5\x2f\xfd\xc0\x00" + struct.pack("<Q", size) + good["y"][6:])
    (path / "z" / "0").write_bytes(told + good["z"][4:])
    for name in codecs:
        assert largest(lambda _, name=name: ds[name].values, path) < 1 << 20
        with pytest.raises(ValueError, match=rf"chunk 0 claims {size} bytes, and a chunk has 800"):
            ds[name].values
    alone = tmp_path / "b.zarr"
    zarr.open_group(alone, mode="w", zarr_format=2).create_array("x", data=np.ones(100), chunks=(100,))
    about = json.loads((alone / "x" / ".zarray").read_text())
    (alone / "x" / ".zarray").write_text(json.dumps({**about, "shape": [1 << 40], "chunks": [1 << 40]}))
    with pytest.raises(ValueError, match=r"b.zarr cannot be read .* claim 8796093022208 bytes each"):
        open_particles(alone)


def test_lists_of_root_files_that_are_not_there(tmp_path: Path) -> None:
    """Offsets of lists beyond their numbers: uproot would allocate, and give, what happens to be in memory."""
    path = next(path for path in fuzz_files.hits_root(tmp_path) if path.stem == "jagged")
    data = path.read_bytes()
    good = read_hits(path).sizes["hit"]
    rng, wrong = np.random.default_rng(1), 0
    offsets = [k for k in range(len(data) - 8) if data[k : k + 2] == data[k + 4 : k + 6] == b"\0\0" and data[k + 2]]
    for place in rng.choice(offsets, 40, replace=False).tolist():
        path.write_bytes(data[: place + 1] + b"\x7f" + data[place + 2 :])
        try:
            assert read_hits(path).sizes["hit"] == good
        except ValueError as error:
            assert path.name in str(error)  # noqa: PT017
            wrong += "do not lie, in order, within their numbers" in str(error)
    assert wrong


# -------------------------------------------------------------------------------------------------------------- pickles
class Evil:
    """What makes a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def evil(tmp_path: Path) -> Any:
    """Return such an object; nothing may have unpickled it in the end."""
    yield Evil(tmp_path / "owned")
    assert not (tmp_path / "owned").exists()
    pickle.loads(pickle.dumps(Evil(tmp_path / "owned")))
    assert (tmp_path / "owned").exists()  # it would have been seen


def test_pickles_in_numpy_files(tmp_path: Path, evil: Evil) -> None:
    objects = np.array([[evil, evil, evil]], dtype=object)
    np.save(tmp_path / "bad.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "bad.npz", x=objects[0], y=np.zeros(3))
    np.save(tmp_path / "records.npy", np.array([(1.0, evil)], dtype=[("x", "f8"), ("y", "O")]), allow_pickle=True)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(evil))
    for name in ("bad.npy", "bad.npz", "records.npy", "bare.npy"):
        with pytest.raises(ValueError, match=rf"{name} cannot be read as a NumPy"):
            read_hits(tmp_path / name)
        if name.endswith(".npy"):
            with pytest.raises(ValueError, match=rf"{name} cannot be read as a NumPy"):
                open_particles(tmp_path / name)


@pytest.mark.parametrize("place", ["compressor", "filters", "consolidated", "root"])
@pytest.mark.parametrize("kind", ["<f8", "|O"])
def test_pickles_in_zarr_stores(tmp_path: Path, monkeypatch: Any, evil: Evil, place: str, kind: str) -> None:
    """As of format 2, which names any codec of numcodecs; newer ones refuse by themselves, older ones do not."""
    import numcodecs.pickles

    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path, codec = tmp_path / "bad.zarr", {"id": "pickle", "protocol": 5}
    about = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": kind, "fill_value": 0, "order": "C"}
    about |= {"compressor": None, "filters": None}
    about |= {"filters": [codec]} if place == "filters" else {"compressor": codec}
    files: dict[str, Any] = {".zgroup": {"zarr_format": 2}}
    if place == "root":
        files = {".zarray": about, "0": None}
    else:
        for axis in ("x", "y"):
            files |= {f"{axis}/.zarray": about, f"{axis}/0": None}
    if place == "consolidated":
        inside = {name: content for name, content in files.items() if content is not None}
        plain = {**about, "compressor": None}
        files = {name: plain if name.endswith(".zarray") else content for name, content in files.items()}
        files[".zmetadata"] = {"zarr_consolidated_format": 1, "metadata": inside}
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(pickle.dumps(evil) if content is None else json.dumps(content).encode())
    with pytest.raises(ValueError, match=r"bad.zarr cannot be read as a zarr file: .* names the codec 'pickle'"):
        open_particles(path).compute()


def test_pickles_in_hdf5_files(tmp_path: Path, evil: Evil) -> None:
    import h5py

    for name, read in (("bad.h5", read_hits), ("bad.hdf5", open_particles)):
        with h5py.File(tmp_path / name, "w") as file:
            group = file if read is read_hits else file.create_group("PartType1")
            told = {"NumPart_ThisFile": [0, 1, 0], "NumPart_Total": [0, 1, 0], "NumFilesPerSnapshot": 1}
            file.create_group("Header").attrs.update(told)
            for column in ("x", "y", "Coordinates"):
                group.create_dataset(column, data=np.void(pickle.dumps(evil)))
            group.attrs["evil"] = np.void(pickle.dumps(evil))
        with pytest.raises(ValueError, match=name):
            read(tmp_path / name)


def test_pickles_in_parquet_files(tmp_path: Path, evil: Evil) -> None:
    """In a column, in the metadata that pandas reads, and for an extension type that is not known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    bad = pickle.dumps(evil)
    told = dict.fromkeys((b"pandas", b"daskclust", b"ARROW:extension:metadata"), bad)
    told[b"ARROW:extension:name"] = b"arrow.py_extension_type"
    fields = [pa.field(name, pa.float64(), metadata=told) for name in ("x", "y")]
    table = pa.table([pa.array([1.0]), pa.array([2.0])], schema=pa.schema(fields, metadata=told))
    pq.write_table(table, tmp_path / "metadata.parquet")
    pq.write_table(pa.table({"x": [bad], "y": [bad]}), tmp_path / "columns.parquet")
    for name in ("metadata.parquet", "columns.parquet"):
        for read in (read_hits, open_particles, read_cells):
            with pytest.raises(ValueError, match=name):
                read(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["a.pkl", "a.joblib", "a.csv", "a.parquet", "a.npz", "a.root", "a.h5", "a.arborx", "a"]
)
def test_bare_pickles(tmp_path: Path, evil: Evil, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(evil))
    for read in (read_hits, open_particles, read_cells, read_gmhc):
        with pytest.raises(ValueError, match=rf"{name}\b"):
            read(tmp_path / name)


# --------------------------------------------------------------------------------------------------------- pure parsers
@given(st.text() | st.binary())
def test_metadata_of_any_text(text: str | bytes) -> None:
    try:
        attrs, units = _attrs.unpack(text, "run.csv")
    except ValueError as error:
        assert is_clear(error, Path("run.csv"))  # noqa: PT017
    else:
        assert all(isinstance(entry, str) for entry in (*attrs, *units, *units.values()))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    )
)
def test_metadata_of_any_json(entry: Any) -> None:
    for packed in (entry, {"attrs": entry, "units": {}}, {"attrs": {}, "units": entry}):
        try:
            attrs, units = _attrs.unpack(json.dumps(packed), "run.csv")
        except ValueError as error:
            assert is_clear(error, Path("run.csv"))  # noqa: PT017
        else:
            assert isinstance(attrs, dict)
            assert all(isinstance(unit, str) for unit in units.values())


@given(st.binary(max_size=200))
def test_npy_of_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "run.npy"
    for begin in (b"", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00"):
        path.write_bytes(begin + data)
        with pytest.raises(ValueError, match=r"run\.npy"):
            _binary.map_npy(str(path))


@given(st.text(max_size=300) | st.from_regex(r"([0-9., ;\t#\n-]|e5|nan|x,y){0,60}", fullmatch=True))
def test_text_of_any_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "run.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for read in (read_hits, read_cells, read_gmhc):
        try:
            read(path)
        except ValueError as error:
            assert is_clear(error, path)  # noqa: PT017


# --------------------------------------------------------------------------------------------------------- the explorer
def test_the_explorer_listens_to_this_machine_alone(monkeypatch: Any, command: Any, tmp_path: Path) -> None:
    """By default: as the command serves it, each socket is bound to a loopback address, and other hosts are refused."""
    (tmp_path / "hits.csv").write_text("x,y,layer,energy\n0,0,1,1\n0.5,0,1,2\n")
    served, serve = [], app.serve

    def started(*arguments: Any, **options: Any) -> Any:
        server = serve(*arguments, **options)
        served.extend(s.getsockname()[0] for s in server._http._sockets.values())
        origins = server._tornado.websocket_origins
        server.stop()
        assert {origin.rpartition(":")[0] for origin in origins} <= {"localhost", "127.0.0.1"}
        loop = SimpleNamespace(start=lambda: None)
        return SimpleNamespace(port=1234, start=lambda: None, stop=lambda: None, io_loop=loop)

    assert inspect.signature(serve).parameters["address"].default == "localhost"
    monkeypatch.setattr(app, "serve", started)
    code, _, err = command("explore", tmp_path / "hits.csv", "--no-browser")
    assert (code, err) == (0, "")
    assert served
    assert all(socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host) for host in served)
    assert set(served) <= {"127.0.0.1", "::1"}
