"""Steps of a plan as one layer of a dask graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from daskclust.core.device.arrays import keeping_device
from daskclust.core.device.threads import one_thread


def only_needed() -> AbstractContextManager[Any]:
    """Return a context in which dask sends no steps of arrays to a scheduler that nothing needs.

    Its own optimisation leaves some, of slices and of fused steps. Where the scheduler still knows such a step of a
    computation before, but not what that step needs, it fails with a KeyError: so now and then, where computations that
    have steps in common follow each other.
    """
    import dask

    context: AbstractContextManager[Any] = dask.config.set(array_optimize=_culled)
    return context


def _culled(graph: Any, keys: Any, **options: Any) -> Any:
    """Return dask's optimised graph without the steps that nothing needs."""
    from dask.array.optimization import optimize
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph
    from dask.optimization import cull

    needed, _ = cull(dict(optimize(graph, keys, **options)), list(flatten([keys])))
    return HighLevelGraph.from_collections("needed", needed)


class Tasks:
    """Lazy steps, collected as one layer of a dask graph: a layer for each step would make large graphs slow.

    Parameters
    ----------
    prefix : str
        With which the names of all steps begin: the dashboard groups steps by their names.
    sources : list of dask collections
        What steps take from other layers.
    content : objects
        What decides about the results: steps that differ in it have other keys.
    """

    def __init__(self, prefix: str, sources: list[Any], *content: Any) -> None:
        from dask.base import tokenize

        self._prefix, self._sources = f"daskclust-{prefix}", sources
        self._token = tokenize(*content)
        self._tasks: dict[tuple[str, int], Any] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, function: Callable[..., Any], *args: Any) -> tuple[str, int]:
        """Add a step and return its key; arguments that are keys, and keys in lists, stand for their results."""
        number = self._counts[name] = self._counts.get(name, -1) + 1
        key = (f"{self._prefix}{name}-{self._token}", number)
        self._tasks[key] = (_alone, function, *args)
        return key

    def delayed(self, keys: list[tuple[str, int]]) -> list[Any]:
        """Return the steps with these keys as `dask.delayed` objects of one graph."""
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        layer = f"{self._prefix}{self._token}-{len(self._tasks)}"
        graph = HighLevelGraph.from_collections(layer, dict(self._tasks), dependencies=self._sources)
        return [Delayed(key, graph, layer=layer) for key in keys]


def _alone(function: Callable[..., Any], *args: Any) -> Any:
    """Call a step with its kernels on one thread, as there is a task on every other; its thread keeps its device."""
    with one_thread(), keeping_device():
        return function(*args)
