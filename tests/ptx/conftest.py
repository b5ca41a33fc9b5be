"""What tests without a GPU assembled, told when all are through."""

import pytest

from ptx import assembling, registers


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    assembling.without_device(monkeypatch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Hand on what the test assembled, from other processes too."""
    assembling.assembled.clear()
    try:
        return (yield)
    finally:
        item.user_properties.append(("assembled", [tuple(each) for each in assembling.assembled]))


def pytest_terminal_summary(terminalreporter):
    """Print registers and occupancy of all kernels that were assembled."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    rows = [row for report in reports for name, its in report.user_properties if name == "assembled" for row in its]
    if rows:
        terminalreporter.section("kernels on CUDA")
        for line in registers.table(rows):
            terminalreporter.write_line(line)
