"""daskclust: exact clustering of large point data, in memory, on Dask and on GPUs."""

import lazy_loader

from daskclust._after_xarray import register as _register

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_register()
