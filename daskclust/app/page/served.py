"""The page as a server gives it: names for screen readers, and no white before a dark page is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panel.io import document as sending

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
    """Let a document that is served be framed so."""
    script = Path(__file__).with_name("labels.js").read_text("utf-8")
    document.template = _HTML % (LIGHT.ground, DARK.ground, script)


def _send_all() -> None:
    """Let Panel send each message: those that came while it sent others waited until something else was sent."""
    if not all(hasattr(sending, name) for name in ("_dispatch_msgs", "_WRITE_BLOCK", "_WRITE_MSGS")):
        return  # another version of Panel
    send, told = sending._dispatch_msgs, sending._WRITE_BLOCK

    async def send_all(document: Any) -> None:
        if sending._WRITE_MSGS.get(document):
            told[document] = True  # otherwise they are taken for sent
        await send(document)  # type: ignore[no-untyped-call]

    sending._dispatch_msgs = send_all


_send_all()
