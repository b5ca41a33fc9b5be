"""The page of a demonstration: what was done, pictures with what is seen in them, and what to try next."""

from __future__ import annotations

import base64
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from bokeh.embed import components
from bokeh.models.annotations import ColorBar
from bokeh.resources import Resources
from jinja2 import Environment, StrictUndefined

import daskclust
from daskclust.demo.cases import CASES, Case
from daskclust.io.replacing import replacing
from daskclust.plot._data import dimension
from daskclust.plot._look import ACCENT, COLORS, hv, load_backends

_STEPS = 65_535  # places along an axis of points in 3-D
_MOST = 40_000  # points in 3-D: a browser draws them again for each turn
_FRAME = 400  # pixels of a frame that has its right shape; axes take the same at all sizes
_LEAST = 0.73  # height by width of a frame, for the words beside it
_AXES, _BAR, _ROW = (95, 50), 80, 27  # pixels of axes and tools, of a bar of colours, of a row of a legend


def write_page(
    path: Path, case: Case, facts: dict[str, Any], workers: int, seed: int, names: dict[str, Any], points: Path
) -> None:
    """Write the page with all that it needs inside, so that it opens offline, completely or not at all."""
    flat = [picture for picture in case.pictures if picture.points is None]
    drawn = [_figure(case.run(picture.line, **names)) for picture in flat]
    script, places = components([figure for figure, _ in drawn])
    captions = [caption for _, caption in drawn]
    scenes = [(each, "", "", _scene(case.run(each.points, **names))) for each in case.pictures if each.points]
    shown = [*scenes, *((*each, None) for each in zip(flat, captions, places, strict=True))]
    source = resources.files("daskclust.demo").joinpath("page.html").read_text(encoding="utf-8")
    page = (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string(source)
        .render(
            accent=ACCENT,
            bokeh=Resources(mode="inline", components=["bokeh"]).js_raw,
            case=case,
            equal=facts["equal"],
            file=shlex.quote(str(points)),
            found={
                "points": f"{facts['points']:,}",
                "clusters": f"{facts['clusters']:,}",
                "points in no cluster": f"{facts['noise']:,}",
                "purity": f"{facts['purity']:.3f}",
                "completeness": f"{facts['completeness']:.3f}",
                "time in one process": f"{facts['seconds_memory']:.3g} s",
            },
            lines=_lines(case, seed),
            others="\n".join(f"daskclust demo {name}" for name, other in CASES.items() if other is not case),
            pictures=shown,
            script=script,
            seconds_dask=f"{facts['seconds_dask']:.3g} s",
            seed=seed,
            system=points.stem,
            version=daskclust.__version__,
            workers=workers,
        )
    )
    with replacing(path) as stream:
        stream.write(page.encode("utf-8"))


def _lines(case: Case, seed: int) -> str:
    """Return the lines that make what pictures show."""
    arrays = ["import numpy as np"] if any("np." in line for *_, line in case.more) else []
    made = [f"ds = {case.data.format(seed=seed)}", f"found = {case.cluster}", f"table = {case.table}"]
    made += [f"{name} = {line}  # {words}" for words, name, line in case.more]
    return "\n".join([*arrays, "from daskclust import datasets, plot, properties", "", *made])


def _scene(points: xr.Dataset) -> dict[str, Any]:
    """Return clustered points for the page to turn, as numbers of 16 bits: their places, and colours by label."""
    label = points["label"].values
    inside = np.flatnonzero(label >= 0)
    title = f"{len(np.unique(label[inside])):,} clusters of {len(inside):,} points"
    if len(inside) > _MOST:
        inside = inside[:: -(-len(inside) // _MOST)]
        title += f", of which {len(inside):,} are drawn"
    axes = [points[name].values[inside].astype(np.float64) for name in "xyz"]
    sides = np.ptp(axes, axis=1)
    scale = _STEPS / (sides.max() or 1.0)
    places = [np.round(scale * (axis - axis.min())) for axis in axes]
    numbers = np.stack([*places, label[inside] % len(COLORS)]).astype("<u2")
    return {
        "points": base64.b64encode(numbers.tobytes()).decode(),
        "sides": (scale * sides / _STEPS).tolist(),
        "names": [dimension(points[name], name).pprint_label for name in "xyz"],
        "colors": COLORS,
        "title": title,
    }


def _figure(picture: Any) -> tuple[Any, str]:
    """Return a figure of bokeh that is as wide as the page lets it, and its title, which the page shows as text."""
    load_backends()
    wide = {"legend_position": "bottom", "legend_cols": 2} if isinstance(picture, hv.Overlay) else {}
    figure = hv.renderer("bokeh").get_plot(picture.opts(backend="bokeh", **wide)).state
    caption = figure.title.text.replace("\n", " ")
    rows = max((-(-len(legend.items) // 2) + 1 for legend in figure.legend if legend.items), default=0)
    height = _FRAME * max(_LEAST, (figure.frame_height or figure.frame_width) / figure.frame_width)
    shape = (_FRAME + _AXES[0] + _BAR * bool(figure.select(ColorBar))) / (height + _AXES[1] + _ROW * rows)
    figure.update(frame_width=None, frame_height=None, sizing_mode="scale_width", aspect_ratio=shape, title=None)
    return figure, caption
