"""What ``daskclust hca`` tells and writes of a hierarchy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

_ROWS = 10  # of a table
_LARGE = 0.01  # fraction of all cells that makes a cluster of the top large
_PIECE = 1 << 7  # merges printed at a time: Python takes a larger write that its reader breaks off for a whole one


def summary_of(result: xr.Dataset, Z: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return what is told of a hierarchy."""
    from daskclust.core import hierarchy as tree

    attrs = result["linkage"].attrs
    return {
        "cells": int(result["label"].size),
        "threshold": attrs["threshold"],
        "rule": attrs["rule"],
        "distance": attrs["distance"],
        "merges": len(Z),
        "merges_within_apriori_clusters": int(result["is_apriori"].sum()),
        "is_monotone": tree.is_monotone(Z),
        "largest_height": float(Z[:, 2].max(initial=0.0)),
    }


def print_merges(Z: np.ndarray[Any, Any]) -> None:
    """Print a line for each merge: the ids of the two clusters, and their distance with all digits."""
    for start in range(0, len(Z), _PIECE):
        rows = Z[start : start + _PIECE]
        lines = zip(rows[:, :2].astype(np.int64).tolist(), rows[:, 2].tolist(), strict=True)
        print("".join(f"{first} {second} {height!r}\n" for (first, second), height in lines), end="")


def write_tree(result: xr.Dataset, path: Path, about: dict[Any, Any]) -> None:
    """Write the table of merges."""
    import xarray as xr

    from daskclust.core.data.files import replacing
    from daskclust.io import write_hits

    Z = result["linkage"].values
    if path.suffix == ".npy":
        with replacing(path) as stream:
            np.save(stream, Z)
        return
    names = result["linkage_column"].values.tolist()
    columns = {name: Z[:, k] if name == "height" else Z[:, k].astype(np.int64) for k, name in enumerate(names)}
    columns["is_apriori"] = result["is_apriori"].values
    attrs = {**about, **result["linkage"].attrs, "hca": result.attrs["hca"]}
    del attrs["long_name"]
    write_hits(xr.Dataset({name: ("merge", values) for name, values in columns.items()}, attrs=attrs), path)


def write_labels(result: xr.Dataset, label: np.ndarray[Any, Any], path: Path) -> None:
    """Write cells with their labels, or labels alone."""
    from daskclust.core.data.files import replacing
    from daskclust.io import write_cells

    if path.suffix == ".npy":
        with replacing(path) as stream:
            np.save(stream, label)
        return
    # heights of points would be a channel, were the file read again
    write_cells(result.drop_vars(["point_height", "linkage", "is_apriori", "linkage_column"]).as_numpy(), path)


def show_clusters(label: np.ndarray[Any, Any], to: Console) -> None:
    """Show the largest clusters."""
    sizes = np.bincount(label[label >= 0])
    table = Table(title="Largest clusters", title_justify="left")
    for head in ("label", "cells", "of all"):
        table.add_column(head, justify="right")
    for k in np.argsort(-sizes, kind="stable")[:_ROWS].tolist():
        table.add_row(str(k), f"{sizes[k]:,}", f"{sizes[k] / len(label):.2%}")
    to.print(table)


def show_top(Z: np.ndarray[Any, Any], min_size: int | float, to: Console) -> None:
    """Show the last merges of large clusters."""
    from daskclust.core import hierarchy as tree

    n = len(Z) + 1
    least = tree.least_size(min_size if min_size != 1 else _LARGE, n)
    if least > n or n == 1:
        return
    top = tree.condense(Z, _ROWS + 1, least)
    leaves = len(top.linkage) + 1
    table = Table(title=f"Top of the tree: merges of clusters of {least:,} cells or more", title_justify="left")
    for head in ("id", "height", "cells", "of", "and"):
        table.add_column(head, justify="right")
    for row in range(leaves - 2, -1, -1):
        node = leaves + row
        sides = sorted(top.sizes[top.linkage[row, :2].astype(int)].tolist(), reverse=True)
        counts = [f"{count:,}" for count in (top.sizes[node], *sides)]
        table.add_row(str(top.nodes[node]), f"{top.linkage[row, 2]:g}", *counts)
    if leaves > 1:
        to.print(table)
