"""Kernels of density on a grid: the cell of each point, and its label."""

from __future__ import annotations

import math

from daskclust.core.device.kernels import kernel


@kernel
def find_cell(i, X, width, cell):
    """Write the whole-number coordinates of the cell that point i is in."""
    for axis in range(X.shape[1]):
        cell[i, axis] = math.floor(X[i, axis] / width)


@kernel
def take_label(i, place, number, labels):
    """Give point i the cluster number of its cell."""
    labels[i] = number[place[i]]
