"""Reports of benchmarks as Markdown, JSON and a page of pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daskclust.bench import chunked, clue, dbscan, events, hca, peers, scaling, stream, thesis
from daskclust.core.data.files import replacing

FORMATS = (".json", ".md", ".html")
TITLES = {
    "clue": "CLUE",
    "events": "Event building",
    "stream": "Event building, online",
    "dbscan": "DBSCAN",
    "fof": "Friends-of-friends",
    "hca": "Mahalanobis clustering",
    "thesis": "Mahalanobis clustering, the thesis's other experiments",
    "chunks": "In chunks, against all at once",
    "large": "Larger than the memory of workers",
    "scaling": "On worker processes",
}
"""Names of benchmarks as titles."""

_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "clue": clue.markdown,
    "events": events.markdown,
    "stream": stream.markdown,
    "dbscan": dbscan.markdown,
    "fof": dbscan.markdown,
    "hca": hca.markdown,
    "thesis": thesis.markdown,
    "chunks": chunked.markdown,
    "large": chunked.markdown,
    "scaling": scaling.markdown,
}


def markdown(report: dict[str, Any]) -> str:
    """Return a report of any benchmark as tables in Markdown.

    Parameters
    ----------
    report : dict
        What a benchmark returned, with ``peers`` where they were timed, or several together, as ``daskclust bench all``
        writes them: a dict with a list of ``reports``.

    Returns
    -------
    str
        Its figures, what the machine allows, and the times of other programs, as far as they are in it.
    """
    reports, parts = report.get("reports", [report]), []
    for each in reports:
        parts += [f"## {TITLES[each['system']]}"] if "reports" in report else []
        parts.append(_TABLES[each["system"]](each))
        parts += [peers.markdown(each["peers"])] if "peers" in each else []
    ceilings = next((each["ceilings"] for each in reports if "ceilings" in each), None)  # of one machine
    if ceilings is not None:
        copied, done = (ceilings[f"{what}_per_second"] / 1e9 for what in ("bytes", "operations"))
        parts.append(f"Ceilings of this machine: {copied:.1f} GB/s copied, {done:.0f} Gop/s in float32.")
    return "\n\n".join(parts)


def write_report(report: dict[str, Any], path: Path) -> None:
    """Write a report to a file, completely or not at all.

    Parameters
    ----------
    report : dict
        As of `markdown`.
    path : path
        ``.json``: all of it; ``.md``: tables; ``.html``: a page of pictures by HoloViews and bokeh, with all that it
        needs inside; needs the extra ``app``. A file that exists is replaced.

    Raises
    ------
    ValueError
        For other extensions, and for a page of a report that has nothing to draw.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"a report is written to .json, .md or .html, got {path}; name such a file")
    if path.suffix == ".html":
        from daskclust.bench.page import pictures
        from daskclust.plot import save

        save(pictures(report), path)
        return
    text = json.dumps(report, indent=1) if path.suffix == ".json" else markdown(report)
    with replacing(path) as file:
        file.write(f"{text}\n".encode())
