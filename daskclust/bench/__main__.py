"""Run systems on worker processes and write a record for the page about scaling, with a table of its runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from daskclust.bench import bench_scaling, scaling_markdown
from daskclust.bench._scaling_data import ORDERS, SYSTEMS


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a record.

    Parameters
    ----------
    arguments : sequence of str, optional
        In the place of those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m daskclust.bench", description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which, of the default: %(default)s")
    parser.add_argument("--sizes", help="numbers of points, e.g. 1e6,4e6; default: three for each system")
    parser.add_argument("--blocks", help="points in a chunk, e.g. 1e5,5e5; default: two for each system")
    parser.add_argument("--workers", default="1,2,4", help="numbers of processes; default: %(default)s")
    parser.add_argument("--orders", default=",".join(ORDERS), help="default: %(default)s")
    parser.add_argument("--memory-limit", default="2GB", help="of a worker; default: %(default)s")
    parser.add_argument("--scheduler", help="address of one that runs, in the place of processes here")
    parser.add_argument("-o", "--output", help="file for the report, JSON; default: the table alone")
    given = parser.parse_args(arguments)
    report = bench_scaling(
        given.systems.split(","),
        _numbers(given.sizes),
        blocks=_numbers(given.blocks),
        workers=_numbers(given.workers) or (),
        orders=given.orders.split(","),
        memory_limit=given.memory_limit,
        scheduler=given.scheduler,
        say=lambda line: sys.stderr.write(f"{line}\n"),
    )
    if given.output:
        text = json.dumps(report, indent=1) + "\n"
        with open(f"{given.output}.part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{given.output}.part", given.output)
    sys.stdout.write(scaling_markdown(report) + "\n")


def _numbers(text: str | None) -> list[int] | None:
    return None if text is None else [int(float(number)) for number in text.split(",")]


if __name__ == "__main__":
    main()
