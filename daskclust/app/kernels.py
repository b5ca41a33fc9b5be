"""Colours of points and of pixels."""

from __future__ import annotations

from daskclust.core.device.kernels import kernel


@kernel
def number_color(i, label, colors, kind):
    # the colour of the cluster of a point; noise has the one after those of clusters
    kind[i] = colors if label[i] < 0 else label[i] % colors


@kernel
def mix(i, counts, begin, end, colors, paper, faint, picture):
    # the mean colour of the points of kinds begin .. end - 1, on paper: the more points, the stronger
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
        picture[i, 0] = 0.5 + paper[0] + (red / total - paper[0]) * share
        picture[i, 1] = 0.5 + paper[1] + (green / total - paper[1]) * share
        picture[i, 2] = 0.5 + paper[2] + (blue / total - paper[2]) * share
        picture[i, 3] = 255
