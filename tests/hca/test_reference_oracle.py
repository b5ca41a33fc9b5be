"""The oracle of Mahalanobis hierarchical clustering against the results of two other programs.

The package is compared with all of them, and with the oracle where theirs are not demanded: here some of each kind do.
"""

from __future__ import annotations

import pytest
from oracles.hca_brute import RULES, brute_linkage, check_linkage, first_departure
from oracles.hca_reference import DEMANDED, NAMES, NOT_DEMANDED, assert_equals_reference, load

pytestmark = pytest.mark.slow


def test_every_reference_file_is_listed(shared_data, mahalanobis_file):
    inputs = ("x_", "g_", "manifest")
    files = [*(shared_data / "cytometry" / "reference").glob("*.csv")]
    assert {path.stem for path in files if not path.stem.startswith(inputs)} == set(NAMES)
    assert set(NOT_DEMANDED) < set(NAMES)
    own = [path for path in files if mahalanobis_file(path.name) != path]
    assert all(mahalanobis_file(path.name).read_text() == path.read_text() for path in own)
    assert len(own) > 100


@pytest.mark.parametrize("name", [name for name in DEMANDED if "n100_d2" in name or name.startswith("serial")])
def test_demanded(mahalanobis_file, name):
    case = load(mahalanobis_file, name)
    assert_equals_reference(*brute_linkage(case.X, case.threshold, **case.options), case)
    if not case.first:
        check_linkage(case.merges, case.heights, case.X, case.threshold, rtol=case.rtol, **case.options)


@pytest.mark.parametrize("name", [name for name in NOT_DEMANDED if not name.endswith("_gNoIntra")])
def test_not_demanded_departs_at_a_cluster_of_p_points(mahalanobis_file, name):
    case = load(mahalanobis_file, name)
    # 1e-7: heights of the implementation in C lose digits next to distances of 1e8
    found = first_departure(case.merges, case.heights, case.X, case.threshold, rtol=1e-7, **case.options)
    assert found["why"] in ("not the nearest pair", "height")
    assert case.X.shape[1] in found["sizes"]


def test_replay_sees_a_wrong_merge_and_a_wrong_height(mahalanobis_file):
    case = load(mahalanobis_file, "useR_out_n100_d2_cmd_mahal_0.1_n0_g")
    swapped = case.merges[[1, 0, *range(2, len(case.merges))]]
    found = first_departure(swapped, case.heights, case.X, case.threshold, rtol=1e-7, **case.options)
    assert (found["step"], found["why"]) == (0, "not the nearest pair")
    heights = [*case.heights[:50], case.heights[50] * (1 + 1e-6), *case.heights[51:]]
    with pytest.raises(AssertionError, match="'step': 50"):
        check_linkage(case.merges, heights, case.X, case.threshold, rtol=1e-7, **case.options)


@pytest.mark.parametrize("rule", RULES)
def test_ties_break_by_the_smallest_pair(rule):
    for points, heights in (([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 1, 1]), ([[0, 0]] * 4, [0, 0, 0])):
        merges, got = brute_linkage(points, 4, rule=rule)
        assert merges.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert got.tolist() == heights
