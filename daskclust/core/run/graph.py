"""Steps of a plan as layers of a dask graph: for each chunk one object, an element of a dask array of objects.

Layers are dask's own, blockwise wherever they can be: they stay small however many chunks there are, and the scheduler
writes the tasks out.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.lazy import chunk_numbers
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
    """Return dask's optimised graph without the steps that nothing needs, and with fewer that only read."""
    import dask
    from dask.array.optimization import optimize
    from dask.core import flatten
    from dask.highlevelgraph import HighLevelGraph
    from dask.optimization import cull

    steps = dict(optimize(graph, keys, **options))
    keys = [key for key in flatten([keys]) if key in steps]  # the others are on workers already
    needed, _ = cull(steps, keys)
    if dask.config.get("optimization.fuse.active") is not False:
        needed = _with_sources(needed, set(keys))
    return HighLevelGraph.from_collections("needed", needed)


def _with_sources(steps: Mapping[Any, Any], keys: set[Any]) -> dict[Any, Any]:
    """Let each step that needs what is on a worker read there what no other step needs, so that it is not moved.

    Other steps stay as they are: dask may know them from a computation that was not optimised here.
    """
    users = Counter(itertools.chain.from_iterable(step.dependencies for step in steps.values()))
    tasks = {key: step for key, step in steps.items() if hasattr(step, "func")}  # the others are values and names
    sources = {key for key, task in tasks.items() if users[key] == 1 and key not in keys and not task.dependencies}
    result = dict(steps)
    for key, task in tasks.items():
        own = sources.intersection(task.dependencies)
        if own and not steps.keys() >= task.dependencies:  # a key that is not there is on a worker
            result[key] = task.fuse(*map(result.pop, own), task)
    return result


class Lists(NamedTuple):
    """An array (n, m) of objects, of which a step is given a column, as a list."""

    array: Any


class ChunkSteps:
    """Steps over the chunks of a data set.

    Their names begin with `prefix`, by which the dashboard groups them, and end with a token of `content`, what decides
    about the results.
    """

    def __init__(self, prefix: str, *content: Any) -> None:
        from dask.base import tokenize

        self._prefix, self._token = f"daskclust-{prefix}", tokenize(*content)
        self._number = itertools.count()

    def each(
        self,
        step: str,
        function: Callable[..., Any],
        *values: Any,
        numbered: bool = False,
        row: int | None = None,
        column: Sequence[int] | None = None,
    ) -> Any:
        """Add a step for each chunk, and return its results as a dask array of objects, (m, 1).

        The function is given one of each of `values`, dask arrays of objects (m, 1), or (1, 1) for one that all share,
        or `Lists`, and, if `numbered`, the chunk's number. With `row` it returns a list of so many elements, a row of
        the result; with `column` a list of so many for each chunk, which stand in one column.
        """
        lists = tuple(isinstance(value, Lists) for value in values)
        pairs: list[Any] = []
        for value, is_list in zip(values, lists, strict=True):
            pairs += [value.array, "ca"] if is_list else [value, "ab"]
        if numbered:
            count = max(array.numblocks[index.index("a")] for array, index in zip(pairs[::2], pairs[1::2], strict=True))
            pairs, lists = [*pairs, chunk_numbers(count), "a"], (*lists, False)
        shape = (1, -1) if row is not None else None if column is None else (-1, 1)
        options = {"function": function, "lists": lists, "shape": shape}
        return self._blockwise(step, _on_objects, pairs, row or 1, 1 if column is None else tuple(column), options)

    def of_rows(
        self, step: str, function: Callable[..., Any], columns: Sequence[Any], *shared: Any, row: int | None = None
    ) -> Any:
        """Add a step for each chunk of dask arrays of numbers, (n,) or (n, k).

        The function is given the list of their blocks, the chunk's number, and the shared values, of shape (1, 1).
        """
        pairs = [chunk_numbers(columns[0].numblocks[0]), "a", *(part for array in shared for part in (array, "ab"))]
        for axis, column in enumerate(columns):
            pairs += [column, ("a", f"k{axis}")[: column.ndim]]
        options = {"function": function, "shared": len(shared), "shape": None if row is None else (1, -1)}
        return self._blockwise(step, _on_rows, pairs, row or 1, 1, options)

    def shared(self, step: str, value: Any) -> Any:
        """Return a value as an array (1, 1): as a step of its own it goes once to each worker."""
        return self.from_tasks(step, [(partial(_itself, value),)])  # as such: dask looks into tuples and lists

    def read(self, step: str, tasks: Sequence[tuple[Any, ...]], sizes: Sequence[int], dtypes: Mapping[str, Any]) -> Any:
        """Return columns (n,) by name, of tasks that give those of a chunk with so many rows as a mapping.

        What needs columns of one chunk alone is fused with the task that reads them.
        """
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph

        name = self.name(step)
        graph: dict[Any, Any] = {(name, k): (_on_keys, *task) for k, task in enumerate(tasks)}
        layers = HighLevelGraph.from_collections(name, graph)
        boxes = da.Array(layers, name, ((1,) * len(tasks),), dtype=object, meta=np.empty(0, object))
        return self.by_name(boxes, tuple(sizes), {column: np.empty(0, dtype) for column, dtype in dtypes.items()})

    def by_name(
        self,
        values: Any,
        sizes: tuple[int, ...],
        likes: Mapping[str, Any],
        part_of: Callable[[Any, str], Any] = operator.getitem,
    ) -> dict[str, Any]:
        """Return named parts of values (m, 1) or (m,), arrays of so many rows, as dask arrays like empty `likes`."""
        import dask.array as da

        arrays = {}
        for part, like in likes.items():
            axes = {f"c{k}": size for k, size in enumerate(like.shape[1:])}
            name = self.name(part.replace("_", "-"))  # dashboards cut names at what is no letter
            options = {"name": name, "dtype": like.dtype, "meta": like, "part": part, "part_of": part_of}
            shapes = {"new_axes": axes, "adjust_chunks": {"a": sizes}, "concatenate": False}
            arrays[part] = da.blockwise(_part, ("a", *axes), values, "ab"[: values.ndim], **shapes, **options)
        return arrays

    def from_tasks(self, step: str, tasks: Sequence[tuple[Any, ...]], *sources: Any, others: Any = ()) -> Any:
        """Return tasks that are written out, each a function with its arguments, as an array (m, 1).

        Arguments that are keys, and keys in lists, stand for what is in the boxes of `sources`, or of `others`:
        pairs of a key and its task.
        """
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph

        name = self.name(step)
        graph: dict[Any, Any] = {(name, k, 0): (_on_keys, *task) for k, task in enumerate(tasks)}
        graph |= {key: (_on_keys, *task) for key, task in others}
        layers = HighLevelGraph.from_collections(name, graph, dependencies=list(sources))
        return da.Array(layers, name, ((1,) * len(tasks), (1,)), dtype=object, meta=_nothing())

    def in_groups(self, step: str, function: Callable[..., Any], values: Any, width: int) -> Any:
        """Add a step for each `width` values that follow each other; it is given their list and a number."""
        keys = keys_of(values)
        starts = range(0, len(keys), width)
        return self.from_tasks(step, [(function, keys[a : a + width], k) for k, a in enumerate(starts)], values)

    def of_all(self, step: str, function: Callable[..., Any], values: Any, *after: Any) -> Any:
        """Add a step that is given the list of all values, and the last one of each of `after`."""
        last = [keys_of(each)[-1] for each in after]
        return self.from_tasks(step, [(function, keys_of(values), *last)], values, *after)

    def apart(self, step: str, values: Any) -> Any:
        """Return values (m, 1) in any chunks with a chunk for each."""
        tasks = [
            (_at, key, k) for key, size in zip(keys_of(values), values.chunks[0], strict=True) for k in range(size)
        ]
        return self.from_tasks(step, tasks, values)

    def chain(self, step: str, function: Callable[..., Any], values: Any) -> Any:
        """Return what is handed on to each chunk: None to the first, then what a function makes of the chunk before.

        The function is given the value of the chunk before, and what was handed on to that.
        """
        name, keys = self.name(step), keys_of(values)
        tasks = [(function, key, (name, k, 0)) for k, key in enumerate(keys[:-1])]
        return self.from_tasks(name, [(_itself, None), *tasks], values)

    def name(self, step: str) -> str:
        """Return a name for a layer; of a name itself."""
        from dask.base import tokenize

        if step.startswith(self._prefix):
            return step
        return f"{self._prefix}{step}-{tokenize(self._token, step, next(self._number))}"

    def _blockwise(self, step: str, function: Any, pairs: list[Any], width: int, chunks: Any, options: Any) -> Any:
        import dask.array as da

        has_width = any("b" in index for index in pairs[1::2])
        wide = {"adjust_chunks": {"a": chunks, "b": width}} if has_width else {"new_axes": {"b": width}}
        kind = {"dtype": object, "meta": _nothing(), "align_arrays": False, "concatenate": False}
        return da.blockwise(function, "ab", *pairs, name=self.name(step), **wide, **kind, **options)


def keys_of(values: Any) -> list[Any]:
    """Return the keys of values (m, 1)."""
    return [(values.name, k, 0) for k in range(values.numblocks[0])]


def _nothing() -> Any:
    return np.empty((0, 0), object)


# -------------------------------------------------------------------------------------------- objects in dask's arrays
_OTHER = 64  # bytes of an object that is no array, roughly


class Box(np.ndarray):
    """An array of objects."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes with its objects, as dask wants to know: it spills by it."""
        return sum(map(_size_of, self.ravel()))


def _size_of(value: Any) -> int:
    """Return the bytes of the arrays in an object."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value)]
    elif isinstance(value, list | tuple):
        parts = value
    return _OTHER + sum(map(_size_of, parts))


def boxed(values: Sequence[Any], shape: tuple[int, int] = (-1, 1)) -> Box:
    """Return objects as an array of this shape, by default (n, 1)."""
    box: Any = np.empty(len(values), object).view(Box)
    for k, value in enumerate(values):
        box[k] = value
    return box.reshape(shape)  # type: ignore[no-any-return]


def unboxed(box: Any) -> Any:
    """Return the one object in an array, which may be in a list of one, or a number in a tuple."""
    box = _unlisted(box)
    return box[0] if isinstance(box, tuple) else box[0, 0]


def _unlisted(value: Any) -> Any:
    """Return what is in lists of one: dask gives blocks so along axes that are summed over."""
    while isinstance(value, list):
        (value,) = value
    return value


# ---------------------------------------------------------------------------------------------------------- on a worker
def _alone(function: Callable[..., Any], *args: Any) -> Any:
    """Call a step with its kernels on one thread, as there is a task on every other; its thread keeps its device."""
    with one_thread(), keeping_device():
        return function(*args)


def _on_objects(*boxes: Any, function: Any, lists: tuple[bool, ...], shape: tuple[int, int] | None) -> Box:
    """Call a step with the objects in boxes; return its result, or, given a `shape`, its list of results, in a box."""
    pairs = zip(boxes, lists, strict=True)
    given = [list(_unlisted(box).ravel()) if is_list else unboxed(box) for box, is_list in pairs]
    result = _alone(function, *given)
    return boxed([result]) if shape is None else boxed(result, shape)


def _on_rows(number: tuple[int], *blocks: Any, function: Any, shared: int, shape: tuple[int, int] | None) -> Box:
    """Call a step with blocks of numbers; its result is boxed as that of `_on_objects`."""
    objects, columns = map(unboxed, blocks[:shared]), [_unlisted(block) for block in blocks[shared:]]
    result = _alone(function, columns, number[0], *objects)
    return boxed([result]) if shape is None else boxed(result, shape)


def _on_keys(function: Any, *args: Any) -> Box:
    """Call a step with what is in boxes, and in boxes in lists."""

    def given(arg: Any) -> Any:
        if isinstance(arg, list):
            return [given(each) for each in arg]
        return unboxed(arg) if isinstance(arg, Box) and function is not _at else arg

    return boxed([_alone(function, *map(given, args))])


def _part(box: Any, part: str, part_of: Callable[[Any, str], Any]) -> Any:
    """Return a named part of the one object in a box."""
    return part_of(unboxed(box), part)


def _at(values: Box, k: int) -> Any:
    return values[k, 0]


def _itself(value: Any) -> Any:
    return value
