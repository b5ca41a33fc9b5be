"""What is computed to find out how fast a machine computes."""

from __future__ import annotations

from daskclust.core.device.kernels import lane_kernel
from daskclust.core.device.operations import like, load, store

OPERATIONS = 24  # of a number in a round: a product and a sum in each of 12 chains


@lane_kernel
def multiply_add(i, m, row, rounds, numbers):
    """Twelve independent chains of products and sums, enough to keep all arithmetic units of a core busy."""
    x = load(numbers, i, m)
    by, more = like(x, 0.999), like(x, 0.001)
    a, b, c, d, e, f = x, x + more, x - more, by, by + x, by - x
    g, h, p, q, r, s = a + e, b + e, c + e, d + e, e + e, f + e
    done = 0
    while done < rounds:
        a = a * by + more
        b = b * by + more
        c = c * by + more
        d = d * by + more
        e = e * by + more
        f = f * by + more
        g = g * by + more
        h = h * by + more
        p = p * by + more
        q = q * by + more
        r = r * by + more
        s = s * by + more
        done += 1
    store(numbers, i, m, a + b + c + d + e + f + g + h + p + q + r + s)
