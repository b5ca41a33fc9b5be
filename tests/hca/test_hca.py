"""MahalanobisHCA against two other programs, brute force and SciPy."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases.hca import DISTANCES, Case, assert_brute, assert_same_tree, cases, form, gaussians, is_clear, merges_of, tree
from cases.lanes import quick_first
from hypothesis import assume, example, given
from oracles.hca_brute import RULES, brute_linkage, check_linkage, first_departure, nested_linkage
from oracles.hca_reference import DEMANDED, NAMES, NOT_DEMANDED, assert_equals_reference, load
from scipy.cluster import hierarchy

from daskclust import MahalanobisHCA

every_combination = pytest.mark.parametrize(("rule", "distance"), list(product(RULES, DISTANCES)))
both_forms = pytest.mark.parametrize("how", ["plain", "pruned"])


def fit_reference(case, **others):
    options = {name: value for name, value in {**case.options, **others}.items() if value is not None}
    apriori = options.pop("apriori", None)
    return MahalanobisHCA(case.threshold, **options).fit(case.X.copy(), apriori=apriori)


@pytest.mark.parametrize("how", ["plain", pytest.param("pruned", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DEMANDED)
def test_demanded_files(mahalanobis_file, name, how):
    case = load(mahalanobis_file, name)
    with form(how, few=20):
        fitted = fit_reference(case)
    assert_equals_reference(*merges_of(fitted.linkage_), case)


@pytest.mark.parametrize("name", quick_first(sorted(NOT_DEMANDED, key=len), 6))
def test_other_files_have_the_answer_of_brute_force(mahalanobis_file, name):
    """They depart where rounding decides for the programs; not so here."""
    case = load(mahalanobis_file, name)
    wanted, heights = brute_linkage(case.X, case.threshold, **case.options)
    merges, got = merges_of(fit_reference(case).linkage_)
    np.testing.assert_array_equal(merges, wanted)
    np.testing.assert_allclose(got, heights, rtol=1e-7, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NOT_DEMANDED if not name.endswith("_gNoIntra")])
def test_other_files_depart_at_a_cluster_of_as_many_points_as_channels(mahalanobis_file, name):
    case = load(mahalanobis_file, name)
    # 1e-7: heights of the implementation in C lose digits next to distances of 1e8
    found = first_departure(case.merges, case.heights, case.X, case.threshold, rtol=1e-7, **case.options)
    assert found["why"] in ("not the nearest pair", "height")
    assert case.X.shape[1] in found["sizes"]


def test_every_reference_file_is_listed(shared_data, mahalanobis_file):
    inputs = ("x_", "g_", "manifest")
    files = [*(shared_data / "cytometry" / "reference").glob("*.csv")]
    assert {path.stem for path in files if not path.stem.startswith(inputs)} == set(NAMES)
    own = [path for path in files if mahalanobis_file(path.name) != path]
    assert all(mahalanobis_file(path.name).read_text() == path.read_text() for path in own)
    assert len(own) > 100


@every_combination
def test_equal_to_brute_force(rule, distance):
    for k, (normalize, threshold) in enumerate(product([False, True], [0.05, 0.3, 1.0, 1, 2, 3, 1000])):
        d, n = [(1, 30), (2, 60), (3, 45), (5, 60)][k % 4]
        X = gaussians(np.random.default_rng([d, n]), n, d, apart=3.0)
        assert_brute(Case(X, threshold, None, {"rule": rule, "distance": distance, "normalize": normalize}))


@given(cases())
@example(Case(np.full((20, 2), 3.0), 2, None, {"rule": "mahal", "distance": "full"}))
def test_drawn_cases_equal_brute_force(case):
    fitted = case.fit()
    merges, heights = merges_of(fitted.linkage_)
    if case.apriori is not None:
        grouped = case.apriori[case.apriori != -1]
        assert fitted.n_apriori_merges_ == len(grouped) - len(np.unique(grouped))
    assume(is_clear(case, merges))
    check_linkage(merges, heights, rtol=1e-7, **case.brute())


@pytest.mark.parametrize("rule", ["mahal", "mahal0"])
def test_clusters_of_d_points_and_fewer_are_singular_whatever_rounding_makes_of_them(rule):
    """They reach the threshold here. Far from the origin a factorisation finds pivots that are rounding."""
    for d, threshold, far in ((4, 2, 1e4), (4, 4, 1e4), (6, 2, 1e5), (6, 6, 1e5)):
        X = np.random.default_rng(2).normal(size=(35, d)) + far
        assert_brute(Case(X, threshold, None, {"rule": rule}))


@pytest.mark.parametrize("shape", [(32,), (7, 5), (3, 3, 3), (2, 2, 2, 2)], ids=str)
@both_forms
def test_ties_on_lattices_break_by_the_smallest_ids(shape, how):
    """Without shapes sums are exact here, means rounded in one way, and distances that tie do to the last bit."""
    grid = np.stack(np.meshgrid(*[np.arange(k, dtype=float) for k in shape], indexing="ij"), axis=-1)
    grid = grid.reshape(-1, len(shape))
    rng = np.random.default_rng(0)
    for points in (grid, np.concatenate([grid, grid]), rng.permutation(grid), rng.permutation(grid) * 2 - 3):
        case = Case(points, len(points) + 1)
        groups = replace(case, apriori=np.arange(len(points)) % 3, options={"order": "groups"})
        with form(how, few=3):
            for each in (case, groups, replace(groups, options={})):
                merges, heights = merges_of(each.fit().linkage_)
                wanted, wanted_heights = brute_linkage(**each.brute())
                np.testing.assert_array_equal(merges, wanted)
                np.testing.assert_array_equal(heights, wanted_heights)


@every_combination
def test_levels_equal_brute_force(rule, distance):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        fine = rng.integers(0, 12, 80)
        coarse = rng.integers(-5, 3, 12)[fine] * 1000 + 7
        fine[rng.random(80) < 0.1] = -1  # in no fine cluster, but in a coarse one
        alone = rng.random(80) < 0.1
        fine, coarse = np.where(alone, -1, fine), np.where(alone, -1, coarse)
        top = np.where(coarse == -1, -1, coarse > -2000)
        case = Case(gaussians(rng, 80, 2 + seed), 0.2, np.stack([fine, coarse, top], axis=1))
        case.options = {"rule": rule, "distance": distance, "normalize": seed == 2, "order": "groups"}
        fitted = case.fit()
        merges, heights = merges_of(fitted.linkage_)
        wanted, wanted_heights = nested_linkage(**case.brute())
        np.testing.assert_array_equal(merges, wanted)
        np.testing.assert_allclose(heights, wanted_heights, rtol=1e-9)
        case.options["order"] = "height"
        assert_same_tree(case.fit().linkage_, fitted.linkage_)


@pytest.mark.parametrize("distance", DISTANCES)
def test_linear_maps_change_nothing_once_all_clusters_have_shapes(distance):
    rng = np.random.default_rng(2)
    apriori = np.repeat(np.arange(6), 20)
    X = gaussians(rng, 6, 3)[apriori] * 4 + rng.normal(size=(120, 3)) @ np.diag([1, 0.2, 2])
    turn = rng.normal(size=(3, 3))
    # the merges within clusters are given, by channels of one point each; the last five are of their roots
    last = []
    for points in (X, X @ turn + 5):
        case = Case(points, 20, apriori, {"rule": "euclid_mahal", "distance": distance, "order": "groups"})
        last.append(list(tree(case.fit().linkage_).items())[-5:])
    assert [members for members, _ in last[0]] == [members for members, _ in last[1]]
    np.testing.assert_allclose([h for _, h in last[0]], [h for _, h in last[1]], rtol=1e-7)


@both_forms
@pytest.mark.parametrize(("n", "d"), [(40, 1), (300, 3), (500, 14)])
def test_without_any_shape_it_is_centroid_linkage(n, d, how):
    X = gaussians(np.random.default_rng(d), n, d)
    wanted = hierarchy.linkage(X, "centroid")
    with form(how, few=64):
        for rule in ("thesis", "euclid"):
            fitted = MahalanobisHCA(n + 1, rule=rule).fit(X)
            got = merges_of(fitted.linkage_)[0]
            np.testing.assert_array_equal(got, np.sort(wanted[:, :2], axis=1))
            np.testing.assert_allclose(fitted.linkage_[:, 2], wanted[:, 2], rtol=1e-7)
            np.testing.assert_array_equal(fitted.linkage_[:, 3], wanted[:, 3])
