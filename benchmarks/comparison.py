"""The measured part of `docs/comparison.md`: between two marks, from the records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from benchmarks.measure import OURS, Measure
from benchmarks.records import Record
from benchmarks.suites import NAMES

BEGIN = "<!-- Measured: written by `make bench`, do not edit this. -->"
END = "<!-- Measured: the end. -->"
_WHAT = {
    "queries": "questions about a social graph",
    "search": "searches over documents",
    "load": "loads and scans",
    "write": "one-row inserts",
    "versioning": "commits, branches, diffs and merges",
}
assert set(_WHAT) <= set(NAMES)


def renewed(text: str, kept: Sequence[Record]) -> str:
    """The page with its measured part as the records have it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_table(kept)}{END}{after}" if rest else text


def _table(kept: Sequence[Record]) -> str:
    lines = ["", "| beside | what | faster here | no difference | slower here | median ratio |"]
    lines.append("|---|---|--:|--:|--:|--:|")
    for record in kept:
        for peer in _peers(record):
            lines.append(_line(record, peer))
    return "\n".join(lines) + "\n\n"


def _peers(record: Record) -> list[str]:
    if record.suite not in _WHAT:
        return []
    return list(dict.fromkeys(peer for m in record.measures for peer in m.rivals))


def _line(record: Record, peer: str) -> str:
    ratios = [_ratio(m, peer) for m in record.measures if _timed(m, peer)]
    noise = math.log1p(record.floor)
    faster = sum(math.log(r) < -noise for r in ratios)
    slower = sum(math.log(r) > noise for r in ratios)
    version = record.versions.get(peer, record.versions.get("pyspark", ""))
    what = f"{len(ratios)} {_WHAT[record.suite]}"
    equal = len(ratios) - faster - slower
    return f"| {peer} {version} | {what} | {faster} | {equal} | {slower} | {median(ratios):.2f} |"


def _timed(measure: Measure, peer: str) -> bool:
    times = measure.unit in ("ms", "s", "µs")
    return times and peer in measure.rivals and OURS in measure.samples


def _ratio(measure: Measure, peer: str) -> float:
    return max(measure.value() / max(measure.value(peer), 1e-12), 1e-12)
