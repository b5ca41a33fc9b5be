"""Run each command on sample files, and write what it prints into howto/transcripts.md.

    python docs/transcripts.py

Samples are those of `daskclust.datasets`, made in a temporary folder. Lines on the compiling of kernels, which a first
run has, are left out.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "howto" / "transcripts.md"
SAMPLES = """\
import numpy as np
from daskclust import datasets, io

hits = datasets.hgcal_event(20, n_noise=1000, rng=0).drop_vars("truth")
io.write_hits(hits, "hits.parquet")
names = ["u_mm", "v_mm", "plane", "dE_MeV"]
values = [hits["x"] * 10, hits["y"] * 10, hits["layer"], hits["energy"] * 1000]
np.savetxt("beamtest.csv", np.stack(values, 1), fmt="%.5g", delimiter=";", header=";".join(names), comments="")
io.write_tpx3(datasets.timepix(20_000, kind="pion45", rng=0).drop_vars("truth"), "run.tpx3")
io.write_particles(datasets.cosmology_box(20_000, rng=0).drop_vars("halo"), "snapshot.hdf5")
io.write_hits(datasets.seed_spreader(1_500, 2, n_clusters=6.0, noise=0.1, rng=0).drop_vars("truth"), "places.csv")
io.write_cells(datasets.cytometry(2_000, 4, rng=0).drop_vars("population"), "tube.fcs")
"""
OWN = "--columns u_mm=x,v_mm=y,plane=layer,dE_MeV=energy --units x=mm,y=mm,energy=MeV"
SECTIONS = {
    "Help": ["daskclust clue --help"],
    "`warm`: kernels are compiled once": ["daskclust warm clue"],
    "`clue`: hits of a calorimeter": [
        "daskclust clue hits.parquet --dc 2 --rhoc 0.3 --dry-run",
        "daskclust clue hits.parquet --dc 2 --rhoc 0.3 -o labelled.parquet --table clusters.csv",
        "head -3 clusters.csv",
        "daskclust clue hits.parquet --dc 2 --rhoc 1e9",
        "daskclust clue hits.parquet --dc 2 --rhoc 0.3 --json",
        "daskclust clue beamtest.csv --dc 2 --rhoc 0.3",
        f"daskclust clue beamtest.csv --dc 2 --rhoc 0.3 {OWN} --table t.h5",
        "daskclust clue hits.parquet --dc 2 --rhoc 0.3 --workers 2 -o labelled.parquet",
        "daskclust clue hit.parquet --dc 2 --rhoc 0.3",
    ],
    "`events`: hits of a pixel detector": [
        "daskclust events run.tpx3 --dt-max 200 --table clusters.parquet -o pixels.parquet",
        'daskclust events run.tpx3 --dt-max 200 --where "size > 30" --table large.csv',
        "daskclust events run.tpx3 --dt-max 200 --min-hits 1000",
    ],
    "`dbscan`: points": [
        "daskclust dbscan snapshot.hdf5 --eps 0.1 --min-samples 10 -o labels.zarr --table clusters.npz",
        "daskclust dbscan snapshot.hdf5 --eps 0.01 --min-samples 10",
    ],
    "`hdbscan`: points of any density": [
        "daskclust hdbscan places.csv --min-cluster-size 30 -o labels.parquet",
        "daskclust hdbscan places.csv --min-cluster-size 30 --cluster-selection-method leaf",
    ],
    "`fof`: halos of a simulation": [
        "daskclust fof snapshot.hdf5 --b 0.2 --min-members 20 --table halos.csv -o particles.parquet",
        "head -3 halos.csv",
    ],
    "`hca`: cells": [
        "daskclust hca tube.fcs --threshold 100 --n-clusters 6 --min-size 30 -o cells.csv --table populations.csv",
        "daskclust hca tube.fcs --threshold 100 --merges - 2> summary.txt | head -3",
    ],
    "`explore`: in the browser": ["daskclust explore hits.parquet --no-browser"],
    "`demo`": ["daskclust demo"],
    "`info`": ["daskclust info"],
}
HEAD = """\
# Transcripts

Each command on sample files, with what it printed. Use this page to see what a command tells before you run it; options
are in [](terminal.md) and in `daskclust help COMMAND`.

The files are made by

```python
{samples}```

`python docs/transcripts.py` makes this page again. Lines on the compiling of kernels, which a first run prints, are
left out.
"""


def make_samples(folder):
    """Write the sample files into a folder, with the command in a folder bin."""
    subprocess.run([sys.executable, "-c", SAMPLES], cwd=folder, check=True)
    program = folder / "bin" / "daskclust"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m daskclust "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def shown(line, folder):
    """Return what a line prints, output and errors as they come; the explorer is ended by Ctrl-C."""
    paths = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}
    options = {"cwd": folder, "env": {**os.environ, **paths}, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(["bash", "-c", line], stderr=subprocess.STDOUT, start_new_session=True, **options) as process:
        if " explore " in line:
            first = process.stdout.readline()
            while "http" not in first:  # kernels are compiled first
                first = process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
            return f"{first}^C"
        text = process.communicate()[0]
    lines = [each.rstrip() for each in text.splitlines() if not each.startswith("compiling kernels")]
    return "\n".join(lines).strip("\n")


def main():
    """Write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_samples(folder)
        parts = [HEAD.format(samples=SAMPLES)]
        for title, lines in SECTIONS.items():
            blocks = [f"```console\n$ {line}\n{shown(line, folder)}\n```\n" for line in lines]
            parts.append(f"## {title}\n\n" + "\n".join(blocks))
    PAGE.write_text(re.sub(re.escape(name), "~", "\n".join(parts)), encoding="utf-8")


if __name__ == "__main__":
    main()
