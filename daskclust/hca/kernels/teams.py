"""The plain form of the merges: teams of threads that look at every pair. What a GPU runs, and the CPU for few points.

A team takes one set of clusters, such as the points of an apriori cluster; it is one thread on the CPU, a block of
threads on CUDA, or the whole grid for one large set. The merges are those of `loop`, of which these are the definition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, team_kernel
from daskclust.core.device.operations import team_barrier
from daskclust.hca.kernels.clusters import Clusters, distance, first_alive
from daskclust.hca.kernels.shapes import Shapes
from daskclust.hca.kernels.union import ALIVE, DONE, SWITCHED, Merges, switches_now, unite, use_shape

NOBODY = np.int64(1) << 62


class Sets(NamedTuple):
    """Sets of clusters, one after the other in the arrays of all of them."""

    begin: Any  # (sets + 1,): their slots
    rows: Any  # (sets + 1,): their rows of matrices
    near: Any  # (slots,): a lower bound of the distance to the nearest older cluster
    partner: Any  # (slots,): id of that cluster; while it is alive `near` is its distance


class Desk(NamedTuple):
    """What the threads of teams tell each other."""

    value: Any  # (4 * threads,)
    first: Any  # (4 * threads,)
    second: Any  # (4 * threads,)
    arrived: Any  # (teams, 1) int32
    blocks: int  # of a team
    threads: int  # of a block


@body
def is_less(value, first, second, other_value, other_first, other_second):
    """Whether one offer comes before another: by its value, then by its ids."""
    if value != other_value:
        return value < other_value
    return first < other_first or (first == other_first and second < other_second)


@body
def least_of_block(seat, thread, desk):
    """Leave the least of a block's offers, which begin at `seat` - `thread`, at the first of their places."""
    team_barrier(1, desk.arrived[0])
    step = desk.threads >> 1
    while step > 0:
        if thread < step:
            other = seat + step
            offer = desk.value[other], desk.first[other], desk.second[other]
            if is_less(offer[0], offer[1], offer[2], desk.value[seat], desk.first[seat], desk.second[seat]):
                desk.value[seat], desk.first[seat], desk.second[seat] = offer
        team_barrier(1, desk.arrived[0])
        step >>= 1


@body
def agree(team, rank, size, turn, value, first, second, desk):
    """Return the least offer of a team's threads. Turns 0 and 1 alternate, so that none is overwritten too early."""
    if size == 1:
        return value, first, second
    all_threads = len(desk.value) >> 2
    thread = rank & (desk.threads - 1)
    base = turn * 2 * all_threads + team * size
    seat = base + rank
    desk.value[seat], desk.first[seat], desk.second[seat] = value, first, second
    least_of_block(seat, thread, desk)
    found = seat - thread
    if desk.blocks > 1:
        team_barrier(desk.blocks, desk.arrived[team])
        value, first, second = np.inf, NOBODY, NOBODY
        block = thread
        while block < desk.blocks:
            k = base + block * desk.threads
            if is_less(desk.value[k], desk.first[k], desk.second[k], value, first, second):
                value, first, second = desk.value[k], desk.first[k], desk.second[k]
            block += desk.threads
        seat += all_threads
        desk.value[seat], desk.first[seat], desk.second[seat] = value, first, second
        least_of_block(seat, thread, desk)
        found = seat - thread
    return desk.value[found], desk.first[found], desk.second[found]


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
def own_part(i, sets, clusters, shapes, merges):
    """Return what belongs to set `i`, with slots and ids counted from its own start."""
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
    room = Shapes(
        shapes.scatter,
        shapes.whiten,
        shapes.unscale,
        shapes.free[sets.rows[i] : sets.rows[i + 1]],
        shapes.unused[i : i + 1],
        shapes.matrix[i],
        shapes.factor[i],
        shapes.spare[i],
    )
    first = begin - i
    done = Merges(merges.pairs[first : end - i - 1], merges.heights[first : end - i - 1], merges.state[i])
    return own, room, done


@team_kernel
def link_sets(i, rank, size, rule, sets, clusters, shapes, merges, desk):
    """Merge the clusters of set `i` down to one."""
    own, room, done = own_part(i, sets, clusters, shapes, merges)
    near, partner = sets.near[sets.begin[i] : sets.begin[i + 1]], sets.partner[sets.begin[i] : sets.begin[i + 1]]
    d, slots, turn = clusters.center.shape[1], len(own.ident), 0
    slot = rank
    while slot < slots:  # the nearest of all but the first; later each thread keeps those of its slots
        near[slot], partner[slot] = nearest_of(0, 1, slot, rule, own, room, d)
        slot += size
    team_barrier(desk.blocks, desk.arrived[i])
    while done.state[ALIVE] > 1:
        value, first, second = np.inf, NOBODY, NOBODY
        k = rank
        while k < slots:
            if near[k] < np.inf and near[k] <= value:  # infinite for the oldest and for empty slots
                # the partner, or if that was merged the first that may have its place
                known = first_alive(own, max(partner[k], np.int64(0)))
                if is_less(near[k], known, own.ident[k], value, first, second):
                    value, first, second = near[k], known, own.ident[k]
            k += size
        value, first, second = agree(i, rank, size, turn, value, first, second, desk)
        turn ^= 1
        was_switched = done.state[SWITCHED]
        slot = own.slot_of[second]
        if partner[slot] == first:  # else it has to look anew
            ident = slots + done.state[DONE]
            team_barrier(desk.blocks, desk.arrived[i])
            if rank == 0:
                merge_pair(own.slot_of[first], slot, value, rule, own, room, done, near, partner, d)
            team_barrier(desk.blocks, desk.arrived[i])
            if done.state[SWITCHED] != was_switched:
                continue
            slot = own.slot_of[ident]
        value, first = nearest_of(rank, size, slot, rule, own, room, d)
        value, first, _ = agree(i, rank, size, turn, value, first, first, desk)
        turn ^= 1
        if np.uint32(slot) % np.uint32(size) == np.uint32(rank):  # 32 bits: GPUs have no 64-bit division
            near[slot], partner[slot] = value, first


@body
def merge_pair(older, newer, height, rule, clusters, shapes, merges, near, partner, d):
    """Merge two clusters; once all have reached the threshold, all distances are to be found anew."""
    gone, slot = unite(rule, clusters, shapes, merges, height, older, newer, d)
    near[gone] = np.inf
    first, last = slot, slot + 1
    switches = switches_now(rule, merges)
    if switches:
        merges.state[SWITCHED] = 1
        first, last = 0, len(clusters.ident)
    for k in range(first, last):
        if clusters.ident[k] >= 0:
            use_shape(rule, clusters, shapes, merges, k, d)
            if switches:
                near[k], partner[k] = 0.0, -1
