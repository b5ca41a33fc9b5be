"""Event building's rules, each once (Celko et al. 2025, sections 2 and 4).

All kernels take hits in the order of time. ``parent`` is a union-find forest whose roots are the first hit of their
cluster. `join_in_order` is the definition, for any rule; for the local rule there are quicker forms, `join_recent` and
`join_borders` here and `join_window` for CUDA, in `window.py`; tests hold them together.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_min, copy_four, lowest_bit, select
from daskclust.core.device.unionfind import root_of, unite
from daskclust.events.kernels.pixels import CLOSED, FREE, OWN, ROW, beside, pixel, place_beside, table_of

BLOCK = 64  # hits that `join_recent` looks up before it joins any
ROWS, MASKS = BLOCK * ROW + 32, BLOCK + 32  # room of a piece: no two threads write to one cache line


# ------------------------------------------------ whether hit i may join the cluster of an earlier hit j: condition iii
@body
def near_hit(hits, i, j, root, latest, dt_max):
    """Rule iii a, local: within dt_max of a touching hit."""
    return hits.toa[i] - hits.toa[j] <= dt_max


@body
def near_latest(hits, i, j, root, latest, dt_max):
    """Rule iii b, global: within dt_max of the cluster's latest hit."""
    return hits.toa[i] - hits.toa[latest[root]] <= dt_max


@body
def near_earliest(hits, i, j, root, latest, dt_max):
    """Rule iii c, static: within dt_max of the cluster's earliest hit."""
    return hits.toa[i] - hits.toa[root] <= dt_max


@body
def may_join(hits, i, j, root, latest, dt_max):
    """Bound to one of the three."""
    return near_hit(hits, i, j, root, latest, dt_max)


@body
def join(hits, i, j, parent, latest, dt_max):
    """Join hit i, the latest so far, with the cluster of hit j if the rule allows it; return whether it does."""
    root = root_of(parent, j)
    if not may_join(hits, i, j, root, latest, dt_max):
        return False
    own = root_of(parent, i)
    low = min(own, root)
    parent[max(own, root)] = low
    latest[low] = i
    return True


@kernel
def join_in_order(piece, begin, hits, dt_max, matrix, cells, last, latest, parent):
    """Join hits begin[piece] to begin[piece + 1] with those of them before, any rule (algorithm 1).

    The last hit of each pixel stands for all before it: an earlier one's cluster, if it was still open then, is the
    last one's, and if it was not, no later hit may join it.
    """
    first, size = table_of(piece, begin, cells)
    for q in range(first, first + size):
        last[q] = FREE
    for i in range(begin[piece], begin[piece + 1]):
        parent[i] = i
        latest[i] = i
        place = pixel(hits, i, matrix)
        for bit in range(ROW - 1):
            if (matrix.touching >> bit) & 1:
                q = place_beside(place, hits, i, bit, matrix, last, first, size)
                if last[q] >= 0 and not join(hits, i, last[q], parent, latest, dt_max):
                    last[q] = CLOSED - last[q]  # no later hit may join it either
        last[place_beside(place, hits, i, OWN, matrix, last, first, size)] = i


# --------------------------------------------------------------------------------------------- the local rule, for CPUs
@kernel
def join_recent(piece, begin, hits, dt_max, matrix, cells, last, rows, masks, parent, roots):
    """Join hits begin[piece] to begin[piece + 1] with those of them before, local rule.

    Hits are taken in blocks. First the last hits of all touching pixels are copied, without a branch: what is older
    than `recent`, dt_max before the block, is masked out four at a time. Then the few others are looked at: the
    first of them takes no branch either. roots[piece] becomes the number of clusters.
    """
    first, toa = piece * cells, hits.toa
    for q in range(first, first + cells):
        last[q] = -1
    start, recent, joined = begin[piece], begin[piece], 0
    while start < begin[piece + 1]:
        end = min(start + BLOCK, begin[piece + 1])
        while toa[start] - toa[recent] > dt_max:
            recent += 1
        least = np.int32(recent)
        at, mask_at = np.uint64(piece * ROWS), np.uint64(piece * MASKS)  # unsigned: no place counts from the end
        for i in range(start, end):
            place = first + pixel(hits, i, matrix)
            above = copy_four(last, place - matrix.stride - 1, rows, at, least)
            beside = copy_four(last, place - 1, rows, at + np.uint64(4), least)
            below = copy_four(last, place + matrix.stride - 1, rows, at + np.uint64(8), least)
            masks[mask_at] = (above | beside << 4 | below << 8) & matrix.touching
            last[np.uint64(place)] = i
            at += np.uint64(ROW)
            mask_at += np.uint64(1)
        at, mask_at = np.uint64(piece * ROWS), np.uint64(piece * MASKS)
        for i in range(start, end):
            mask, own = masks[mask_at], np.uint32(i)
            j = select(mask != 0, np.uint32(rows[at + np.uint64(lowest_bit(mask | 1 << ROW))]), own)
            parent[own] = own
            above = select(toa[i] - toa[j] <= dt_max, np.uint32(parent[j]), own)
            joined += np.int64(above != own)
            mask &= mask - np.int32(1)
            while mask:
                j = np.uint32(rows[at + np.uint64(lowest_bit(mask))])
                mask &= mask - np.int32(1)
                if toa[i] - toa[j] <= dt_max and np.uint32(parent[j]) != above:
                    j, root = root_of(parent, j), root_of(parent, above)
                    joined += np.int64(j != root)
                    above = min(j, root)
                    parent[max(j, root)] = above
            parent[own] = above
            at += np.uint64(ROW)
            mask_at += np.uint64(1)
        start = end
    roots[piece] = begin[piece + 1] - begin[piece] - joined


@kernel
def join_borders(_once, begin, hits, dt_max, matrix, cells, last, parent, roots):
    """Join each piece's first hits with the hits before the piece, local rule (algorithm 2, step 5).

    Where any are joined, roots[0] becomes -1: roots are to be counted anew.
    """
    for piece in range(1, len(begin) - 1):
        border = begin[piece]
        if border == 0 or border == begin[piece + 1] or hits.toa[border] - hits.toa[border - 1] > dt_max:
            continue  # a quiet gap
        for q in range(cells):
            last[q] = -1
        j = border - 1
        while j > 0 and hits.toa[border] - hits.toa[j - 1] <= dt_max:
            j -= 1
        while j < border:
            last[pixel(hits, j, matrix)] = j
            j += 1
        i = border
        while i < begin[piece + 1] and hits.toa[i] - hits.toa[border - 1] <= dt_max:
            place = pixel(hits, i, matrix)
            for bit in range(ROW - 1):
                if (matrix.touching >> bit) & 1:
                    j = last[beside(place, bit, matrix.stride)]
                    if j >= 0 and hits.toa[i] - hits.toa[j] <= dt_max:
                        unite(parent, i, j)
                        roots[0] = -1
            i += 1


# ------------------------------------------------------------------------------------------------------------ numbering
@kernel
def count_roots(piece, begin, parent, roots, crossing):
    """Count the roots of a piece, and find where the hits end whose parent is before the piece."""
    total, start, after = np.int32(0), np.int32(begin[piece]), np.int32(begin[piece])
    for i in range(begin[piece], begin[piece + 1]):
        above, own = parent[np.uint64(i)], np.int32(i)
        total += np.int32(above == own)
        after = max(after, own + np.int32(1) if above < start else np.int32(0))
    roots[piece] = total
    crossing[piece] = after


@kernel
def number(piece, begin, base, crossing, parent, labels, ends):
    """Give numbers to the clusters that begin in a piece from base[piece] on; a hit has the number of its parent.

    `parent` becomes the labels too, which is measured to be quicker than to look them up among `labels`. A hit whose
    cluster began before the piece gets -1 - h of a hit h there. ends[piece] is the next number.
    """
    fresh, start = np.int32(base[piece]), begin[piece]
    for i in range(start, crossing[piece]):
        above = np.int64(parent[i])
        if above < start:
            parent[i] = np.int32(-1 - above)
        elif above == i:
            parent[i] = fresh
            fresh += np.int32(1)
        else:
            parent[i] = parent[above]
        labels[i] = parent[i]
    for i in range(crossing[piece], begin[piece + 1]):
        above = np.int64(parent[i])
        known = parent[np.uint64(above)]  # unsigned: no place counts from the end
        # which hits begin a cluster cannot be foretold, so a mask in place of a branch: 0 for them, all bits for others
        follows = np.int32((above - i) >> 63)
        label = fresh + ((known - fresh) & follows)
        parent[i] = label
        labels[i] = label
        fresh += np.int32(1) + follows
    ends[piece] = fresh


@kernel
def resolve(piece, begin, crossing, labels):
    """Give a number to the hits that `number` left.

    Other threads do the same for hits that labels here point to: those are read before or after, and lead to one root.
    """
    if crossing[piece] > begin[piece]:
        for i in range(begin[piece], begin[piece + 1]):
            label = labels[i]
            while label < 0:
                label = labels[-1 - label]
            labels[i] = label


@kernel
def count_hits(i, labels, sizes):
    atomic_add(sizes, labels[i], 1)


@kernel
def mark_large(k, sizes, least, is_large):
    is_large[k] = np.int32(sizes[k] >= least)


@kernel
def renumber(i, sizes, least, large, labels):
    """Give hit i the number of its cluster among the large ones, or noise."""
    k = labels[i]
    labels[i] = large[k] - 1 if sizes[k] >= least else -1


@kernel
def put_back(i, order, labels, given):
    """Write the label of sorted hit i where the hit was given."""
    given[order[i]] = labels[i]


# --------------------------------------------------------------------------------------------------------------- survey
LOW, HIGH = 0, 3  # where the extent of x, y, chip stands among the facts
DESCENTS, BAD = 6, 7  # whether hits are earlier than the one before; whether times are no number
FACTS = 8


@body
def extent(values, start, end):
    """Return the smallest and the largest of some values."""
    low, high = values[start], values[start]
    for i in range(start, end):
        value = values[np.uint64(i)]  # unsigned: no place counts from the end, so the loop becomes SIMD
        low = value if value < low else low
        high = value if value > high else high
    return low, high


@kernel
def survey_piece(piece, begin, hits, facts):
    """Find the extent of the coordinates, and whether times ascend, for a piece of the hits."""
    start, end, toa = begin[piece], begin[piece + 1], hits.toa
    facts[piece, LOW], facts[piece, HIGH] = extent(hits.x, start, end)
    facts[piece, LOW + 1], facts[piece, HIGH + 1] = extent(hits.y, start, end)
    if len(hits.chip):
        facts[piece, LOW + 2], facts[piece, HIGH + 2] = extent(hits.chip, start, end)
    descents, bad = toa[start] < toa[max(start - 1, 0)], toa[start] - toa[start] != 0
    for i in range(start + 1, end):
        before, time = toa[np.uint64(i - 1)], toa[np.uint64(i)]
        descents |= time < before
        bad |= time - time != 0
    facts[piece, DESCENTS], facts[piece, BAD] = descents, bad


@kernel
def find_first(i, labels, firsts):
    """Lower the first hit of hit i's cluster to i."""
    atomic_min(firsts, labels[i], i)


@kernel
def list_firsts(_once, labels, firsts):
    """Write the first hit of each cluster; these are numbered by it, and `firsts` has room for one more."""
    known = np.uint64(0)
    for i in range(len(labels)):
        firsts[known] = i  # until the next cluster begins: no branch, as which hits do cannot be foretold
        known += np.uint64(np.uint64(labels[i]) == known)
