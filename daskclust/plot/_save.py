"""Pictures to files."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

from daskclust.core.files import replacing
from daskclust.plot._elements import hv, load_backends


def save(element: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write a picture to a file, completely or not at all.

    Parameters
    ----------
    element : HoloViews object
        What the functions of this module return, or any other.
    path : str or path
        ``.html``: interactive, by bokeh, with all that it needs inside, so that it opens offline; ``.png`` or ``.svg``:
        by matplotlib. A file that exists is replaced.
    dpi : int, default 150
        Resolution of PNG.

    Raises
    ------
    ValueError
        For other extensions, and for pictures with a slider in a format that cannot have one.
    OSError
        Where the folder does not exist or cannot be written to.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "curve.png")
    ...     save(hv.Curve([1, 3, 2]), file)
    ...     file.read_bytes()[1:4]
    b'PNG'
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".html", ".png", ".svg"):
        raise ValueError(f"unknown extension {suffix!r} of {os.fspath(path)}; known: .html, .png, .svg")
    has_slider = bool(element.traverse(lambda part: part, [hv.HoloMap]))
    if has_slider and suffix != ".html":
        raise ValueError(f"a picture with a slider cannot be {suffix}; save one frame of it, or .html")
    load_backends()
    if suffix == ".html":
        content = _html(element, target.stem, has_slider=has_slider).encode("utf-8")
    else:
        content = hv.renderer("matplotlib").instance(dpi=dpi)(element, fmt=suffix[1:])[0]
        content = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(target) as stream:
        stream.write(content)


def _html(element: Any, title: str, *, has_slider: bool) -> str:
    """Return a page without references to other places."""
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import FIXED_SIZING_MODE
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    silence(FIXED_SIZING_MODE)  # HoloViews gives the size of the frame and not that of the picture: both will do
    try:
        if not has_slider:
            return str(file_html(hv.renderer("bokeh").get_plot(element).state, INLINE, title))
        import panel

        pane: Any = panel.pane.HoloViews
        page = io.StringIO()
        pane(element).save(page, embed=True, max_opts=1_000, progress=False, resources=INLINE, title=title)
    finally:
        silence(FIXED_SIZING_MODE, False)
    # icons of the page, which are elsewhere
    return re.sub(r'<link\b[^>]*\bhref="https?:[^>]*>\s*', "", page.getvalue())
