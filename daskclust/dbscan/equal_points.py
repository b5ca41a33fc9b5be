"""The searches that DBSCAN is made of, where points are equal: each place is looked at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST
from daskclust.core.space.bucket_sort import in_one_bucket
from daskclust.core.space.equal_rows import RowPlaces
from daskclust.core.space.grid import PAD
from daskclust.dbscan.kernels.core_points import sum_weights


class PlaceSearch:
    """Points of which some are equal, on the host: `search` knows their places (see `BlockSearch`)."""

    def __init__(self, search: Any, places: RowPlaces) -> None:
        self._search, self._places, self.n_cells, self.in_order = search, places, search.n_cells, False
        self.memory = HOST
        self._expand()

    def _expand(self) -> None:
        """Put the members in the place of sorted places."""
        sorted_places = self._search.order[: len(self._places.counts)]
        counts = self._places.counts[sorted_places]
        self._begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._place = np.repeat(np.arange(len(counts)), counts)  # of each sorted point
        shift = self._places.begin[:-1][sorted_places] - self._begin[:-1]
        self.order = np.zeros(len(self._place) + PAD, np.int32)
        self.order[: len(self._place)] = self._places.members[np.arange(len(self._place)) + shift[self._place]]
        self.way_back = in_one_bucket(self.order[: len(self._place)])
        self.start, self.stop = self._begin[self._search.start], self._begin[self._search.stop]

    @property
    def positions(self) -> NDArray[Any]:
        """Coordinates (d, n) of the sorted points."""
        return np.asarray(self._search.positions[:, self._place])

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours; the arguments are those of the places' search."""
        counts, rest = self._places.counts.astype(np.float64), np.empty(0)
        if weight is not None:
            rest = np.empty(len(counts))
            sum_weights.run(len(counts), self._places.begin, self._places.members, weight[0], counts, rest)
        self._search.find_core(enough, (counts, rest), exact_zone)
        self._expand()

    def link(self) -> Any:
        """Return the root of the set of each cell."""
        return self._search.link()

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number, above that in `above`, of a core point within eps of each other point."""
        first = self._begin[:-1]
        found = label[first]
        self._search.label_border(number, above[first] if len(above) else above, found)
        label[:] = found[self._place]
