"""Reports of benchmarks as Markdown."""

# columns of runs: what a run calls it, the heading, and how it is written; of a dict a column for each of its keys
_COLUMNS = {
    "kind": ("points of", "{}"),
    "points": ("points", "{:,}"),
    "channels": ("channels", "{}"),
    "eps": ("eps", "{:g}"),
    "min_samples": ("min_samples", "{}"),
    "threads": ("threads", "{}"),
    "lanes": ("lanes", "{}"),
    "clusters": ("clusters", "{:,}"),
    "mean_size": ("mean size", "{:.1f}"),
    "steps_ms": ("(ms)", "{:.2f}"),
    "total_ms": ("total (ms)", "{:.1f}"),
    "seconds": ("seconds", "{:.1f}"),
    "mpoints_per_second": ("Mpoints/s", "{:.3g}"),
    "mhits_per_second": ("(Mhit/s)", "{:.1f}"),
    "host_to_host_ms": ("host to host (ms)", "{:.1f}"),
    "peak_bytes_per_point": ("peak (B/point)", "{:.0f}"),
    "peak_bytes_per_hit": ("peak (B/hit)", "{:.0f}"),
    "floor_ms": ("floor (ms)", "{:.3g}"),
    "equal": ("the offline rows", "{}"),
    "of_roofline": ("of roofline", "{:.2%}"),
}
_OF_PEERS = ("program", "points of", "points", "threads", "its time (ms)", "ours (ms)", "times ours", "same answer")


def markdown(report):
    """Return a report, or several as of ``all``, as tables in Markdown: runs, ceilings, other programs."""
    reports, parts = report.get("reports", [report]), []
    for each in reports:
        parts += [f"## {each['title']}"] if "reports" in report else []
        parts += _of_one(each)
    ceilings = next((each["ceilings"] for each in reports if "ceilings" in each), None)  # of one machine
    if ceilings is not None:
        copied, done = (ceilings[f"{what}_per_second"] / 1e9 for what in ("bytes", "operations"))
        parts.append(f"Ceilings of this machine: {copied:.1f} GB/s copied, {done:.0f} Gop/s in float32.")
    return "\n\n".join(parts)


def _of_one(report):
    if "runs" not in report:  # of a stream: figures in all
        facts = {name: value for name, value in report.items() if name not in ("system", "parameters", "machine")}
        forms = {float: "{:,.2f}", int: "{:,}", bool: "{!s}"}
        rows = [(name.replace("_", " "), forms[type(value)].format(value)) for name, value in facts.items()]
        return [table(("", "in all"), rows)]
    rows = [_cells(run) for run in report["runs"]]
    parts = [table(list(rows[0]), [list(row.values()) for row in rows], words=int("kind" in report["runs"][0]))]
    return parts + (peer_tables(report["peers"]) if "peers" in report else [])


def _cells(run):
    run, cells = dict(run), {}
    if "groups" in run:
        run["kind"] = f"apriori, {run['groups']:,} clusters"
    if "total_ms" in run:
        run["mpoints_per_second"] = run["points"] / run["total_ms"] / 1e3
    for key, (heading, form) in _COLUMNS.items():
        value = run.get(key)
        if isinstance(value, dict):
            cells |= {f"{step} {heading}": form.format(each) for step, each in value.items()}
        elif value is not None:
            cells[heading] = form.format(value)
    return cells


def peer_tables(peers):
    """Return times beside those of other programs, and what is not installed."""
    rows = [
        (
            f"{run['name']} {run['version']}", run["kind"],
            f"{run['points']:,}" + (f" (of {run['asked']:,})" if run["points"] < run["asked"] else ""), run["threads"],
            f"{run['ms']:.1f}", f"{run['ours_ms']:.1f}", f"{run['ratio']:.1f}", "yes" if run["agrees"] else "no",
        )
        for run in peers["timed"]
    ]  # fmt: skip
    parts = [table(_OF_PEERS, rows, words=2)] if rows else []
    if any(run["points"] < run["asked"] for run in peers["timed"]):
        parts.append("Fewer points than asked for: more would take that program too long.")
    if peers["missing"]:
        parts.append(f"Not installed, so not timed: {'; '.join(peer['name'] for peer in peers['missing'])}.")
    return parts


def table(head, rows, *, words=1):
    """Return a table in Markdown: so many columns of words, then numbers, which are aligned to the right."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *rows))
