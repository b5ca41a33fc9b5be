"""The page of a demonstration: what was done, pictures with what is seen in them, and what to try next."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path
from typing import Any

from bokeh.embed import components
from bokeh.models.annotations import ColorBar
from bokeh.resources import Resources

import daskclust
from daskclust.demo.cases import CASES, Case, DemoPicture
from daskclust.io.replacing import replacing
from daskclust.plot._look import ACCENT, hv, load_backends

_FRAME = 400  # pixels of a frame that has its right shape; axes take the same at all sizes
_LEAST = 0.73  # height by width of a frame, for the words beside it
_AXES, _BAR, _ROW = (95, 50), 80, 22  # pixels of axes and tools, of a bar of colours, of a row of a legend

_STYLE = (
    """
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --code: #f3f5f7;
  --link: #0757a0; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15181c; --ink: #e6e9ec; --soft: #a3abb4; --line: #363c44; --code: #20252b; --link: #7cc0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 1900px; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 3rem); }
header { border-top: 4px solid ACCENT; }
h1 { margin: 1.2rem 0 .4rem; font-size: clamp(1.5rem, 4vw, 2.2rem); line-height: 1.2; }
h2 { margin: 2rem 0 .6rem; font-size: 1.3rem; }
h3 { margin: 0; font-size: 1.1rem; }
p { margin: .4rem 0 .8rem; max-width: 75ch; }
a { color: var(--link); }
footer, figcaption, dt { color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem; margin: 1rem 0; }
dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
pre { margin: .5rem 0 1rem; padding: .6rem .8rem; overflow-x: auto; background: var(--code); border-radius: 6px;
  font: .85rem/1.5 ui-monospace, monospace; user-select: all; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; padding: clamp(.6rem, 2vw, 1rem); border: 1px solid var(--line); border-radius: 8px; min-width: 0; }
figcaption { font-size: .9rem; margin: .6rem 0; }
footer { padding-bottom: 3rem; font-size: .9rem; }
"""
).replace("ACCENT", ACCENT)


def write_page(
    path: Path, case: Case, facts: dict[str, Any], workers: int, seed: int, names: dict[str, Any], points: Path
) -> None:
    """Write the page with all that it needs inside, so that it opens offline, completely or not at all."""
    drawn = [_figure(case.run(picture.line, **names)) for picture in case.pictures]
    script, places = components([figure for figure, _ in drawn])
    figures = [
        _picture(picture, caption, place)
        for picture, (_, caption), place in zip(case.pictures, drawn, places, strict=True)
    ]
    lines = (
        f"from daskclust import datasets, plot, properties\n\nds = {case.data.format(seed=seed)}\n"
        f"found = {case.cluster}\ntable = {case.table}"
    )
    others = [name for name, other in CASES.items() if other is not case]
    same = "are equal, element by element" if facts["equal"] else "DIFFER: please report it"
    file = shlex.quote(str(points))
    body = f"""
<header><h1>{escape(case.title)}</h1><p>{escape(case.about)}</p></header>
<main>
<h2>What was found</h2>
<dl>{_facts(facts)}</dl>
<p>The results of {workers} Dask workers and of one process {same}.</p>
<h2>Data and parameters</h2>
{_code(lines)}
<p>The same in a terminal, of the points that this demonstration wrote to a file:</p>
{_code(case.command.replace("FILE", file))}
<h2>Pictures</h2>
<p>Move the mouse over a picture for numbers, and drag a box to zoom in.</p>
<div class="pictures">{"".join(figures)}</div>
<h2>What to try next</h2>
<p>Change the parameters with sliders, in the browser:</p>
{_code(f"daskclust explore {file} --system {points.stem}")}
<p>Another value: {escape(case.change)}.</p>
{_code(case.other.replace("FILE", file))}
<p>The other demonstrations:</p>
{_code(chr(10).join(f"daskclust demo {name}" for name in others))}
<p>A file of your own: <code>daskclust --help</code> tells which command reads it.</p>
</main>
<footer>Made by daskclust {daskclust.__version__}, seed {seed}. This page needs no network.</footer>"""
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(case.title)} - daskclust</title><link rel="icon" href="data:,"><style>{_STYLE}</style>'
        + "".join(f"<script>{raw}</script>" for raw in Resources(mode="inline", components=["bokeh"]).js_raw)
    )
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}\n{script}</body></html>\n'
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


def _picture(picture: DemoPicture, caption: str, place: str) -> str:
    """Return a picture with its heading, what is seen, and the line that makes it."""
    name = escape(picture.heading)
    return (
        f'<figure aria-label="{name}"><h3>{name}</h3><p>{escape(picture.seen)}</p>{place}'
        f"<figcaption>{escape(caption)}</figcaption>{_code(picture.line)}</figure>"
    )


def _facts(facts: dict[str, Any]) -> str:
    """Return numbers with their names."""
    words = {
        "points": f"{facts['points']:,}",
        "clusters": f"{facts['clusters']:,}",
        "points in no cluster": f"{facts['noise']:,}",
        "purity": f"{facts['purity']:.3f}",
        "completeness": f"{facts['completeness']:.3f}",
        "time on workers": f"{facts['seconds_dask']:.3g} s",
        "time in one process": f"{facts['seconds_memory']:.3g} s",
    }
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in words.items())


def _code(lines: str) -> str:
    """Return lines to copy: a click chooses all of them."""
    return f'<pre tabindex="0">{escape(lines)}</pre>'
