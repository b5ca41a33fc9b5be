"""How many registers each kernel may take, and what share of a multiprocessor's threads these leave room for."""

from __future__ import annotations

import re
from typing import NamedTuple

ALL_THREADS = 32
"""Registers with which a multiprocessor runs all the threads that it can: 65536 over 2048."""

BOUNDS = {
    "clue._join_equal": 40,
    "clue._look_for_crowds": 40,
    "clue.count_cell": 48,
    "clue.density": 96,
    "clue.density_among": 96,
    "clue.find_higher": 96,
    "clue.look": 40,
    "clue.mark_border": 40,
    "clue.nearest_among": 64,
    "clue.nearest_higher": 96,
    "clue.place": 104,
    "clue3d.arrange": 40,
    "clue3d.density": 96,
    "clue3d.find_place": 48,
    "clue3d.nearest_higher": 96,
    "core._cell_numbers": 40,
    "core._count_cell": 40,
    "core._fill_leaf": 72,
    "core._move_within": 48,
    "core._place_by_order": 48,
    "core._place_in_table": 48,
    "core.count_in_parts": 40,
    "core.count_near": 48,
    "core.find_home": 40,
    "core.find_nearest": 48,
    "core.pair_near": 56,
    "core.search_tree": 72,
    "dbscan.count_all": 48,
    "dbscan.count_heads": 40,
    "dbscan.count_of_point": 104,
    "dbscan.count_sets": 40,
    "dbscan.gather_core_of_cell": 40,
    "dbscan.label_border_all": 40,
    "dbscan.label_border_point": 80,
    "dbscan.link_listed": 40,
    "dbscan.link_part": 80,
    "dbscan.start_points": 48,
    "dbscan.weigh_all": 56,
    "dbscan.weigh_point": 88,
    "dbscan.write_boxes": 40,
    "dbscan.write_heads": 40,
    "dbscan.write_keys": 40,
    "dbscan.write_positions": 48,
    "events.join_window": 40,
    "hca.close_set": 40,
    "hca.link_sets": 168,
    "hca.place": 48,
    "hca.shape_roots": 120,
    "hdbscan.find_nearest": 56,
    "hdbscan.look_in_lists": 56,
    "hdbscan.search_point": 48,
    "hdbscan.write_keys": 40,
    "hdbscan.write_position": 48,
    "io.decode_cell": 40,
    "properties.find_both": 72,
    "properties.finish_halo": 56,
    "properties.survey_labels": 40,
    "properties.survey_particles": 48,
    "properties.tabulate_row": 96,
}
"""Of kernels with more, by package and name, on sm_90; multiples of 8, as they are given to threads."""


def bound(kernel):
    """Return how many registers a kernel may take: a change that needs more names it here, and is seen."""
    return BOUNDS.get(kernel, ALL_THREADS)


class Assembled(NamedTuple):
    """A kernel's cost on a multiprocessor, for arguments of some types; `shared` and `spilled` in bytes."""

    system: str
    kernel: str
    registers: int
    occupancy: int
    shared: int
    spilled: int

    @classmethod
    def of(cls, launch, report):
        """Return what ptxas reports of a launched kernel."""
        registers = int(re.search(r"Used (\d+) registers", report)[1])
        shared = launch.shared + sum(map(int, re.findall(r"(\d+) bytes smem", report)))
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill", report)))
        _, system, *_ = launch.kernel.__module__.split(".")
        name = f"{system}.{launch.kernel.__name__}"
        return cls(system, name, registers, occupancy(registers, launch.threads, shared), shared, spilled)


def occupancy(registers, threads, shared):
    """Return the percentage of an sm_90's 2048 threads that run at once in blocks of so many threads."""
    warps = -(-threads // 32)
    of_a_warp = -(-32 * registers // 256) * 256  # given 256 at a time, in each of four parts of 16384
    by_registers = 4 * (16384 // of_a_warp) // warps
    by_shared = 233_472 // (shared + 1024)  # each block takes 1 kB for the system
    return 100 * min(by_registers, by_shared, 64 // warps, 32) * warps // 64


def table(rows):
    """Return lines on all kernels by system, each as it needs most."""
    worst = {}
    for row in sorted(map(Assembled._make, rows), key=lambda row: row.registers):
        worst[row.kernel] = row
    yield f"{'kernel, on sm_90':42}registers  occupancy  shared bytes  spilled bytes"
    for row in sorted(worst.values(), key=lambda row: (row.system, -row.registers, row.kernel)):
        yield f"{row.kernel:42}{row.registers:9}{row.occupancy:9} %{row.shared:14}{row.spilled:15}"
