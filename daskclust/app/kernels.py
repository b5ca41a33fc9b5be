"""Colours of pixels from numbers of points."""

from __future__ import annotations

from daskclust.core.jit import kernel


@kernel
def mix(i, counts, begin, end, colors, faint, picture):
    # the mean colour of the points of kinds begin .. end - 1, on white: the more points, the stronger
    total, red, green, blue = 0.0, 0.0, 0.0, 0.0
    k = begin
    while k < end:
        number = float(counts[i, k])
        total += number
        red += number * colors[k, 0]
        green += number * colors[k, 1]
        blue += number * colors[k, 2]
        k += 1
    if total > 0.0:
        share = 1.0 - (1.0 - faint) / total
        picture[i, 0] = 255.5 + (red / total - 255.0) * share
        picture[i, 1] = 255.5 + (green / total - 255.0) * share
        picture[i, 2] = 255.5 + (blue / total - 255.0) * share
        picture[i, 3] = 255
