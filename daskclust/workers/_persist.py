"""Compute on workers, and tell how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def persist(collection: Any, report: Callable[[int, int], None]) -> Any:
    """Compute a lazy collection on the workers, where its parts stay, and tell how far it is meanwhile.

    Parameters
    ----------
    collection : dask collection or xarray.Dataset
        What is to be computed by the current client.
    report : function
        Called some times a second with the number of parts done and of all.

    Returns
    -------
    dask collection or xarray.Dataset
        The same, its parts computed.

    Raises
    ------
    Exception
        What a task raised.
    """
    from distributed import futures_of

    done = collection.persist()
    futures = futures_of(done)
    while pending := sum(not future.done() for future in futures):
        report(len(futures) - pending, len(futures))
        time.sleep(0.1)
    report(len(futures), len(futures))
    for future in futures:
        if future.status == "error":
            future.result()
    return done
