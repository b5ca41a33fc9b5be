"""Point sets for the tests of CLUE, and what is asked of its answers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask
import dask.array as da
import numpy as np
from cases.lanes import COMMON, a_shape, drawn_points, on_host, put_on_seams
from hypothesis import strategies as st
from oracles import brute as oracles

from daskclust import CLUE
from daskclust.clue.kernels.density import ExponentialKernel, GaussianKernel

RESULTS = ("labels", "density", "delta", "nearest_higher", "is_seed", "is_outlier")


@contextmanager
def raise_if_dask_computes():
    """Fail where anything is computed on dask."""

    def scheduler(*args, **kwargs):
        raise AssertionError("dask computed something")

    with dask.config.set(scheduler=scheduler):
        yield


@contextmanager
def counted_computes(most: int):
    """Fail where dask is asked to compute more than `most` times; yields the list of the graphs' keys."""
    asked: list[Any] = []

    def scheduler(graph, keys, **kwargs):
        asked.append(keys)
        assert len(asked) <= most, f"dask computed {len(asked)} times"
        return dask.get(graph, keys)

    with dask.config.set(scheduler=scheduler):
        yield asked


@dataclass
class Case:
    """Points, their columns, and parameters of CLUE."""

    X: np.ndarray
    dc: Any = 1.0
    rhoc: Any = 2.0
    columns: dict[str, Any] = field(default_factory=dict)  # of fit: layer, event, sample_weight
    others: dict[str, Any] = field(default_factory=dict)  # of CLUE

    def estimator(self) -> CLUE:
        return CLUE(dc=self.dc, rhoc=self.rhoc, **self.others)

    def fit(self) -> CLUE:
        return self.estimator().fit(self.X, **self.columns)

    def chunked(self, rows: tuple[int, ...], partition: Any) -> CLUE:
        """Fit to dask arrays with chunks of `rows` points."""
        columns = {name: da.from_array(values, chunks=(rows,)) for name, values in self.columns.items()}
        X = da.from_array(self.X, chunks=(rows, self.X.shape[1]))
        return self.estimator().fit(X, **columns, partition=partition)

    @property
    def halo(self) -> float:
        """Return the distance that a block must know around it, and a little more."""
        given = [list(each.values()) if isinstance(each, dict) else each for each in self.given_lengths.values()]
        dc, delta_c, delta_o = map(np.max, given)
        return float(max(delta_c, delta_o) + dc) * 1.001

    @property
    def given_lengths(self) -> dict[str, Any]:
        delta_c = self.others.get("delta_c", self.dc)
        return {"dc": self.dc, "delta_c": delta_c, "delta_o": self.others.get("delta_o", delta_c)}

    @property
    def lengths(self) -> dict[str, Any]:
        """Return dc, delta_c and delta_o: a number, or one for each point."""
        given = self.given_lengths
        section = self.columns.get("section", self.columns.get("layer"))
        of_points = lambda value: np.array([value[each] for each in section.tolist()], self.X.dtype)  # noqa: E731
        return {name: of_points(value) if isinstance(value, dict) else value for name, value in given.items()}

    @property
    def period(self) -> tuple[float, ...]:
        wrap = self.others.get("wrap") or {}
        return tuple(wrap.get(axis, 0.0) for axis in range(self.X.shape[1]))


def results(clue: CLUE) -> dict[str, np.ndarray]:
    """Return the result arrays on the host, computed in one go."""
    arrays = {name: getattr(clue, f"{name}_") for name in RESULTS}
    return {name: on_host(array) for name, array in dask.compute(arrays)[0].items()}


def assert_same_results(got: CLUE, wanted: CLUE | dict[str, np.ndarray]) -> None:
    """Demand that all results are equal to the last bit."""
    got_arrays, wanted_arrays = results(got), wanted if isinstance(wanted, dict) else results(wanted)
    for name in RESULTS:
        np.testing.assert_array_equal(got_arrays[name], wanted_arrays[name], err_msg=name, strict=True)
    assert int(got.n_clusters_) == int(wanted_arrays["is_seed"].sum())


def assert_right(case: Case, clue: CLUE) -> None:
    """Demand the answer of brute force: densities exact where sums are, all else exact on these densities."""
    got = results(clue)
    columns = {"layer": case.columns.get("layer"), "event": case.columns.get("event")}
    wrap = case.others.get("wrap")
    options = {name: case.others[name] for name in ("kernel", "neighbor_weight") if name in case.others}
    if isinstance(kernel := options.get("kernel"), GaussianKernel | ExponentialKernel):
        options |= {"kernel": type(kernel).__name__.removesuffix("Kernel").lower(), "scale": 1.0}
    weight = case.columns.get("sample_weight")
    lengths = case.lengths
    density = oracles.clue_density(case.X, lengths["dc"], weight=weight, wrap=wrap, **columns, **options)
    if options.get("kernel", "flat") == "flat" and is_dyadic(weight):
        np.testing.assert_array_equal(got["density"], density.astype(case.X.dtype))
    else:
        error = np.abs(got["density"] - density)
        assert (error <= oracles.density_tolerance(density, case.X.dtype)).all(), error.max()
    answer = oracles.clue_from_density(case.X, got["density"], rhoc=case.rhoc, wrap=wrap, **lengths, **columns)
    for name, wanted in answer._asdict().items():
        np.testing.assert_array_equal(got[name], wanted, err_msg=name, strict=True)
    assert int(clue.n_clusters_) == answer.is_seed.sum()


def is_dyadic(weight: Any) -> bool:
    return weight is None or bool(np.array_equal(np.asarray(weight) * 8, np.floor(np.asarray(weight) * 8)))


def _lengths_that_differ(draw, rng, n, dtype, columns, others, dc):
    """Return dc by section or point, or as it is; let deltas differ, too, and give kernels a length of their own."""
    sections = [-1, 0, 7]
    if draw(st.booleans()) or "layer" not in columns:
        columns["section"] = rng.choice(sections, n)
    elif "layer" in columns:
        sections = np.unique(columns["layer"]).tolist()
    kinds = ["sections", "points", "one"]
    one_of = {name: draw(st.sampled_from(kinds)) for name in ("dc", "delta_c", "delta_o")}
    makes = {
        "sections": lambda: {each: float(rng.choice(LENGTHS)) for each in sections},
        "points": lambda: rng.choice(LENGTHS, n).astype(dtype),
    }
    others |= {name: makes[kind]() for name, kind in one_of.items() if kind != "one" and name != "dc"}
    if one_of["dc"] == "one":
        return dc
    own = {"gaussian": GaussianKernel(1.0), "exponential": ExponentialKernel(1.0)}
    if others.get("kernel") in own:
        others["kernel"] = own[others["kernel"]]
    return makes[one_of["dc"]]()


LENGTHS = [0.3, 0.5, 1.0, 2**0.5, 3.25]
SHAPES = [*COMMON, (1, np.float64), (2, np.float32), (3, np.float32), (4, np.float64), (6, np.float64)]


@st.composite
def cases(draw, shapes=SHAPES, kernels=("flat",), most=60):
    """Draw points with many ties, few, or none; layers, events, weights, periods, deltas.

    Now and then they are more than SIMD vectors and rows of cells hold, and one of them is far away.
    """
    d, dtype = draw(a_shape(shapes))
    n = draw(st.one_of(*[st.integers(1, most)] * 5, st.just(10 * most)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([1.0, 4.0, 20.0]))
    kind = draw(st.sampled_from(["lattice", "tenths", "uniform", "clumps", "pairs", "places", "equal"]))
    dc = draw(st.sampled_from([1.0, 1.0, 1.0, 0.3, 2**0.5, 5.0]))
    X = drawn_points(rng, kind, n, d, size).astype(dtype)
    if draw(st.sampled_from([False, False, True])):
        X[-1] = draw(st.sampled_from([3e6, 1e7]))
    columns: dict[str, Any] = {}
    if draw(st.booleans()):
        columns["layer"] = rng.integers(-1, 3, n) * draw(st.sampled_from([1, 1000, 2**61]))
    if abs(columns.get("layer", np.zeros(1))).max() < 2**31 and draw(st.sampled_from([False, False, True])):
        columns["event"] = rng.integers(0, 2, n)
    weights = draw(st.sampled_from([None, "dyadic", "any"]))
    if weights:
        weight = rng.integers(0, 8, n) / 4 if weights == "dyadic" else rng.exponential(1.0, n)
        columns["sample_weight"] = weight.astype(dtype)
    others: dict[str, Any] = {}
    if draw(st.booleans()):
        others["delta_o"] = draw(st.sampled_from([0.5, 2.0, 3.25]))
    if draw(st.booleans()):
        others["delta_c"] = draw(st.sampled_from([0.5, 1.5, 3.25, 21.0, 1e4]))
    if kernels != ("flat",):
        others["kernel"] = draw(st.sampled_from(kernels))
    if draw(st.sampled_from([False, False, True])):
        dc = _lengths_that_differ(draw, rng, n, dtype, columns, others, dc)
    if draw(st.booleans()):
        others["neighbor_weight"] = 0.5
    if draw(st.sampled_from([False, False, True])):
        axes = draw(st.sets(st.integers(0, d - 1), min_size=1))
        others["wrap"] = {axis: draw(st.sampled_from([0.75, 2.0, 3.5, 6.25, 30.0])) for axis in sorted(axes)}
    rhoc: Any = draw(st.sampled_from([0.0, 1.0, 2.0, 3.5, 1e9]))
    if draw(st.sampled_from([False, False, False, True])):
        rhoc = (rng.integers(0, 8, n) / 2).astype(dtype)
    case = Case(X, dc, rhoc, columns, others)
    put_on_seams(draw, X, case.period)
    return case
