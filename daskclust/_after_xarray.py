"""Import `daskclust.accessor`, which registers ``ds.clust``, as soon as xarray is imported, be that before or after."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _AfterXarray(MetaPathFinder):
    """Finds xarray as the other finders do; once it is imported, the accessor is."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "xarray":
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            loader, execute = spec.loader, spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                importlib.import_module("daskclust.accessor")

            loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Register ``ds.clust``, now or when xarray is imported; xarray itself is not imported here."""
    if "xarray" in sys.modules:
        importlib.import_module("daskclust.accessor")
    else:
        sys.meta_path.insert(0, _AfterXarray())
