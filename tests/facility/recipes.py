"""Run the recipes of docs/howto/facilities.md with small numbers; `tests/facility/run` calls each by its name.

Results are compared with those in memory, points of all systems are clustered on the workers of each recipe, and its
log must be free of warnings and errors.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "facilities.md"
PLACE = Path(os.environ.get("PLACE", "/nowhere"))
POINTS = 20_000
SMALL = {  # what is changed in the recipes: numbers, and names of this place
    "/scratch/local": f"{PLACE}/scratch",
    "/shared": f"{PLACE}/shared",
    "4_000_000": "4_000",
    "5_000_000": "5_000",
    "4000000": "4000",
    "--ntasks=66": "--ntasks=4",
    "-n 66": "-n 4 --oversubscribe",
    "--mem-per-cpu=4G": "--mem-per-cpu=1G",
    "4GiB": "1GiB",
    "4GB": "1GB",
    "--cpus-per-task=64": "--cpus-per-task=3",
    "--nworkers 16": "--nworkers 2",
    "cores=16": "cores=2",
    "processes=16": "processes=2",
    'memory="64GB"': 'memory="2GB"',
    "jobs=8": "jobs=1",
    "start(128": "start(2",
    '"ib0"': '"lo"',
    "node17:8786": "127.0.0.1:28786",
    "port 8786": "port 28786",
    "workers.stop(": "__import__('recipes').all_systems(client); workers.stop(",
}
SHARE = 0.99e9, 2**30  # bytes of a worker: "1GB" of Dask, which dask-jobqueue rounds; "1G" of SLURM


def blocks(heading: str) -> list[str]:
    """Return the code of a section of the page, with small numbers."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    text = re.compile("|".join(map(re.escape, SMALL))).sub(lambda found: SMALL[found[0]], section)
    return re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


# ------------------------------------------------------------------------------------------------------- what must hold
def samples() -> Iterator[tuple[Any, Any, Any]]:
    """Yield each system with its last run and points for it."""
    from daskclust.systems import SYSTEMS

    for system in SYSTEMS.values():
        run = system.runs[-1]
        yield system, run, system.sample(2000 if system.name == "hca" else POINTS, run, "float64")  # O(n^2)


def all_systems(client: Any) -> None:
    """Have workers cluster points of all systems, and know their share of the memory and their folder."""
    import dask.array as da
    import numpy as np

    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        assert SHARE[0] <= worker["memory_limit"] <= SHARE[1], worker["memory_limit"]
        assert worker["local_directory"].startswith(f"{PLACE}/scratch"), worker["local_directory"]
        assert worker["nthreads"] == 1
        assert worker["nanny"]
    with np.load(PLACE / "labels.npz") as wanted:
        for system, run, sample in samples():
            lazy = sample.map(lambda a: da.from_array(a, chunks=(-(-len(a) // 8), *a.shape[1:])))
            labels = system.estimator(**run.parameters).fit(lazy.X, **lazy.columns).labels_
            np.testing.assert_array_equal(client.compute(labels).result(), wanted[system.name])
            print(f"{system}: labels of {len(labels)} points as in memory", flush=True)


def same_halos(folder: Path, where: str) -> None:
    """Compare what a recipe wrote with what is written in memory."""
    import numpy as np
    import xarray as xr

    from daskclust import io, properties

    particles = io.open_particles(PLACE / "shared" / "snapshot.hdf5", chunks=None)
    found = particles.clust.fof(b=0.2, min_members=20)
    io.write_hits(properties.halo_table(found), folder / "wanted.parquet")
    table, wanted = (io.read_hits(folder / name) for name in ("halos.parquet", "wanted.parquet"))
    xr.testing.assert_allclose(table, wanted, rtol=1e-9)  # sums over chunks: rounded differently
    (labels,) = set(found.data_vars) - set(particles.data_vars)
    np.testing.assert_array_equal(io.open_particles(folder / "labels.zarr", chunks=None)[labels], found[labels])
    print(f"{where}: {table.sizes['hit']} halos of {POINTS} particles as in memory", flush=True)


def clean(log: str) -> None:
    """Show a log, which must be free of errors and warnings."""
    print(log, flush=True)
    assert not re.search("Traceback|ERROR|WARNING|CRITICAL|error:", log), "the log is not clean"


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """Work in a folder with the snapshot."""
    place = PLACE / name
    place.mkdir()
    (place / "snapshot.hdf5").symlink_to(PLACE / "shared" / "snapshot.hdf5")
    os.chdir(place)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # scripts of recipes ask for `all_systems`
    yield place


def bash(script: str, seconds: int = 300) -> str:
    """Run a script as the user would, in the environment; return what it said."""
    script = f"set -e\nsource ~/envs/daskclust/bin/activate\n{script}"
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(["bash", "-c", script], timeout=seconds, check=False, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def submit(script: str) -> str:
    """Run a job to its end; return what it said."""
    Path("job.sh").write_text(script)
    bash("sbatch --wait --output=job.log job.sh || { cat job.log; false; }")
    return Path("job.log").read_text()


# -------------------------------------------------------------------------------------------------------------- recipes
def prepare() -> None:
    """Make data, and the labels in memory; kernels that are compiled here are loaded by all workers."""
    import numpy as np

    from daskclust import datasets, io

    io.write_particles(datasets.cosmology_box(POINTS, rng=0), PLACE / "shared" / "snapshot.hdf5")
    io.write_tpx3(datasets.timepix(POINTS, rng=0).drop_vars("truth"), PLACE / "shared" / "run.tpx3")
    labels = {}
    for system, run, sample in samples():
        labels[system.name] = system.estimator(**run.parameters).fit(sample.X, **sample.columns).labels_
        print(f"{system}: {labels[system.name].max() + 1} clusters", flush=True)
    np.savez(PLACE / "labels.npz", **labels)


def batch() -> None:
    """SLURMRunner, in a job of its own."""
    script, job, _ = blocks("As a batch job")
    with folder("batch") as here:
        (here / "halos.py").write_text(script)
        clean(submit(job))
        same_halos(here, "batch job")


def notebook() -> None:
    """SLURMCluster, whose job is in the queue for two minutes, behind one that has the whole node."""
    first, then, _ = blocks("From a notebook, through SLURM")
    with folder("notebook"):
        bash("sbatch --exclusive --mem=0 --output=/dev/null --wrap 'sleep 120'")
        began = time.time()
        notebook: dict[str, Any] = {}
        exec(first, notebook)
        print(f"workers after {time.time() - began:.0f} s; the job that runs them:")
        print(bash("squeue --format='submitted %V, begun %S: %T'"), flush=True)
        all_systems(notebook["client"])
        exec(then, notebook)
        same_events(notebook)
        notebook["client"].close()
        notebook["cluster"].close()
        bash("while squeue --noheader | grep -q .; do sleep 1; done", 60)


def same_events(notebook: dict[str, Any]) -> None:
    """Compare labels and table of the notebook's recipe with those in memory."""
    import xarray as xr

    from daskclust import io, properties

    hits = io.open_tpx3(PLACE / "shared" / "run.tpx3", chunks=None).clust.events(200.0)
    xr.testing.assert_equal(notebook["found"].compute(), hits)
    table = notebook["table"].compute().drop_vars(["noise_size", "noise_weight"])  # are attributes in memory
    xr.testing.assert_allclose(table, properties.cluster_table(hits), rtol=1e-9)
    print(f"notebook: {hits.sizes} as in memory", flush=True)


def node() -> None:
    """The command with workers of its own, in a job on one node."""
    *_, job = blocks("As a batch job")
    with folder("node") as here:
        clean(submit(job))
        same_halos(here, "one node")


def mpi() -> None:
    """dask-mpi, with mpirun."""
    script, command = blocks("With MPI")
    with folder("mpi") as here:
        (here / "halos.py").write_text(blocks("As a batch job")[0])
        (here / "halos_mpi.py").write_text(script)
        clean(bash(command))
        same_halos(here, "dask-mpi")


def hand() -> None:
    """A scheduler and workers that are started by commands, and the command line."""
    scheduler, worker, command = blocks("Workers started by hand")
    with folder("hand") as here:
        os.environ["DASK_LOGGING__DISTRIBUTED"] = "warning"
        active = "source ~/envs/daskclust/bin/activate; exec "
        programs = [subprocess.Popen(["bash", "-c", active + line]) for line in (scheduler, worker)]
        try:
            clean(bash(command))
            same_halos(here, "workers started by hand")
            from daskclust import workers

            with workers.start(2, scheduler="tcp://127.0.0.1:28786") as client:
                all_systems(client)
        finally:
            for program in reversed(programs):
                program.terminate()
                program.wait(600)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
