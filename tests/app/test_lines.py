"""The Python lines that the explorer gives, run as a user runs them: in a process of their own, from the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases.explorer import DATA, STEPS, written

from daskclust.app.code import code
from daskclust.app.opening import open_file
from daskclust.app.selection import Box
from daskclust.app.state import State


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_lines_run_alone(name: str, tmp_path: Path) -> None:
    ds, line = open_file(written(name, DATA[name](), tmp_path), name)
    step = STEPS[name][0]
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
