"""Paths that are no files, and sizes of chunks that are none, for readers of detectors and cytometers."""

from __future__ import annotations

import pytest

from daskclust.io import open_fcs, open_katherine, open_t3pa, open_tpx3, open_tpx3_triggers, read_cells, read_gmhc

HITS, CELLS = (open_t3pa, open_katherine, open_tpx3), (open_fcs, read_cells, read_gmhc)


@pytest.mark.parametrize("read", [*HITS, open_tpx3_triggers, *CELLS])
def test_what_is_no_file(tmp_path, read):
    empty = tmp_path / "empty.fcs"
    empty.touch()
    for path, error, message in [
        (tmp_path / "none", FileNotFoundError, "no such file: .*none"),
        (tmp_path, IsADirectoryError, "is a directory; give one"),
        (empty, ValueError, r"empty\.fcs is empty \(0 bytes\)"),
    ]:
        with pytest.raises(error, match=message):
            read(path)


@pytest.mark.parametrize("chunks", [0, -1, 2.5, True, "many"])
@pytest.mark.parametrize("read", [*HITS, *CELLS])
def test_chunks_that_are_no_number(tmp_path, read, chunks):
    what = "cells or None" if read in CELLS else "hits"
    with pytest.raises(ValueError, match=f"chunks must be a positive number of {what}.*, got {chunks!r}"):
        read(tmp_path, chunks=chunks)
