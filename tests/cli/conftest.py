"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def summary(command):
    """Return a function that runs a line which succeeds, and gives what --json prints."""

    def run(*arguments):
        code, out, err = command(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run
