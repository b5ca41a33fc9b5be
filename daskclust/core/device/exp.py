"""The exponential function out of additions, multiplications and a shift: the same bits on every device."""

from __future__ import annotations

import math

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import like, nearest_whole, power_of_two, select, times

_LOG2E = 1.4426950408889634
# ln 2 in two parts; whole numbers below 2**11 times the first are exact, in float32 too
_LN2_HIGH = 0.693145751953125
_LN2_LOW = 1.42860682030941723212e-6
_TERMS = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))


@body
def exp_of_negative(x):
    """Return e**x for x <= 0 in the type of `x`, to about 2 units in the last place; 0 below -87."""
    small = x < like(x, -87.0)
    x = select(small, like(x, -87.0), x)
    exponent = nearest_whole(times(x, like(x, _LOG2E)))
    rest = (x - times(exponent, like(x, _LN2_HIGH))) - times(exponent, like(x, _LN2_LOW))
    total = like(x, _TERMS[0])
    for k in range(1, len(_TERMS)):
        total = times(total, rest) + like(x, _TERMS[k])
    return select(small, like(x, 0), times(total, power_of_two(exponent)))
