"""What the pictures of these pages share: colours, plain panels, and records of benchmarks.

Pages import it in cells whose source is folded: `conf.py` puts this folder on the path of their kernels. Pictures
have no background, and a grey for text and axes that is read on white and on black.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from bench.report import table as lines
from IPython.display import Markdown
from matplotlib.colors import to_rgba
from matplotlib_inline.backend_inline import set_matplotlib_formats

from daskclust.plot._look import COLORS, INK, MARK, NOISE_COLOR

NOISE, RED = NOISE_COLOR, MARK

_RECORDS = Path(__file__).parent / "benchmarks"

set_matplotlib_formats("svg")
plt.rcParams.update(
    {
        "axes.edgecolor": INK,
        "axes.facecolor": "none",
        "axes.labelcolor": INK,
        "axes.prop_cycle": plt.cycler(color=COLORS),
        "axes.titlecolor": INK,
        "axes.titlesize": 10,
        "figure.dpi": 144,
        "figure.facecolor": "none",
        "font.size": 9,
        "legend.frameon": False,
        "legend.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
)


def colors_of(labels):
    """Return a colour for each label: by the label modulo their number, and grey for noise."""
    labels = np.asarray(labels)
    table = np.array([*(to_rgba(color) for color in COLORS), to_rgba(NOISE, 0.6)])
    return table[np.where(labels < 0, len(COLORS), labels % len(COLORS))]


def panels(count, *, width=9.0, height=3.2, columns=None, **options):
    """Return a figure with `count` panels in rows of `columns`, and the panels in one list."""
    columns = columns or count
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **options)
    return figure, list(axes.flat)


def bare(axis, title="", *, equal=True):
    """Take ticks from a panel; lengths along both axes are drawn alike, unless `equal` is False."""
    axis.set(xticks=[], yticks=[], title=title)
    axis.spines[:].set_linewidth(0.5)
    if equal:
        axis.set_aspect("equal")


def points(axis, X, labels=None, *, size=4.0, **options):
    """Draw points (n, 2) in the colours of their clusters, noise below the others."""
    labels = np.zeros(len(X), int) if labels is None else np.asarray(labels)
    order = np.argsort(labels >= 0, kind="stable")
    options = {"linewidths": 0, "rasterized": len(X) > 2000, **options}
    axis.scatter(X[order, 0], X[order, 1], size, colors_of(labels[order]), **options)


def table(rows, words=None):
    """Return a table of Markdown, the first row as its head; columns after the first `words` are numbers."""
    head, *rest = rows
    return Markdown(lines(head, rest, words=len(head) if words is None else words))


def record(name):
    """Return a record of ``docs/benchmarks``; None where there is none."""
    path = _RECORDS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None
