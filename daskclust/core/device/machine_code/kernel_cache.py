"""Machine code on disk that many processes write at once: numba's cache, with a file for each signature.

numba numbers the files of a function's signatures. Two processes that compile two signatures at the same time may take
the same number, and one signature's machine code is then run for the other. Here the name follows from the signature,
and the index names a file only once it is there. What two processes can still do to each other is to drop an entry of
the index: that signature is compiled again.

Where no folder can be written, kernels are compiled and not kept, and the user is told once.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
_told: list[str] = []  # where kernels could not be kept


def cached_on_disk(dispatcher: Any) -> Any:
    """Return a dispatcher, of numba or numba-cuda, that keeps its machine code on disk from now on."""

    def enabled(_: Any) -> Any:
        dispatcher.enable_caching()
        return dispatcher._cache

    cache_of(enabled, dispatcher.py_func)
    return dispatcher


def cache_of(make: Callable[[Any], Any], function: Any) -> Any:
    """Return the cache that `make` gives for a function, its files named by signatures; None where none can be."""
    try:
        cache = make(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _tell_once(str(Path(function.__code__.co_filename).parent / "__pycache__"), "cannot be written")
        return None
    cache._cache_file.save = functools.partial(_save, cache._cache_file)
    cache.save_overload = functools.partial(_save_or_tell, cache.save_overload, cache.cache_path)
    return cache


def _save_or_tell(save: Callable[..., None], folder: str, *entry: Any) -> None:
    try:
        save(*entry)
    except OSError as error:
        _tell_once(folder, error.strerror or str(error))


def _tell_once(folder: str, why: str) -> None:
    from numba import config

    _told.append(folder)
    if len(_told) > 1:
        return
    _log.warning(
        "compiled kernels cannot be kept on disk, so each process compiles them again: %s %s; set NUMBA_CACHE_DIR to a "
        "folder that can be written",
        config.CACHE_DIR or folder,
        why,
    )


def _save(files: Any, key: Any, data: Any) -> None:
    signature = hashlib.blake2s(repr(key).encode(), digest_size=8).hexdigest()
    name = f"{files._index_name.removesuffix('.nbi')}.{signature}.nbc"
    files._save_data(name, data)
    files._save_index({**files._load_index(), key: name})
