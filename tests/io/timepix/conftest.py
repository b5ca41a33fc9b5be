"""Files of words and rows for tests of Timepix readers."""

from __future__ import annotations

import itertools

import pytest


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Return a function that writes bytes or text to a new file; its index is never an earlier file's."""
    folder, numbers = tmp_path_factory.mktemp("raw"), itertools.count()

    def write_file(data, suffix=".tpx3"):
        path = folder / f"{next(numbers)}{suffix}"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    return write_file
