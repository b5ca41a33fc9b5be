"""How many files and functions a fit goes through: ``python tests/ways.py`` prints a row for each way.

Each call is the second of its kind in the process, on Dask with the synchronous scheduler. Counted are the package's
own frames: files, functions, and how often the file changes from one call to the next.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dask
import dask.array as da
import numpy as np

import daskclust

_ROOT = os.path.dirname(daskclust.__file__) + os.sep


def way(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Return the files and functions of the package that a call goes through, and its changes of file."""
    call()
    files: dict[str, None] = {}
    functions: set[Any] = set()
    changes, last = 0, ""

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal changes, last
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(_ROOT):
            files[name] = None
            functions.add(frame.f_code)
            changes += name != last
            last = name

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    if os.environ.get("WAYS"):
        for name in files:
            print("   ", name[len(_ROOT) :], *(code.co_name for code in functions if code.co_filename == name))
    return len(files), len(functions), changes


def ways(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls by what they are."""
    from daskclust import CLUE, FriendsOfFriends, MahalanobisHCA, datasets
    from daskclust.cli import app
    from daskclust.cli._run import run
    from daskclust.io import write_tpx3

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 50, (5000, 2))
    box = rng.uniform(0, 20, (5000, 3))
    cells = rng.normal(size=(300, 4)) + 6 * (np.arange(300) % 3)[:, None]
    lazy, lazy_box = da.from_array(X, chunks=(1000, 2)), da.from_array(box, chunks=(1000, 3))
    write_tpx3(datasets.timepix(5000, rng=0), folder / "run.tpx3")
    line = ["events", str(folder / "run.tpx3"), "--dt-max", "200", "--table", str(folder / "table.parquet"), "-q"]

    def terminal() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert run(app, line) == 0

    def computed(estimator: Any, points: Any) -> None:
        estimator.fit(points).labels_.compute()

    return {
        "CLUE in memory": lambda: CLUE(1.0, 2.0).fit(X),
        "CLUE on dask": lambda: computed(CLUE(1.0, 2.0), lazy),
        "friends-of-friends on five chunks": lambda: computed(FriendsOfFriends(0.4), lazy_box),
        "Mahalanobis with apriori clusters": lambda: MahalanobisHCA(0.3).fit(cells, apriori=np.arange(300) % 3),
        "events of a file to a table": terminal,
    }


def main() -> None:
    """Print the table."""
    print(f"{'':36}{'files':>8}{'functions':>11}{'changes of file':>17}")
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set({"scheduler": "synchronous", "daskclust.task-seconds": 0}),
    ):
        for name, call in ways(Path(folder)).items():
            print(f"{name:36}{'{:8}{:11}{:17}'.format(*way(call))}", flush=True)


if __name__ == "__main__":
    main()
