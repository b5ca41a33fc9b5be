"""What a system's benchmark consists of: cases to time, and the options that they are made of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.roofline import Work


@dataclass(frozen=True)
class Options:
    """What is asked for; each system uses the options that it takes."""

    sizes: Sequence[int] = (1_000_000,)  # numbers of points
    kinds: Sequence[str] = ()  # of points; none: all of the system
    groups: Sequence[tuple[int, int]] = ((100, 1000),)  # number and size of apriori clusters
    min_samples: Sequence[int] = (10,)
    threads: Sequence[int] = (0,)  # of kernels; 0: as numba has it
    device: str = "cpu"
    repeats: int = 7  # runs after a warm-up; medians are reported
    peers: bool = False  # whether other programs are timed, too


@dataclass(frozen=True)
class Case:
    """A fit to time."""

    facts: Mapping[str, Any]  # kind, number of points and parameters, for the report
    arrays: tuple[Any, ...]  # on the host; the first has a row for each point
    fit: Callable[..., Any]  # takes the arrays, returns a fitted estimator
    result: str  # attribute of it that a user would copy back from a device
    found: Callable[[Any], dict[str, Any]]  # what the report says of a fitted estimator
    work: Callable[[], Work]  # least work, as `bench.roofline` defines it
    calls: Mapping[str, Callable[[], Any]] = field(default_factory=dict)  # others to time, by name
    file: Path | None = None  # with the points, as long as the case is open
    host_to_host: Callable[[], Any] | None = None  # on CUDA; None: copy all, fit, copy the result back


class System(NamedTuple):
    """The benchmark of a system."""

    title: str
    kinds: tuple[str, ...]
    cases: Callable[[str, Any, Options], Iterator[Case]]  # of a kind and a size, or of number and size of groups
    parameters: Mapping[str, Any]  # the same for all cases
    takes: tuple[str, ...] = ()  # options beside those that all take
    usual: Mapping[str, Any] = {}  # options where they are not those of `Options`
    headline: Mapping[str, Any] = {}  # the same for ``all``, where it differs
    steps: Mapping[str, Sequence[str]] = {}  # names of kernels by step; a step without names has all other kernels
    as_reported: Callable[[dict[str, Any]], dict[str, Any]] = dict  # the figures of a run, as they are reported
