"""The end of a process whose interpreter is not taken apart, which takes half a second."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_at_once(status: int = 0) -> NoReturn:
    """End the process when all that is called at exit has been, threads have ended, and files are closed."""
    logging.shutdown()
    flush()
    os._exit(status)


def flush() -> None:
    """Write what waits to be written on standard output and error, if anybody reads it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
