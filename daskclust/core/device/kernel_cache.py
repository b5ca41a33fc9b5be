"""Machine code on disk that many processes write at once: numba's cache, with a file for each signature.

numba numbers the files of a function's signatures. Two processes that compile two signatures at the same time may take
the same number, and one signature's machine code is then run for the other. Here the name follows from the signature,
and the index names a file only once it is there. What two processes can still do to each other is to drop an entry of
the index: that signature is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any


def cached_on_disk(dispatcher: Any) -> Any:
    """Return a dispatcher, of numba or numba-cuda, that keeps its machine code on disk from now on."""
    dispatcher.enable_caching()
    named_by_signature(dispatcher._cache)
    return dispatcher


def named_by_signature(cache: Any) -> Any:
    """Return a cache of numba, whose files are named by signatures from now on."""
    cache._cache_file.save = functools.partial(_save, cache._cache_file)
    return cache


def _save(files: Any, key: Any, data: Any) -> None:
    signature = hashlib.blake2s(repr(key).encode(), digest_size=8).hexdigest()
    name = f"{files._index_name.removesuffix('.nbi')}.{signature}.nbc"
    files._save_data(name, data)
    files._save_index({**files._load_index(), key: name})
