"""Workers that leave it to the one who asked to tell of errors."""

from __future__ import annotations

import logging

from distributed import Worker, WorkerPlugin


class Silent(WorkerPlugin):
    """Worker plugin: errors of tasks are not logged, as they are raised where the results are asked for."""

    name = "daskclust-silent"

    def setup(self, worker: Worker) -> None:
        """Log what ends the worker alone."""
        logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
