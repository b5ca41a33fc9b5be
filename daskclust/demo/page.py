"""The page of a demonstration: what was done, pictures with what is seen in them, and what to try next."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Any

from bokeh.embed import components
from bokeh.models.annotations import ColorBar
from bokeh.resources import Resources
from jinja2 import Environment, StrictUndefined

import daskclust
from daskclust.demo.cases import CASES, Case
from daskclust.io.replacing import replacing
from daskclust.plot._look import ACCENT, hv, load_backends

_FRAME = 400  # pixels of a frame that has its right shape; axes take the same at all sizes
_LEAST = 0.73  # height by width of a frame, for the words beside it
_AXES, _BAR, _ROW = (95, 50), 80, 22  # pixels of axes and tools, of a bar of colours, of a row of a legend


def write_page(
    path: Path, case: Case, facts: dict[str, Any], workers: int, seed: int, names: dict[str, Any], points: Path
) -> None:
    """Write the page with all that it needs inside, so that it opens offline, completely or not at all."""
    drawn = [_figure(case.run(picture.line, **names)) for picture in case.pictures]
    script, places = components([figure for figure, _ in drawn])
    captions = [caption for _, caption in drawn]
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
                "time on workers": f"{facts['seconds_dask']:.3g} s",
                "time in one process": f"{facts['seconds_memory']:.3g} s",
            },
            lines=f"from daskclust import datasets, plot, properties\n\nds = {case.data.format(seed=seed)}\n"
            f"found = {case.cluster}\ntable = {case.table}",
            others="\n".join(f"daskclust demo {name}" for name, other in CASES.items() if other is not case),
            pictures=list(zip(case.pictures, captions, places, strict=True)),
            script=script,
            seed=seed,
            system=points.stem,
            version=daskclust.__version__,
            workers=workers,
        )
    )
    with replacing(path) as stream:
        stream.write(page.encode("utf-8"))


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
