"""The Python lines that the explorer gives, run as a user runs them: in a process of their own, from the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskclust import datasets, io
from daskclust.app.code import code
from daskclust.app.opening import open_file
from daskclust.app.selection import Box
from daskclust.app.state import State


def write_points(path: Path) -> None:
    ds = datasets.seed_spreader(900, 2, rng=0)
    ds.to_dataframe()[["x", "y"]].to_csv(path, index=False)


FILES: dict[str, tuple[str, Callable[[Path], Any], dict[str, Any]]] = {
    "clue": ("hits.parquet", lambda path: io.write_hits(datasets.calorimeter(2, 300, rng=0), path), {"rhoc": 7.0}),
    "events": ("pixels.parquet", lambda path: io.write_hits(datasets.timepix(500, rng=0), path), {"min_hits": 2}),
    "fof": ("box.hdf5", lambda path: io.write_particles(datasets.cosmology_box(3000, rng=0), path), {"min_members": 5}),
    "dbscan": ("points.csv", write_points, {"min_samples": 5}),
    "hca": ("cells.fcs", lambda path: io.write_cells(datasets.cytometry(300, rng=0)[["X"]], path), {"cut": "height"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_lines_run_alone(name: str, tmp_path: Path) -> None:
    file, write, step = FILES[name]
    path = tmp_path / file
    write(path)
    ds, line = open_file(path, name)
    state = State(ds, name, source=(line,))
    state.set(**step)
    x, y = state.system.axes
    columns = state.update().columns
    low, high = np.quantile(columns[x], [0.1, 0.6]).tolist()
    state.select(Box((x, y), (low, high), (float(columns[y].min()), float(columns[y].max()))))
    saved = tmp_path / "saved.npz"
    lines = f"{code(state)}np.savez({str(saved)!r}, label=result['label'], inside=inside, size=table['size'])\n"
    if "import numpy" not in lines:
        lines = f"import numpy as np\n{lines}"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(saved) as made:
        np.testing.assert_array_equal(made["label"], state.present.label)
        np.testing.assert_array_equal(made["inside"], state.mask)
        np.testing.assert_array_equal(made["size"], state.present.table["size"])
    assert state.present.n_clusters > 0
