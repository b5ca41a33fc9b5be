"""The page as a server gives it: names for screen readers, and no white before a dark page is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskclust.app.look import DARK, LIGHT

_HTML = """
{%% block postamble %%}
<meta http-equiv="Content-Security-Policy" content="script-src-attr 'none'; object-src 'none'; base-uri 'none'">
<style>
html { color-scheme: light dark; background: %s }
body { overflow: auto }
@media (prefers-color-scheme: dark) { html { background: %s } }
</style>
<script type="module">%s</script>
{%% endblock %%}
"""


def frame(document: Any) -> None:
    """Set the HTML template of a served document."""
    script = Path(__file__).with_name("labels.js").read_text("utf-8")
    document.template = _HTML % (LIGHT.ground, DARK.ground, script)
