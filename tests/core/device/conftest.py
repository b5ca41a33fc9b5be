"""Where kernels are kept, for tests of it."""

import pytest


@pytest.fixture
def kernel_folder(monkeypatch):
    """Return what sets the folder, now and for when numba reads its variables again, as it does where one changed."""
    import numba

    def set_folder(folder):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))

    return set_folder
