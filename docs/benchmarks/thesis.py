"""The experiments of the thesis on Mahalanobis hierarchical clustering that are not about speed against n.

    python docs/benchmarks/thesis.py docs/benchmarks/thesis-cpu.json

How time depends on the size of apriori clusters of a given number of points (figure 3.5, there with 5 000 000), and how
alike the hierarchies of two rules are (figures 3.6 and 3.7: the correlation of point heights, definition 20). One run
of each after a warm-up, on all threads.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import numba

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from bench.cases.hca import cells_of
from bench.timing import median_ms

from daskclust import MahalanobisHCA
from daskclust.machine import describe
from daskclust.metrics import point_height_correlation

GROUP_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000)
_SAMPLE = 4400  # the thesis compares hierarchies of a tenth of its smallest data set


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=int, default=_SAMPLE, help="points whose hierarchies are compared")
    parser.add_argument("--total", type=int, default=1_000_000, help="points that are divided into apriori clusters")
    asked = parser.parse_args(arguments)
    parameters = {"size": asked.size, "total": asked.total, "repeats": 1, "threads": int(numba.get_num_threads())}
    report = {
        "system": "thesis",
        "device": "cpu",
        "parameters": parameters,
        "machine": describe(),
        "ratios": [_divided(asked.total, size) for size in GROUP_SIZES if size <= asked.total],
        "heights": _heights(asked.size),
    }
    asked.output.write_text(json.dumps(report, indent=1) + "\n")


def _divided(total, size):
    cells = cells_of("apriori", (total // size, size))
    ms = median_ms(partial(MahalanobisHCA(size).fit, cells.X, apriori=cells.apriori))
    return {"size": size, "groups": total // size, "points": len(cells.X), "total_ms": ms}


def _heights(size):
    """Return how alike the rules "thesis" and "mahal" are, at half the points or the size of the apriori clusters."""
    found = []
    for kind, amount in (("gaussian", size), ("cytometry", size), ("apriori", (max(size // 100, 2), 100))):
        cells = cells_of(kind, amount)
        one, other = (
            MahalanobisHCA(cells.threshold, rule=rule).fit(cells.X, apriori=cells.apriori).linkage_
            for rule in ("thesis", "mahal")
        )
        found.append({"kind": kind, "points": len(cells.X), "correlation": point_height_correlation(one, other)})
    return found


if __name__ == "__main__":
    main()
