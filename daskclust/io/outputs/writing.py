"""Writing points, or a table, in any format that commands write."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from daskclust.io.cytometry.write import write_columns
from daskclust.io.hits import write_hits
from daskclust.io.tables.root import write_root


def write_points(data: xr.Dataset, path: Path) -> None:
    """Write columns along one dimension to a file with one of the extensions `OUTPUTS`."""
    if path.suffix == ".fcs":
        write_columns(data, path)
    elif path.suffix == ".root":
        write_root(data, path)
    else:
        write_hits(data, path)
