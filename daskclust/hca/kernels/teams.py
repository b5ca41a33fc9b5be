"""The plain form of the merges: teams of threads that look at every pair. What a GPU runs, and the CPU for few points.

A team takes one set of clusters, such as the points of an apriori cluster; it is one thread on the CPU, a block of
threads on CUDA, or the whole grid for one large set. The merges are those of `loop`, of which these are the definition.

What a merge costs a whole GPU. Counted: 2.6 barriers of the grid, one for the merge and one for each search, of which
cytometry in 14 channels takes 1.6 a merge. Each search comes with two trees within blocks, of log4(threads) barriers
each, and reads 8 (d + 1) bytes a slot, 5 MB for 44 000 slots in 14 channels, and where clusters have shapes W too,
4 d (d + 1) bytes. On an H200 a merge without shapes takes 20 us for 5000 to 20 000 slots, and 25 us for 44 000. Of the
samples of a profile, with 5000 slots and before distances were taken without branches, waiting for other blocks took
more than half, the first search of all slots a sixth of the blocks that have slots, their later searches as much, each
of the two trees a tenth, and the union, of which other blocks wait for the end, a tenth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, team_kernel
from daskclust.core.device.operations import block_barrier, block_memory, team_barrier
from daskclust.hca.kernels.clusters import Clusters, distance, first_alive
from daskclust.hca.kernels.shapes import ALL, Shapes, share_of
from daskclust.hca.kernels.union import SWITCHED, Merges, unite, use_shape

NOBODY = np.int64(1) << 62
OFFER = 5  # numbers that each thread offers


class TeamSets(NamedTuple):
    """Sets of clusters, one after the other in the arrays of all of them."""

    begin: Any  # (sets + 1,): their slots
    rows: Any  # (sets + 1,): their rows of matrices
    near: Any  # (slots,): a lower bound of the distance to the nearest older cluster
    partner: Any  # (slots,): id of that cluster; while it is alive `near` is its distance


class TeamScratch(NamedTuple):
    """Where the threads of teams work together."""

    offers: Any  # (2 * OFFER * blocks,): of the blocks of a team that has several; there is but one such team
    arrived: Any  # (teams, 1) int32
    blocks: int  # of a team
    threads: int  # of a block, a power of two
    numbers: int  # of memory that a block needs: to make a shape, then OFFER for each thread


@body
def is_less(value, first, second, other_value, other_first, other_second):
    """Whether one offer comes before another: by its value, then by its ids."""
    if value != other_value:
        return value < other_value
    return first < other_first or (first == other_first and second < other_second)


@body
def lesser(one, other):
    """Return the lesser of two offers, each part on its own: (distance, id) and (distance, id, id).

    Ids are float64, which holds them all, in an array of which the distances are part.
    """
    away, near, value, first, second = one
    if is_less(other[0], other[1], 0.0, away, near, 0.0):
        away, near = other[0], other[1]
    if is_less(other[2], other[3], other[4], value, first, second):
        value, first, second = other[2], other[3], other[4]
    return away, near, value, first, second


@body
def get_offer(offers, at, step):
    """Return the offer whose numbers are at `at`, `at` + `step`, ..."""
    away, near = offers[at], offers[at + step]
    return away, near, offers[at + 2 * step], offers[at + 3 * step], offers[at + 4 * step]


@body
def put_offer(offers, at, step, offer):
    """Write an offer to `at`, `at` + `step`, ..."""
    offers[at], offers[at + step] = offer[0], offer[1]
    offers[at + 2 * step], offers[at + 3 * step], offers[at + 4 * step] = offer[2], offer[3], offer[4]


@body
def least_of_block(offer, thread, threads, offers):
    """Return the least of the offers of a block's threads."""
    put_offer(offers, thread, threads, offer)
    block_barrier()
    step = threads
    while step > 1:  # four become one: half as many barriers as with two
        width, step = step, (step + 3) >> 2
        if thread < step:
            other = thread + step
            while other < width:
                offer = lesser(offer, get_offer(offers, other, threads))
                other += step
            put_offer(offers, thread, threads, offer)
        block_barrier()
    offer = get_offer(offers, 0, threads)
    block_barrier()  # before the next offers are written
    return offer


@body
def agree(team, block, thread, turn, offer, desk, offers):
    """Return the least offer of a team's threads. Turns 0 and 1 alternate, so that none is overwritten too early."""
    offer = least_of_block(offer, thread, desk.threads, offers)
    if desk.blocks > 1:
        base = turn * OFFER * desk.blocks
        if thread == 0:
            put_offer(desk.offers, base + block, desk.blocks, offer)
        team_barrier(desk.blocks, desk.arrived[team])
        block = thread
        while block < desk.blocks:
            offer = lesser(offer, get_offer(desk.offers, base + block, desk.blocks))
            block += desk.threads
        offer = least_of_block(offer, thread, desk.threads, offers)
    return offer


@body
def nearest_of(start, step, slot, rule, clusters, shapes, d):
    """Return the distance and id of the nearest older cluster among those in slots `start`, `start` + `step`, ..."""
    best, partner = np.inf, NOBODY
    ident = clusters.ident[slot]
    other = start
    while other < len(clusters.ident):
        known = clusters.ident[other]
        if known >= 0 and known < ident:
            away = distance(rule, clusters, shapes, slot, other, best, d)
            if away < best or (away == best and known < partner):
                best, partner = away, known
        other += step
    return best, partner


@body
def first_pair(start, step, near, partner, clusters):
    """Return the pair whose turn comes first of those that the clusters in some slots know of.

    It is (distance, id of the older, twice the id of the newer; 1 more if that one has to look anew).
    """
    value, first, second = np.inf, NOBODY, NOBODY
    k = start
    while k < len(clusters.ident):
        # infinite for the oldest, for empty slots, and for one that is looked for now
        if near[k] < np.inf and near[k] <= value:
            # the partner, or if that was merged the first that may have its place
            known = first_alive(clusters, max(partner[k], np.int64(0)))
            newer = 2 * clusters.ident[k] + np.int64(known != partner[k])
            if is_less(near[k], known, newer, value, first, second):
                value, first, second = near[k], known, newer
        k += step
    return value, first, second


@body
def own_part(i, block, sets, clusters, shapes, merges, desk):
    """Return what belongs to set `i`, with slots and ids counted from its own start, for a block of its team.

    The block's memory is near its threads where there is enough of it, else in the memory of all.
    """
    begin, end = sets.begin[i], sets.begin[i + 1]
    own = Clusters(
        clusters.ident[begin:end],
        clusters.size[begin:end],
        clusters.total[begin:end],
        clusters.center[begin:end],
        clusters.first[begin:end],
        clusters.last[begin:end],
        clusters.row[begin:end],
        clusters.is_shaped[begin:end],
        clusters.stretch[begin:end],
        clusters.slot_of[2 * begin : 2 * end],
        clusters.follower,
        clusters.points,
    )
    free = shapes.free[sets.rows[i] : sets.rows[i + 1]]
    place = (i * desk.blocks + block) * desk.numbers
    memory = block_memory(desk.numbers, shapes.memory[place : place + desk.numbers])[0]
    room = Shapes(shapes.scatter, shapes.whiten, free, shapes.unused[i : i + 1], memory)
    first = begin - i
    done = Merges(merges.pairs[first : end - i - 1], merges.heights[first : end - i - 1], merges.state[i])
    return own, room, done


@body
def make_shapes(begin, end, step, rule, clusters, shapes, merges, share, d):
    """Make the shapes of the clusters in slots `begin`, `begin` + `step`, ... before `end`."""
    slot = begin
    while slot < end:
        if clusters.ident[slot] >= 0 and clusters.row[slot] >= 0:
            use_shape(rule, clusters, shapes, merges, slot, share, d)
        slot += step


@team_kernel
def shape_roots(i, rank, size, rule, sets, clusters, shapes, merges, desk):
    """Make the shapes that the clusters of a set begin with."""
    block, thread = np.int64(np.uint32(rank) // np.uint32(desk.threads)), rank & (desk.threads - 1)
    own, room, done = own_part(i, block, sets, clusters, shapes, merges, desk)
    share, d = ALL if size == 1 else share_of(thread, desk.threads), clusters.center.shape[1]
    make_shapes(block, len(own.ident), desk.blocks, rule, own, room, done, share, d)


@team_kernel
def link_sets(i, rank, size, rule, sets, clusters, shapes, merges, desk):
    """Merge the clusters of set `i` down to one.

    In each round the threads find the nearest cluster of the one that was merged last, or else has to look anew, and
    at the same time the first pair of all others; what they agree on says what comes next. Only the first block
    changes clusters, between an agreement and a barrier; `near` and `partner` of a slot are one thread's, but for that
    of a cluster that goes. So what a block writes is read by others after a barrier of the team, whose fences make
    first-level caches forget what they hold (CCTL.IVALL in the machine code). Chains that `first_alive` makes shorter
    meanwhile lead to the same end.
    """
    block, thread = np.int64(np.uint32(rank) // np.uint32(desk.threads)), rank & (desk.threads - 1)
    own, room, done = own_part(i, block, sets, clusters, shapes, merges, desk)
    offers = room.memory[desk.numbers - OFFER * desk.threads :]
    share = ALL if size == 1 else share_of(thread, desk.threads)  # which the CPU's compiler knows
    near, partner = sets.near[sets.begin[i] : sets.begin[i + 1]], sets.partner[sets.begin[i] : sets.begin[i + 1]]
    d, slots, turn = clusters.center.shape[1], len(own.ident), 0
    slot = rank
    while slot < slots:  # the nearest of all but the first; later each thread keeps those of its slots
        near[slot], partner[slot] = nearest_of(0, 1, slot, rule, own, room, d)
        slot += size
    left, was_switched = slots - 1, done.state[SWITCHED]
    slot, ident = np.int64(-1), np.int64(-1)  # of the cluster that looks for its nearest
    while left > 0:
        away, nearest = np.inf, NOBODY
        is_own = slot >= 0 and np.uint32(slot) % np.uint32(size) == np.uint32(rank)  # GPUs divide 64 bits slowly
        if slot >= 0:
            away, nearest = nearest_of(rank, size, slot, rule, own, room, d)
        if is_own:
            near[slot] = np.inf
        value, older, newer = first_pair(rank, size, near, partner, own)
        if size > 1:
            offer = away, float(nearest), value, float(older), float(newer)
            offer = agree(i, block, thread, turn, offer, desk, offers)
            away, nearest = offer[0], np.int64(offer[1])
            value, older, newer = offer[2], np.int64(offer[3]), np.int64(offer[4])
            turn ^= 1
        if slot >= 0 and is_less(away, nearest, 2 * ident, value, older, newer):
            value, older, newer = away, nearest, 2 * ident
        looks_anew, newer = newer & 1, newer >> 1
        stays = looks_anew or (ident != older and ident != newer)  # else it is merged now
        if is_own and stays:
            near[slot], partner[slot] = away, nearest
        if looks_anew:
            slot, ident = own.slot_of[newer], newer
            continue
        if block == 0:
            gone, kept = unite(rule, own, room, done, value, own.slot_of[older], own.slot_of[newer], share, d)
            if thread == 0:
                near[gone] = np.inf
            begin, end = kept, kept + 1
            if done.state[SWITCHED] != was_switched:  # from here on sizes count
                begin, end = np.int64(0), np.int64(slots)
            make_shapes(begin, end, 1, rule, own, room, done, share, d)
        team_barrier(desk.blocks, desk.arrived[i])
        ident = 2 * slots - 1 - left
        left -= 1
        slot = own.slot_of[ident]
        if done.state[SWITCHED] != was_switched:  # all distances are to be found anew
            was_switched, slot = done.state[SWITCHED], np.int64(-1)
            k = rank
            while k < slots:
                if own.ident[k] >= 0:
                    near[k], partner[k] = 0.0, -1
                k += size
