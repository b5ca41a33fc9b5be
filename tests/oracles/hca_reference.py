"""The results that two other programs computed from given inputs: which there are, and which of them are demanded."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np

_RULES = {"mahal": "mahal", "mahal0": "mahal0", "euclid": "euclid", "euclidMahal": "euclid_mahal"}
_PARTS = re.compile(r"out_n(\d+)_d(\d+)_(cmd|fmd)_(\w+?)_([\d.]+)_n([01])(_g|_gNoIntra)?$")

# the data sets, and what was run on each: implementation in C (full distance only), and in R
_INPUTS = [f"n{n}_d{d}" for n, d in product((100, 300), (2, 3, 10))]
_IN_C = [
    *(f"{rule}_{t}_n0" for rule, t in product(_RULES, (0.1, 0.5))),
    *(f"{rule}_0.1_n1" for rule in ("mahal", "euclidMahal")),
    *(f"{rule}_{t}_n0_g" for rule, t in product(("mahal", "euclid", "euclidMahal"), (0.1, 0.5))),
    "mahal_0.5_n0_gNoIntra",
]
_IN_R = [f"{rule}_{t}_n0{g}" for rule, t, g in product(_RULES, (0.1, 0.5), ("", "_g")) if rule != "mahal0"]

NAMES = (
    *(f"out_{x}_fmd_{run}" for x, run in product(_INPUTS, _IN_C)),
    *(
        f"useR_out_{x}_{distance}_{run}"
        for x, distance, run in product(_INPUTS, ("cmd", "fmd"), _IN_R)
        if (x.endswith("_d2") or not run.startswith("mahal"))
        and not (x == "n100_d10" and distance == "fmd" and "_0.1_" in run)
    ),
    *(f"serial_n300_d{d}_T{T}" for d, T in product((2, 3), (20, 100))),
)

# A cluster of at most p points has a singular covariance. Whether it is, the R package asks a Cholesky factorisation,
# or the determinant (in R, for "mahal"); with p points, rank p - 1, rounding decides. Taken as regular, it makes
# distances of 1e6, or a scale that is a root of 1e-17. Here such a cluster is singular by its size. All cases below
# first depart at such a cluster: test_hca_reference_oracle.py shows it.
_SINGULAR = "mahal: the scale of a cluster of p points is the root of a determinant that is zero but for rounding"
_SINGULAR_GROUP = "mahal: the same for a group of at most p points, as the determinant in R is never exactly zero"
_SINGULAR_AT_T = "p = 10 points reach the threshold, 10: a singular covariance is inverted where rounding lets it be"
NOT_DEMANDED = {
    **{
        f"out_{x}_fmd_{run}": _SINGULAR
        for x, run in product(_INPUTS, _IN_C)
        if run.startswith("mahal_") and not x.endswith("_d2") and not run.endswith("_gNoIntra")
    },
    "out_n100_d10_fmd_mahal_0.5_n0_gNoIntra": _SINGULAR_GROUP,
    "out_n300_d10_fmd_mahal_0.5_n0_gNoIntra": _SINGULAR_GROUP,
    "out_n100_d10_fmd_mahal0_0.1_n0": _SINGULAR_AT_T,
    "out_n100_d10_fmd_euclidMahal_0.1_n0": _SINGULAR_AT_T,
    "out_n100_d10_fmd_euclidMahal_0.1_n1": _SINGULAR_AT_T,
    "out_n100_d10_fmd_euclidMahal_0.1_n0_g": _SINGULAR_AT_T,
    "useR_out_n100_d10_cmd_euclid_0.1_n0_g": _SINGULAR_AT_T,
}
DEMANDED = tuple(name for name in NAMES if name not in NOT_DEMANDED)


@dataclass
class Case:
    """An input, how it was clustered, and the result; `first` is the first merge that is demanded."""

    name: str
    X: np.ndarray
    threshold: float | int
    merges: np.ndarray
    heights: np.ndarray
    options: dict = field(default_factory=dict)  # rule, distance, normalize, apriori, noise_label, order
    rtol: float = 1e-7
    same_order: bool = True
    first: int = 0


def load(find, name):
    """Return the case of a result; `find` gives the path of a file, as the fixture `mahalanobis_file` does."""
    return _load_serial(find, name) if name.startswith("serial_") else _load_mhca(find, name)


def _load_mhca(find, name):
    n, d, distance, rule, threshold, normalize, groups = _PARTS.search(name).groups()
    X = _read(find(f"x_n{n}_d{d}.csv"))
    table = _read(find(f"{name}.csv"), skiprows=1)
    pairs = table[:, :2].astype(np.int64)
    # R's hclust: point i is -i, merge s is s, both from 1
    merges = np.sort(np.where(pairs < 0, -pairs - 1, len(X) + pairs - 1), axis=1)
    case = Case(name, X, float(threshold), merges, table[:, 2])
    case.options = {
        "rule": _RULES[rule],
        "distance": "full" if distance == "fmd" else "centroid",
        "normalize": normalize == "1",
    }
    if groups:
        labels = _read(find(f"g_n{n}_d{d}.csv")).astype(np.int64)
        case.options |= {"apriori": labels, "noise_label": 0, "order": "height"}
        if groups == "_gNoIntra":  # the merges within groups are made up there, of height 0
            case.first = merges_within(labels)
    return case


def _load_serial(find, name):
    n, d, T = (int(part) for part in re.findall(r"\d+", name))
    X = _read(find(f"x_n{n}_d{d}.csv")).astype(np.float32).astype(np.float64)  # the program reads float32
    table = _read(find(f"{name}.csv"))
    case = Case(name, X, T, np.sort(table[:, :2].astype(np.int64), axis=1), table[:, 2], {"rule": "thesis"})
    # it computes in float32, too: heights that differ by less than that rounding may come in either order
    case.rtol, case.same_order = 3e-5, False
    return case


def merges_within(labels):
    """Return how many merges make one cluster of each group; label 0 is no group."""
    return np.count_nonzero(labels) - np.unique(labels[labels != 0]).size


@cache
def _read(path, skiprows=0):
    values = np.loadtxt(path, delimiter=",", skiprows=skiprows)
    values.setflags(write=False)
    return values


def clusters_of(merges):
    """Return the members of the cluster that each merge makes."""
    members = {i: frozenset([i]) for i in range(len(merges) + 1)}
    for s, (a, b) in enumerate(np.asarray(merges).tolist()):
        members[len(merges) + 1 + s] = members[a] | members[b]
    return [members[len(merges) + 1 + s] for s in range(len(merges))]


def assert_equals_reference(merges, heights, case):
    """Assert that merges and heights are those of the file: in its order, or the same tree with the same heights."""
    if case.same_order and not case.first:
        np.testing.assert_array_equal(merges, case.merges)
        np.testing.assert_allclose(heights, case.heights, rtol=case.rtol, atol=0)
        return
    assert len(merges) == len(case.merges)
    got, wanted = clusters_of(merges)[case.first :], clusters_of(case.merges)[case.first :]
    if case.same_order:
        assert got == wanted
    got_heights = dict(zip(got, heights[case.first :], strict=True))
    wanted_heights = dict(zip(wanted, case.heights[case.first :], strict=True))
    assert got_heights.keys() == wanted_heights.keys()
    np.testing.assert_allclose([got_heights[k] for k in wanted], [*wanted_heights.values()], rtol=case.rtol, atol=0)
