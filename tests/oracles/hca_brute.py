"""Mahalanobis hierarchical clustering by brute force: every shape and every distance straight from the members.

The rule "thesis" is that of gmhclust (definitions 7 to 11 of the thesis that describes it), the others are those of the
R package mhca. Nothing is updated from merge to merge but the table of distances, which loses two rows and gains one.
"""

import numpy as np

RULES = ("thesis", "mahal", "mahal0", "euclid", "euclid_mahal")
SINGULAR = 1e-13  # a pivot of a Cholesky factorisation counts as zero up to this part of the largest variance


def brute_linkage(X, threshold, *, order="height", **options):
    """Return merges, int64 (n - 1, 2) sorted pairs of ids, and heights; merge s makes the cluster with id n + s.

    threshold is a fraction of n (float) or a number of points (int). Groups (apriori) are clustered first, on their
    own; their merges come by height, each group's own order kept, or group by group in the order of labels ("groups").
    Other options are rule, distance, normalize and noise_label.
    """
    forest = _Forest(X, threshold, **options)
    merges, heights = [], []
    for new in range(len(X), 2 * len(X) - 1):
        active = forest.active()
        level = active[0] if order == "groups" else min(active, key=lambda level: level.nearest()[0])
        height, pair = level.nearest()
        level.merge(*pair, new)
        merges.append(pair)
        heights.append(height)
    return np.array(merges, np.int64).reshape(-1, 2), np.array(heights, np.float64)


def check_linkage(merges, heights, X, threshold, *, rtol, **options):
    """Follow the given merges and assert that each was a nearest pair, and its height right, within rtol.

    This is the check where distances tie: two programs that round differently may then differ in all that follows.
    """
    assert np.shape(merges) == (len(X) - 1, 2)
    assert np.shape(heights) == (len(X) - 1,)
    found = first_departure(merges, heights, X, threshold, rtol=rtol, **options)
    assert found is None, found


def first_departure(merges, heights, X, threshold, *, rtol, order="height", **options):
    """Return what is wrong with the first merge that is not right within rtol: step, why, the pairs, their sizes."""
    forest = _Forest(X, threshold, **options)
    for step, (a, b) in enumerate(np.asarray(merges).tolist()):
        active = forest.active()
        level = next((level for level in active if a in level.ids and b in level.ids), None)
        if level is None or a >= b:
            return {"step": step, "why": "no such pair", "pair": (a, b)}
        due = active[:1] if order == "groups" else active
        smallest, nearest = min(candidate.nearest() for candidate in due)
        here = level.distance_between(a, b)
        found = {"step": step, "pair": (a, b), "nearest": nearest, "distances": (here, smallest)}
        found["sizes"] = [forest.size_of(k) for k in (a, b, *nearest)]
        if level not in due:
            return found | {"why": "not the turn of this group"}
        if here > (1 + rtol) * smallest:
            return found | {"why": "not the nearest pair"}
        if not abs(heights[step] - here) <= rtol * here:
            return found | {"why": "height", "height": heights[step]}
        level.merge(a, b, len(X) + step)
    return None


def nested_linkage(X, threshold, apriori, *, rule="thesis", distance="centroid", normalize=False, **_):
    """Return merges and heights where `apriori` has levels, those of a level one cluster after the other."""
    n = len(X)
    T = threshold if isinstance(threshold, int) else threshold * n
    clusters, merges, heights = {i: [i] for i in range(n)}, [], []
    columns = np.concatenate([apriori, np.zeros((n, 1), np.int64)], axis=1)  # the last level: all in one
    for labels in columns.T:
        of = {k: labels[members[0]] for k, members in clusters.items()}
        for label in sorted(set(of.values()) - {-1}):
            own = _Level(X, T, rule, distance, normalize, {k: clusters.pop(k) for k in of if of[k] == label})
            while len(own.ids) > 1:
                height, pair = own.nearest()
                own.merge(*pair, n + len(merges))
                merges.append(pair)
                heights.append(height)
            clusters[own.ids[0]] = own.members[0]
    return np.array(merges, np.int64).reshape(-1, 2), np.array(heights)


class _Forest:
    """The levels of a clustering: one for each group, then one for their roots and the points of no group."""

    def __init__(
        self, X, threshold, *, rule="thesis", distance="centroid", normalize=False, apriori=None, noise_label=None
    ):
        n = len(X)
        T = float(threshold) if isinstance(threshold, (int, np.integer)) else threshold * n
        X = np.asarray(X, np.float64)
        self.level = lambda clusters: _Level(X, T, rule, distance, normalize, clusters)
        labels = np.full(n, noise_label) if apriori is None else np.asarray(apriori)
        kept = [] if apriori is None else [label for label in np.unique(labels) if label != noise_label]
        self.groups = [self.level({i: [i] for i in np.flatnonzero(labels == label).tolist()}) for label in kept]
        self.points = {i: [i] for i in range(n) if labels[i] not in kept}
        self.last = None

    def active(self):
        """Return the levels that may merge now: those of unfinished groups, and when there are none the last one."""
        groups = [group for group in self.groups if len(group.ids) > 1]
        if groups:
            return groups
        if self.last is None:
            roots = {group.ids[0]: group.members[0] for group in self.groups}
            self.last = self.level(self.points | roots)
        return [self.last]

    def size_of(self, k):
        """Return the number of members of cluster k."""
        levels = self.groups if self.last is None else [self.last]
        return next((len(level.members[level.ids.index(k)]) for level in levels if k in level.ids), 1)


class _Level:
    """The clusters that may merge with one another, in the order of their ids, and the distances between all."""

    def __init__(self, X, T, rule, distance, normalize, clusters):
        self.X, self.T, self.rule, self.distance, self.normalize = X, T, rule, distance, normalize
        self.ids = sorted(clusters)
        self.members = [clusters[k] for k in self.ids]
        self.switched = self.all_reached()
        self.measure()

    def all_reached(self):
        """Tell whether every cluster has reached the threshold; two points never have, unless every point has."""
        return all(self.T <= 1 or (len(m) >= self.T and len(m) != 2) for m in self.members)

    def measure(self):
        """Find all shapes and all distances anew."""
        self.centroids = np.array([self.X[m].mean(axis=0) for m in self.members])
        self.metrics = np.array([self.metric_of(m) for m in self.members])
        self.table = np.full((len(self.ids), len(self.ids)), np.inf)  # above the diagonal: row id < column id
        for j in range(1, len(self.ids)):
            self.table[:j, j] = self.distances_before(j)

    def metric_of(self, members):
        """Return the matrix M with which a cluster measures: a difference v has the length |v M|."""
        M = whitening(self.X[members], self.T, self.rule)
        if self.rule == "thesis" or (self.switched and not self.normalize):
            return M
        if self.rule == "euclid" and not self.switched:
            return np.eye(len(M))
        return M / np.exp(np.linalg.slogdet(M)[1] / len(M))

    def distances_before(self, j):
        """Return the distances between cluster j and each of those before it: the means of both directions."""
        between = self.centroids[:j] - self.centroids[j]
        if self.distance == "centroid":
            to_j = np.linalg.norm(between @ self.metrics[j], axis=1)
            from_j = np.linalg.norm(between[:, None] @ self.metrics[:j], axis=2)[:, 0]
        else:
            lengths = np.linalg.norm((self.X - self.centroids[j]) @ self.metrics[j], axis=1)
            to_j = np.array([lengths[m].mean() for m in self.members[:j]])
            differences = self.X[self.members[j]] - self.centroids[:j, None]
            from_j = np.linalg.norm(differences @ self.metrics[:j], axis=2).mean(axis=1)
            if self.rule == "thesis":  # definition 11: to a cluster below the threshold, from centroid to centroid
                apart = np.linalg.norm(between, axis=1)
                to_j = apart if len(self.members[j]) < self.T else to_j
                from_j = np.where([len(m) < self.T for m in self.members[:j]], apart, from_j)
        return (to_j + from_j) / 2

    def nearest(self):
        """Return the smallest distance and its pair of ids, of several the smallest pair."""
        row, column = np.unravel_index(np.argmin(self.table), self.table.shape)
        return float(self.table[row, column]), (self.ids[row], self.ids[column])

    def distance_between(self, a, b):
        """Return the distance between the clusters with the ids a < b."""
        return float(self.table[self.ids.index(a), self.ids.index(b)])

    def merge(self, a, b, new):
        """Put the cluster with the id new, larger than all others, in the place of the clusters a and b."""
        old = [self.ids.index(a), self.ids.index(b)]
        kept = [k for k in range(len(self.ids)) if k not in old]
        joined = self.members[old[0]] + self.members[old[1]]
        self.ids = [self.ids[k] for k in kept] + [new]
        self.members = [self.members[k] for k in kept] + [joined]
        if not self.switched and self.all_reached():
            self.switched = True
            self.measure()
            return
        self.centroids = np.vstack([self.centroids[kept], self.X[joined].mean(axis=0)])
        self.metrics = np.concatenate([self.metrics[kept], self.metric_of(joined)[None]])
        table = np.full((len(self.ids), len(self.ids)), np.inf)
        table[:-1, :-1] = self.table[np.ix_(kept, kept)]
        table[:-1, -1] = self.distances_before(len(kept))
        self.table = table


def whitening(points, T, rule):
    """Return W with W W' the inverse of the covariance that a cluster has under the rule, or the identity."""
    size, p = points.shape
    weight = min(1.0, size / T)
    if size == 1 or (size == 2 and rule != "thesis") or (weight < 1 and rule not in ("mahal", "mahal0")):
        return np.eye(p)
    covariance = np.cov(points.T, bias=rule == "thesis").reshape(p, p)
    # of p points or fewer the rank is below p, whatever rounding makes of a factorisation
    factor = _cholesky(covariance) if size > p else None
    if weight < 1:
        scale = 1.0
        if rule == "mahal" and factor is not None:
            scale = np.exp(np.linalg.slogdet(covariance)[1] / p)
        factor = _cholesky(weight * covariance + (1 - weight) * scale * np.eye(p))
    return np.eye(p) if factor is None else np.linalg.inv(factor).T


def _cholesky(matrix):
    """Return the lower Cholesky factor of a matrix, or None where the matrix is singular."""
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return factor if np.diag(factor).min() ** 2 > SINGULAR * np.diag(matrix).max() else None
