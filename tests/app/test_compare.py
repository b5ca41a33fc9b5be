"""Two clusterings side by side: what moved, what was split or merged."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases.explorer import DATA, glyphs, made, view

import daskclust.app
from daskclust.app.page.design import forget_sheets
from daskclust.app.tools.compare import compare, contingency, match
from daskclust.app.tools.comparing import Changes, Kept, KeptPicture
from daskclust.app.views.picture import Picture
from daskclust.metrics import adjusted_rand_index


def labels(*runs: tuple[int, int]) -> Any:
    """Return labels of runs of points: cluster, number."""
    return np.concatenate([np.full(number, cluster, np.int64) for cluster, number in runs])


def test_a_page_is_sent_its_sheets_anew_and_where_panel_keeps_none_nothing_is_done() -> None:
    document, other = object(), object()
    forget_sheets(state := SimpleNamespace(curdoc=document, _stylesheets={document: 1, other: 2}))
    assert state._stylesheets == {other: 2}
    forget_sheets(SimpleNamespace(curdoc=None, _stylesheets={}))
    forget_sheets(SimpleNamespace(curdoc=document))


def test_other_numbers_of_the_same_clusters_move_nothing() -> None:
    before = labels((0, 5), (1, 4), (-1, 2), (2, 1))
    after = labels((2, 5), (0, 4), (-1, 2), (1, 1))
    found = compare(before, after)
    assert not found.moved.any()
    assert len(found.changes) == 0
    assert found.words == "ARI 1.00; 0 of 12 points moved (0.0%); clusters 3 → 3"


def test_split_merged_appeared_and_vanished() -> None:
    before = labels((0, 10), (0, 6), (1, 5), (2, 4), (-1, 3), (3, 2))
    after = labels((0, 10), (1, 6), (2, 5), (2, 4), (3, 3), (-1, 2))
    found = compare(before, after)
    rows = [tuple(row) for row in found.changes.itertuples(index=False)]
    assert rows == [
        ("split", "0", "0, 1", 16), ("merged", "1, 2", "2", 9), ("appeared", "", "3", 3), ("vanished", "3", "", 2),
    ]  # fmt: skip
    # the smaller part of each moved, and what was noise or is noise now
    np.testing.assert_array_equal(found.moved, labels((0, 10), (1, 6), (0, 5), (1, 4), (1, 3), (1, 2)).astype(bool))
    assert found.words.endswith("15 of 30 points moved (50.0%); clusters 4 → 4")


def test_a_few_points_across_a_border_change_no_cluster() -> None:
    before = labels((0, 1000), (1, 1000))
    after = before.copy()
    after[:4] = 1
    found = compare(before, after)
    assert len(found.changes) == 0
    assert found.moved.sum() == 4
    assert found.ari == adjusted_rand_index(before, after)
    assert "ARI 0.99" in found.words
    assert "4 of 2,000 points moved (0.2%)" in found.words


@pytest.mark.parametrize("seed", range(5))
def test_the_match_keeps_as_many_points_as_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.integers(-1, 4, 60), rng.integers(-1, 5, 60)
    table = contingency(before, after)
    counts = table.toarray()
    best = max(sum(counts[k, other] for k, other in enumerate(each)) for each in itertools.permutations(range(5), 4))
    found = match(table)
    kept = found >= 0
    assert counts[np.flatnonzero(kept), found[kept]].sum() == best
    assert len(set(found[kept].tolist())) == kept.sum()


@pytest.mark.parametrize("other", [labels((-1, 6)), labels((0, 6)), labels((0, 3), (1, 3))])
def test_all_noise_on_one_side(other: Any) -> None:
    noise = labels((-1, 6))
    for one, two in ((noise, other), (other, noise)):
        found = compare(one, two)
        assert found.moved.sum() == np.count_nonzero(other >= 0)
        assert set(found.changes["change"]) <= {"appeared", "vanished"}


def test_a_kept_clustering_is_seen_beside_the_present_one() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    before = explorer.state.present.label
    explorer._compare(Kept(explorer.state.present))
    explorer._set({"rhoc": 20.0})
    after = explorer.state.present.label
    assert compare(before, after).words in view(explorer, Changes)._words.object
    kept, present = view(explorer, KeptPicture), view(explorer, Picture)
    for one, two in ((kept, present), (present, kept)):
        one._canvas.figure.x_range.start -= 1.0
        one._canvas.figure.y_range.end += 2.0
        assert one._canvas.ranges == two._canvas.ranges
    # clusters that match have one colour in both
    marks = [sorted(zip(each["x"], each["y"], each["color"], strict=True)) for each in marks_of(explorer)]
    alike = ~compare(before, after).moved
    same = sum(one == two for one, two in zip(*marks, strict=True))
    assert alike.sum() <= same < len(alike)
    explorer._compare(None)
    assert not any(isinstance(each, KeptPicture) for each in explorer._views)


def marks_of(explorer: Any) -> list[dict[str, Any]]:
    """Return the points of the present picture, and of the one that was kept."""
    return [glyphs(explorer, kind)[1] for kind in (Picture, KeptPicture)]


def test_points_that_moved_are_chosen_and_made_by_lines() -> None:
    explorer = daskclust.app.explore(DATA["clue"]())
    kept = Kept(explorer.state.present)
    explorer._compare(kept)
    explorer._set({"rhoc": 20.0})
    explorer._on_choice(kept.moved())
    state = explorer.state
    np.testing.assert_array_equal(state.mask, compare(kept.outcome.label, state.present.label).moved)
    np.testing.assert_array_equal(made(state)["inside"], state.mask)
    state.set(rhoc=5.0)
    state.update()
    np.testing.assert_array_equal(made(state)["inside"], state.mask)


def test_a_kept_clustering_of_another_system() -> None:
    explorer = daskclust.app.explore(DATA["dbscan"](), "dbscan")
    before = explorer.state.present.label
    explorer._compare(Kept(explorer.state.present))
    explorer._on_system("fof")
    assert compare(before, explorer.state.present.label).words in view(explorer, Changes)._words.object
    explorer._draw(("y", "z"))
    assert view(explorer, KeptPicture).axes == ("y", "z")
