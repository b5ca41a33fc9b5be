"""Density kernels as users choose them: by name, with parameters, or a function of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from daskclust.clue.kernels import formulas
from daskclust.core.data.checks import check_distance
from daskclust.core.device.kernels import Body


@dataclass(frozen=True)
class GaussianKernel:
    """chi(d) = exp(-d**2 / (2 sigma**2)) for d <= dc.

    Parameters
    ----------
    sigma : float, optional
        Width, in the unit of the coordinates. Default: dc / sqrt(2), so that chi(d) = exp(-(d / dc)**2) [1]_.

    References
    ----------
    .. [1] A. Rodriguez, A. Laio, Science 344 (2014) 1492, https://doi.org/10.1126/science.1242072
    """

    sigma: float | None = None


@dataclass(frozen=True)
class ExponentialKernel:
    """chi(d) = exp(-d / length) for d <= dc.

    Parameters
    ----------
    length : float, optional
        Decay length, in the unit of the coordinates. Default: dc.
    """

    length: float | None = None


class UserKernel(Body):
    """A function of the distance that the user compiled with numba; on the CPU it is called lane by lane."""

    @property
    def cacheable(self) -> bool:
        return False

    @property
    def cpu(self) -> Callable[..., Any]:
        return _lane_by_lane(self.function)

    @property
    def cuda(self) -> Callable[..., Any]:  # type: ignore[override]
        return _for_cuda(self.function)

    def bind(self, **names: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return user_kernel, (self.function,)


@functools.lru_cache(maxsize=64)
def user_kernel(function: Callable[..., Any]) -> UserKernel:
    """Return the kernel for a user's function, the same object each time so that it is compiled once."""
    return UserKernel(function)


def choose_kernel(kernel: Any, dc: float | None, dtype: Any = np.float64) -> tuple[Body, float]:
    """Return the kernel's body and its parameter, one over its length; `dc` is None where it differs by point."""
    if isinstance(kernel, str):
        named = {"flat": None, "gaussian": GaussianKernel(), "exponential": ExponentialKernel()}
        if kernel not in named:
            raise ValueError(f"kernel must be one of {sorted(named)}, a kernel object or a function, got {kernel!r}")
        kernel = named[kernel]
    if kernel is None:
        return formulas.flat, 1.0
    if dc is None and kernel in (GaussianKernel(), ExponentialKernel()):
        wanted = "GaussianKernel(sigma)" if isinstance(kernel, GaussianKernel) else "ExponentialKernel(length)"
        raise ValueError(f"the length of the kernel follows from dc, which is not one number; give {wanted}")
    if isinstance(kernel, GaussianKernel):
        sigma = (dc or 0) / math.sqrt(2) if kernel.sigma is None else check_distance("sigma", kernel.sigma, dtype)
        return formulas.gaussian, 1 / sigma
    if isinstance(kernel, ExponentialKernel):
        length = (dc or 0) if kernel.length is None else check_distance("length", kernel.length, dtype)
        return formulas.exponential, 1 / length
    if callable(kernel):
        return user_kernel(getattr(kernel, "py_func", kernel)), 1.0
    raise TypeError(f"kernel must be a name, a kernel object or a function of the distance, got {kernel!r}")


def _lane_by_lane(function: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit

    from daskclust.core.device.cpu import LANES, lane, with_lane

    scalar = njit(function)

    @njit(_nrt=False)
    def chi(distances, per_scale):  # type: ignore[no-untyped-def]
        values = distances
        for k in range(LANES):
            values = with_lane(values, k, scalar(lane(distances, k)))
        return values

    return chi  # type: ignore[no-any-return]


def _for_cuda(function: Callable[..., Any]) -> Callable[..., Any]:
    from daskclust.core.device.cuda import like
    from daskclust.core.device.cuda_compiler import own

    scalar = own.device(function)

    @own.device
    def chi(distance, per_scale):  # type: ignore[no-untyped-def]
        return like(distance, scalar(distance))

    return chi  # type: ignore[no-any-return]
