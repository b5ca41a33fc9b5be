"""One body, two targets: CPU loops and CUDA kernels compiled from the same function.

`body` marks a function that other bodies call, `kernel` one that is run for every index. Neither compiles anything at
import. A body may name the operations of `device/operations.py` and other bodies; for each target those names are bound
to that target's versions, and with `bind` to functions chosen by the caller (a density kernel, a metric).
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import logging
import types as pytypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from daskclust.core.device import cuda_compiler
from daskclust.core.device import operations as ops
from daskclust.core.device.machine_code import cuda_loops, shipped
from daskclust.core.device.machine_code.arguments import Kinds, flatten, packed, plain
from daskclust.core.device.machine_code.compiling import loaded, telling, watched
from daskclust.core.device.machine_code.kernel_cache import cache_of, cached_on_disk
from daskclust.core.device.threads import in_threads, thread_count

_log = logging.getLogger(__name__)
BLOCK, _MOST_BLOCKS = 128, 1 << 16  # CUDA threads a block, and blocks


class Body:
    """A function that is compiled, when first needed, for each target that asks for it."""

    def __init__(self, function: Callable[..., Any], bindings: dict[str, Any] | None = None) -> None:
        self.function = function
        self.bindings = bindings or {}
        self._variants: dict[tuple[Any, ...], Self] = {}
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__wrapped__ = function.__module__, function

    def bind(self, **names: Any) -> Self:
        """Return this body with the given global names replaced, here and in the bodies it calls."""
        asked = tuple(sorted(names.items()))
        if asked not in self._variants:
            needed = self._names(names)
            chosen = {name: value for name, value in asked if name in needed}
            key = tuple(chosen.items())
            if key and key not in self._variants:
                self._variants[key] = type(self)(self.function, {**self.bindings, **chosen})
            self._variants[asked] = self._variants[key] if key else self
        return self._variants[asked]

    def _names(self, bindings: dict[str, Any]) -> set[str]:
        """Return the global names of this body and of those it calls, `bindings` put in their place."""
        return {name for function in self._functions(bindings) for name in function.__code__.co_names}

    def _functions(self, bindings: dict[str, Any]) -> set[Callable[..., Any]]:
        """Return this body's function and those of all bodies that it calls."""
        bindings = {**self.bindings, **bindings}
        functions = {self.function}
        for name in self.function.__code__.co_names:
            value = bindings.get(name, self.function.__globals__.get(name))
            if isinstance(value, Body):
                functions |= value._functions(bindings)
        return functions

    def rebound(self, target: str) -> Callable[..., Any]:
        """Return a copy of the function whose global names mean what they mean on `target`."""
        bound = dict(self.function.__globals__)
        for name in self.function.__code__.co_names:
            value = self.bindings.get(name, bound.get(name))
            if isinstance(value, Body):
                value = value.bind(**self.bindings) if self.bindings else value
                bound[name] = getattr(value, target)
            elif getattr(value, "__module__", None) == ops.__name__:
                bound[name] = _operation(name, target)
            elif name in self.bindings:
                bound[name] = value
        copy = pytypes.FunctionType(self.function.__code__, bound, self.label, self.function.__defaults__)
        copy.__module__ = self.function.__module__
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to workers by name, so that there, too, each body is compiled once."""
        return _restore, (self.function.__module__, self.function.__qualname__, self.bindings)

    @property
    def label(self) -> str:
        chosen = [getattr(v, "__name__", str(v)) for _, v in sorted(self.bindings.items())]
        return "_".join([self.function.__name__, *chosen])

    @property
    def cacheable(self) -> bool:
        """Whether machine code may be kept on disk: not with a function that numba's cache cannot see change."""
        return all(v.cacheable if isinstance(v, Body) else isinstance(v, int | float) for v in self.bindings.values())

    @functools.cached_property
    def cpu(self) -> Callable[..., Any]:
        return _njit(self.rebound("cpu"))

    @functools.cached_property
    def cuda(self) -> Callable[..., Any]:
        return cuda_compiler.own.inlined(self.rebound("cuda"))


# -------------------------------------------------------------------------------------------------------------- kernels
class Kernel(Body):
    """A body that is run for every index from 0 to n - 1, in any order and on any number of threads."""

    loop = "each"  # on the CPU, see `compiled.LOOPS`
    driver: Callable[..., Any] = staticmethod(cuda_loops.grid)  # template for CUDA

    def dispatcher(self, arguments: Any, n: Any) -> Any:
        """Return numba-cuda's dispatcher of ``(n, flat)``, a grid-stride loop, or a team's.

        `arguments` makes the body's arguments of flattened ones (see `cuda_arguments.rebuilding`).
        """
        cuda, device = cuda_compiler.cuda, cuda_compiler.own.device
        here = isinstance(n, int)
        whole = np.int64 if here and n > 1 << 31 else np.uint32  # 32 bits where they do: GPUs divide 64 bits slowly
        names = {"body": self.cuda, "cuda": cuda, "whole": whole, "arguments": arguments}
        names["number"] = device(cuda_loops.itself if here else cuda_loops.in_memory)
        driver = self._driver(self.driver, names, f"{arguments.wanted} {whole.__name__}")
        return watched(cached_on_disk(cuda.jit(driver)) if self.cacheable else cuda.jit(driver))

    def _fingerprint(self, kinds: str = "") -> str:
        """Return a digest of this body and all that it calls: numba's file cache looks at one source file only."""
        digest = hashlib.blake2s(kinds.encode(), digest_size=6)
        for function in sorted(self._functions(self.bindings), key=lambda f: (f.__module__, f.__qualname__)):
            code = function.__code__
            digest.update(repr((code.co_code, code.co_consts, code.co_names)).encode())
        digest.update(_operations_source())
        return digest.hexdigest()

    def _driver(self, template: Callable[..., Any], names: dict[str, Any], kinds: str = "") -> Callable[..., Any]:
        """Copy a driver; it takes its body's name, file and line so that numba caches it beside the body."""
        label = f"{self.label}{template.__name__}_{self._fingerprint(kinds)}"
        source = self.function.__code__
        code = template.__code__.replace(
            co_name=label, co_filename=source.co_filename, co_firstlineno=source.co_firstlineno
        )
        driver = pytypes.FunctionType(code, {**template.__globals__, **names}, label)
        driver.__qualname__ = label
        driver.__module__ = self.function.__module__
        return driver

    def run(self, n: int, *args: Any, grain: int = 8192) -> None:
        """Run the body for `n` indices on the CPU, at least `grain` a task, so that handing them out costs little."""
        if n == 0:
            return
        loop = self.prepared(args)
        threads = thread_count()
        if threads == 1 or n <= grain:
            loop(0, n)
            return
        pieces = min(-(-n // grain), 8 * threads)
        bounds = [n * k // pieces for k in range(pieces + 1)]
        in_threads(lambda k: loop(bounds[k], bounds[k + 1]), pieces, threads)

    def prepared(self, args: tuple[Any, ...]) -> Callable[[int, int], Any]:
        """Return ``loop(first, last)`` on the CPU for these arguments: shipped machine code, or compiled here."""
        kinds, form, values = flatten(args)
        if kinds not in self._code:
            self._code[kinds] = self._find(kinds) or self._compile(kinds, args)
        code = self._code[kinds]
        given = args if hasattr(code, "py_func") else (packed(form, values),)  # of arrays that `args` keeps alive
        return lambda first, last: code(first, last, *given)

    def _find(self, kinds: Kinds) -> shipped.Loop | None:
        """Return this kernel's shipped machine code for arguments of these types."""
        library = shipped.library() if self.cacheable else None
        if library is None:
            return None
        return library.loop(shipped.symbol(self.full_name, plain(kinds)), self.sources)

    def _compile(self, kinds: Kinds, args: tuple[Any, ...]) -> shipped.Loop:
        """Let numba compile this kernel for arguments of these types, or load it from its cache."""
        compiled = numba_way()
        if not hasattr(compiled, "KernelCache"):
            with telling():
                return compiled.compile_kernel(self.cpu, args, self.loop)
        from numba.core.registry import cpu_target

        with compiled.global_compiler_lock, _without_collecting():
            if kinds in self._code:  # another thread was faster
                return self._code[kinds]
            name = shipped.symbol(f"{self.full_name} {self._fingerprint()}", kinds)
            if not self.cacheable:
                name = f"{name}_{len(compiled_here)}"  # functions that users wrote may look alike
            cache = cache_of(compiled.KernelCache, self._driver(self.function, {})) if self.cacheable else None
            library = cache and cache.load_overload(kinds, cpu_target.target_context)
            if library is None:
                with telling():
                    library = compiled.compile_kernel(name, self.cpu, args, compiled.LOOPS[self.loop])
                if cache is not None:
                    cache.save_overload(kinds, library)
            else:
                loaded()
            compiled_here.append(Compiled(self, kinds, name, library))
            return compiled.address(library, name)

    @functools.cached_property
    def full_name(self) -> str:
        return f"{self.__module__}.{self.label}"

    @functools.cached_property
    def sources(self) -> tuple[str, ...]:
        """The files that machine code of this kernel depends on."""
        bodies = {function.__code__.co_filename for function in self._functions(self.bindings)}
        return *sorted(bodies), *map(str, _operation_files())

    @functools.cached_property
    def _code(self) -> dict[Kinds, shipped.Loop]:
        return {}

    def launch(self, n: int, *args: Any, limit: Any = None) -> None:
        """Launch the body for `n` indices on the current CUDA device and CuPy's current stream.

        Given `limit`, an int32 array without axes on the device, it runs for that many, at most `n`.
        """
        if n:
            self._launch((min(-(-n // BLOCK), _MOST_BLOCKS), BLOCK, 0), n if limit is None else limit, args)

    def _launch(self, grid: tuple[int, int, int], n: Any, args: tuple[Any, ...]) -> None:
        launching = cuda_compiler.launching
        kinds, values = launching.flatten(args)
        key = launching.current_device(), isinstance(n, int) and n > 1 << 31, type(n), kinds
        prepared = self._prepared.get(key)
        if prepared is None:
            dispatcher = functools.partial(self.dispatcher, n=n)
            prepared = self._prepared[key] = launching.prepare(dispatcher, n, args)
        launching.launch(prepared, grid, n, values)

    @functools.cached_property
    def _prepared(self) -> dict[Any, Any]:
        return {}


class Compiled(NamedTuple):
    """A kernel that numba compiled, or loaded from its cache, for arguments of some types."""

    kernel: Kernel
    kinds: Kinds
    name: str
    """Of the function in the library."""
    library: Any
    """numba's."""


compiled_here: list[Compiled] = []
"""What this process compiled or loaded because no shipped machine code served, in order."""


class LaneKernel(Kernel):
    """A kernel whose body ``body(i, m, row, *args)`` treats points `i` to `i + m - 1`, which share a row."""

    loop, driver = "lanes", staticmethod(cuda_loops.lane_grid)


class TeamKernel(Kernel):
    """A kernel whose body ``body(i, rank, size, *args)`` a team of `size` threads runs together for index `i`.

    A team is one thread on the CPU. On CUDA it is one or more whole blocks, which are all on the device at once, so
    that they can wait for each other (`team_barrier`).
    """

    loop, driver = "team", staticmethod(cuda_loops.team_grid)

    def launch_teams(self, teams: int, blocks: int, threads: int, *args: Any, shared: int = 0) -> None:
        """Launch `teams` teams of so many blocks on the current CUDA device; `shared` bytes are a block's own."""
        self._launch((teams * blocks, threads, shared), blocks, args)


def _njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that numba compiles, to be inlined on the CPU, when it is first called."""
    return numba_way().function(function)  # type: ignore[no-any-return]


@functools.cache
def numba_way() -> Any:
    """Return the module that compiles for the CPU: with numba's inner parts, or without where they are others."""
    try:
        from daskclust.core.device.machine_code import compiled
    except (ImportError, AttributeError) as error:
        from daskclust.core.device.machine_code import public_numba

        _log.warning(
            "kernels take several times as long to compile, and are not kept: this numba has other inner parts than "
            "daskclust knows (%s); install another numba, or a newer daskclust",
            error,
        )
        return public_numba
    return compiled


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Leave Python's cyclic garbage for later: looking for it takes a sixth of the time of compiling."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _restore(module: str, name: str, bindings: dict[str, Any]) -> Body:
    found: Body = getattr(importlib.import_module(module), name)
    return found.bind(**bindings)


def body(function: Callable[..., Any]) -> Body:
    """Mark a function that kernels and other bodies call on any target.

    Parameters
    ----------
    function : function
        What is compiled, as it is, for the CPU and for CUDA.

    Returns
    -------
    Body
    """
    return Body(function)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Mark ``function(i, *args)`` as the body of a kernel: it fills arrays, and allocates and raises nothing.

    Parameters
    ----------
    function : function
        Called for each index `i`, in any order and on any number of threads.

    Returns
    -------
    Kernel
        ``kernel.run(n, *args)`` runs it on the CPU, ``kernel.launch(n, *args)`` on the current CUDA device.
    """
    return Kernel(function)


def lane_kernel(function: Callable[..., Any]) -> LaneKernel:
    """Mark ``function(i, m, row, *args)`` as the body of a kernel over points that share a row.

    Parameters
    ----------
    function : function
        Called for points `i` to `i + m - 1`, whose entries in `row`, its first array, are equal: a SIMD vector of them
        on the CPU, one on CUDA.

    Returns
    -------
    LaneKernel
    """
    return LaneKernel(function)


def team_kernel(function: Callable[..., Any]) -> TeamKernel:
    """Mark ``function(i, rank, size, *args)`` as the body of a kernel that teams of threads run (see `TeamKernel`)."""
    return TeamKernel(function)


@functools.cache
def _operation(name: str, target: str) -> Any:
    """Return a target's version of an operation: on CUDA its meaning, compiled, where it needs no code of its own."""
    if target == "cpu":
        from daskclust.core.device import cpu, cpu_scalars

        return getattr(cpu, name, None) or getattr(cpu_scalars, name)
    from daskclust.core.device import cuda as own

    return getattr(own, name, None) or cuda_compiler.own.device(getattr(ops, name))


@functools.cache
def _operations_source() -> bytes:
    return b"".join(file.read_bytes() for file in _operation_files())


def _operation_files() -> list[Path]:
    room = "arguments", "compiled", "cuda_arguments", "cuda_mlir", "cuda_numba"
    names = "kernels", "operations", "cpu", "cpu_scalars", "cuda", *(f"machine_code/{name}" for name in room)
    return [Path(__file__).parent / f"{name}.py" for name in names]
