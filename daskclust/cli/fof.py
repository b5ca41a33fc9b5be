"""``daskclust fof``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from daskclust.cli._frame import progress, show, write_all
from daskclust.cli._options import CLUSTERING, OUTPUT, Columns, Json, Quiet, Units, check_outputs
from daskclust.cli._points import WRITABLE, Box, FillMissing, Type, box_of, count, in_box, open_points, write_points
from daskclust.cli._running import Chunks, Cuda, MemoryLimit, Running, Scheduler, Workers

MANUALS = {
    "fof": """
Reads
  IN                            snapshots (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, HDF5, NumPy,
                                zarr, ArborX, ROOT
  x, y, z                       position, in any unit, Mpc/h usually: that of x is that of --linking-length and
                                --boxsize, and y and z are converted to it
  vx, vy, vz                    optional, velocity, km/s usually
  mass                          optional, in any unit; without it each particle has mass 1
  any other                     is kept, and written again by --labels

Writes
  -o                            the catalogue, a row for each halo, in the units of IN:
  cluster, size, mass           label; number and mass of its members
  x, y, z, vx, vy, vz           centre of mass, mean velocity
  sigma_v, r_rms, r_max         dispersion of velocities; radii about the centre
  jx, jy, jz                    angular momentum for each unit of mass, length times velocity
  b_to_a, c_to_a                ratios of the axes
  --labels                      the particles in their order, all columns of IN, and label: the halo, from 0;
                                none -1

Keys of --json
  particles, halos              their numbers
  linking_length                in the unit of the positions
  particles_in_halos            number of particles in any
  largest                       members of the largest halo, with -o
  seconds                       time in all, s
  output, labels                files that were written

Examples
  # a catalogue of halos
  $ daskclust fof snapshot.hdf5 --b 0.2 --min-members 20 -o halos.parquet
  # particles with their halos, stars alone
  $ daskclust fof snapshot.hdf5 --linking-length 0.05 --particle-type stars --labels stars.parquet
  # points of your own in a box of 100
  $ daskclust fof points.csv --b 0.2 --boxsize 100 -o halos.csv
  # on four Dask workers, for a script
  $ daskclust fof snapshot.hdf5 --b 0.2 --workers 4 --json
  # on the workers of a cluster that runs
  $ daskclust fof snapshot.hdf5 --b 0.2 --scheduler tcp://host:8786 -o halos.parquet
""",
}


def fof(
    path: Annotated[Path, typer.Argument(metavar="IN", help="Particles: see Reads.")],
    b: Annotated[
        float | None,
        typer.Option(
            help="Linking length as a fraction of the mean separation: 0.2 or 0.168 usually.",
            rich_help_panel=CLUSTERING,
        ),
    ] = None,
    linking_length: Annotated[
        float | None,
        typer.Option(help="Or the linking length itself, in the unit of the positions.", rich_help_panel=CLUSTERING),
    ] = None,
    min_members: Annotated[
        int,
        typer.Option(help="Particles of a halo at least; catalogues usually have 20.", rich_help_panel=CLUSTERING),
    ] = 2,
    boxsize: Box = None,
    columns: Columns = None,
    units: Units = None,
    particle_type: Type = "dm",
    fill_missing: FillMissing = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            "--table",
            help="Catalogue of halos: .parquet, .csv, .h5, .npz or .zarr.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Particles with labels: .parquet, .csv, .h5, .npz or .zarr.", rich_help_panel=OUTPUT),
    ] = None,
    workers: Workers = 0,
    cuda: Cuda = False,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    chunks: Chunks = 1_000_000,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find halos: friends-of-friends groups of particles.

    Particles closer than the linking length are friends; friends of friends are one halo. Give --b or --linking-length.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.core.data.checks import check_positive, check_whole
    from daskclust.properties import halo_table

    began = time.perf_counter()
    running = Running(workers, cuda, scheduler, memory_limit)
    check_outputs(path, {"-o": output, "--labels": labels}, WRITABLE)
    if (b is None) == (linking_length is None):
        raise ValueError(
            f"got --b {b} and --linking-length {linking_length}; give --b or --linking-length, and not both"
        )
    check_positive(*(("--b", b) if linking_length is None else ("--linking-length", linking_length)))
    check_whole("--min-members", min_members, 1)
    box = box_of(boxsize)
    with progress(f"finding halos of {path.name}", quiet=quiet) as work, running.cluster(work):
        work.read(path)
        particles = open_points(path, particle_type, columns, units, running.chunks(chunks), fill_missing)
        particles = in_box(particles, box)
        n = particles.sizes["particle"]
        work.begin(f"linking {n:,} particles")
        found = ClustAccessor(running.give(particles)).fof(linking_length, b=b, min_members=min_members)
        wanted = found if output or labels else found[["label"]]
        result = running.results(wanted, particles, f"finding halos of {path.name}", (n, "particles"), work)
        label = result["label"]
        summary: dict[str, Any] = {
            "particles": int(label.size),
            "linking_length": label.attrs["linking_length"],
            "halos": count(label),
            "particles_in_halos": int((label >= 0).sum()),
        }
        table = halo_table(result) if output is not None else None
        if table is not None:
            summary["largest"] = int(table["size"].max()) if table.sizes["cluster"] else 0
        outputs = [(labels, lambda target: write_points(result, target))]
        if table is not None:
            outputs.insert(0, (output, lambda target: write_points(table, target)))
        write_all(outputs, work)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary |= {name: str(file) for name, file in (("output", output), ("labels", labels)) if file is not None}
    show(summary, as_json, f"Friends-of-friends: {path}", quiet=quiet)
