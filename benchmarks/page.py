"""The page `docs/reference/performance.md` and its plots, from the records of the last runs.

`python -m benchmarks.page` writes them anew; `--check` says whether they still follow from the
records.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import comparison, records
from benchmarks.measure import AGAIN, KEPT
from benchmarks.plots import bars
from benchmarks.records import Record
from benchmarks.suites import NAMES
from benchmarks.tables import cell, promises_of, remarks, subjects_of

DOCS = Path(__file__).parent.parent / "docs"
REFERENCE = DOCS / "reference"
_NOTE = "<!-- Written by `make bench` from benchmarks/records; run it again, do not edit this. -->"
_INTRODUCTION = """\
# Performance

Figures of the last run of each suite, with those of comparable systems on the
same machine, in the same run, with the same data. All comparable answers were compared.

- A figure is a median; after ± half the width of the middle half of the samples.
- The *noise floor* of a suite is how far two runs of OmniGraph itself, side by side, were apart. A
  ratio within it says "no difference".
- A promise is kept or missed by the median. The best sample is shown as well, because other load on
  the machine affects the median more than the best sample.
- The time of a query is from its text to the last row, in a process that has run it before;
  *cold* is a new process, including imports and opening the graph.
- `make bench` repeats everything in less than ten minutes on two quiet cores; `make bench
  SUITE=queries SF=0.1` a part of it, on a smaller graph, whose records stay off this page; `make
  bench ARGS=--full` goes to 10,000 commits and to loads ten times as large, and takes some minutes
  more.
- `make profile Q="8 paths"` asks one question for three seconds and draws where the time goes into
  `flame.svg`, a flame graph; the pointer shows names and shares. `Q` is the beginning of the name
  of a question below, or the text of a query over the same graph.
"""
_TITLES = {
    "compile": "Compiling a query",
    "queries": "Questions about a social graph",
    "search": "Search over documents",
    "memory": "Memory",
    "cost": "Requests to an object store",
    "start": "Starting",
    "write": "Writing",
    "versioning": "Versions",
    "load": "Loading",
    "scale": "Growth",
}
_ABOUT = {
    "queries": "100,000 people, 2.3 million follows, 250,000 interests, cities, states, countries.",
    "search": "100,000 documents of 24 words with vectors of 384 dimensions, in 50 topics.",
    "write": "Every insert is durable, and checked, before the next.",
    "versioning": "A million people; both sides of a merge change 2,000 rows of their own. Every"
    " commit of a graph's past went through the write door.",
    "start": "Commands in a new process.",
    "load": "The social graph; then 100,000 nodes and 2.3 million edges on a warm `local[2]`.",
}


def pages() -> dict[Path, str]:
    """Every file that follows from the records, with its text."""
    found: dict[Path, str] = {}
    kept = [record for name in NAMES if (record := records.read(name)) is not None]
    parts = [_NOTE, _INTRODUCTION, _promises(kept)]
    for record in kept:
        parts.append(_section(record))
        plot = _plot(record)
        if plot is not None:
            found[REFERENCE / "performance" / f"{record.suite}.svg"] = plot
            parts.append(f"![{_TITLES[record.suite]}](performance/{record.suite}.svg)\n")
    found[REFERENCE / "performance.md"] = "\n".join(parts)
    compared = DOCS / "comparison.md"
    found[compared] = comparison.renewed(compared.read_text(), kept)
    return found


def _promises(kept: Sequence[Record]) -> str:
    """Every promise in one table."""
    found = [(r.suite, p) for r in kept for p in promises_of([r])]
    good = sum(p.verdict == KEPT for _, p in found)
    lines = ["## Promises", "", f"{good} of {len(found)} kept.", ""]
    lines += ["| | promised | measured | | best |", "|---|---|--:|---|--:|"]
    for suite, p in found:
        anchor = _TITLES[suite].lower().replace(" ", "-")
        lines.append(f"| [{p.of}](#{anchor}) | {p.bound} | {p.measured} | {p.verdict} | {p.best} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def drifted() -> list[str]:
    """Names of files that no longer follow from the records."""
    return [p.name for p, text in pages().items() if not p.exists() or p.read_text() != text]


def _section(record: Record) -> str:
    lines = [f"## {_TITLES[record.suite]}", ""]
    if record.suite in _ABOUT and record.scale == 1:
        lines += [_ABOUT[record.suite], ""]
    lines += [_circumstances(record), ""]
    subjects = subjects_of(record.measures)
    lines += [
        f"| | unit | {' | '.join(subjects)} | |",
        f"|---|---|{'--:|' * len(subjects)}---|",
    ]
    for measure in record.measures:
        cells = " | ".join(cell(measure, subject) for subject in subjects)
        lines.append(
            f"| {measure.name} | {measure.unit} | {cells} | {remarks(measure, record.floor)} |"
        )
    for peer, why in record.skipped.items():
        lines += ["", f"Left out: {peer} ({why})."]
    return "\n".join(lines) + "\n"


def _circumstances(record: Record) -> str:
    machine = record.machine
    busy = f", load average {machine['load']}" if "load" in machine else ""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return (
        f"{record.day}, scale {record.scale:g}, seed {record.seed}, noise floor"
        f" {record.floor:.0%}; {machine['cores']} cores ({machine['processor']}),"
        f" {machine['memory']}, {machine['system']}, Python {machine['python']}{busy}; {versions}."
    )


def _plot(record: Record) -> str | None:
    """The measures that share the suite's first unit of time."""
    units = [m.unit for m in record.measures if m.unit in ("ms", "s", "µs", "MiB", "requests")]
    if not units:
        return None
    groups = [
        (m.name, {s: m.value(s) for s in m.samples if s != AGAIN})
        for m in record.measures
        if m.unit == units[0]
    ]
    return bars(_TITLES[record.suite], units[0], groups)


def main(arguments: Sequence[str]) -> int:
    if "--check" not in arguments:
        write()
        return 0
    faults = drifted()
    for name in faults:
        print(f"docs/reference: {name} does not follow from the records; run `make bench`.")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
