"""Compile functions that live within others only, no further than those need them.

numba takes each function, with all that it calls, through LLVM's optimizers and on to machine code: the innermost of a
chain of ten would be compiled ten times. Nobody but kernels runs a body, and these swallow it whole. So a body stays as
LLVM's intermediate code, and is optimized once, within its kernel.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any


@functools.cache
def inlined_pipeline() -> Any:
    """Return numba's compiler (a ``pipeline_class``) for functions that are always inlined and never called alone."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class InlinedLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Intermediate code to be linked into the libraries of callers: not optimized, not loaded, not to be run."""

        codegen = SimpleNamespace(set_env=lambda name, environment: None)  # of Python's objects: bodies have none

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # it has no address

    class InlinedCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            self.state.library = InlinedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            return super().define_pipelines()

    return InlinedCompiler
