"""Readers and writers: files of one field to an `xarray.Dataset`, and back.

Names load on first use, so importing this package costs nothing.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
