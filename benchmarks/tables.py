"""The terminal's table: a line per measure, ours first, then the others, then what it comes to."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import (
    AGAIN,
    KEPT,
    OURS,
    Measure,
    Promise,
    number,
    promises,
    verdict,
)
from benchmarks.records import Record

_NAME = 44
_COLUMN = 17


def show(record: Record) -> str:
    subjects = subjects_of(record.measures)
    head = f"{record.suite}, scale {record.scale:g}, noise floor {record.floor:.0%}"
    lines = [head, " " * _NAME + "".join(f"{s:>{_COLUMN}}" for s in subjects)]
    lines += [_line(measure, subjects, record.floor) for measure in record.measures]
    lines += [f"  {peer} is left out: {why}" for peer, why in record.skipped.items()]
    return "\n".join(lines) + "\n"


def subjects_of(measures: Sequence[Measure]) -> list[str]:
    """Everybody who was measured, ours first."""
    found = dict.fromkeys(s for m in measures if m.peers for s in m.samples if s != AGAIN)
    return sorted(found, key=lambda s: s != OURS)


def _line(measure: Measure, subjects: list[str], floor: float) -> str:
    label = f"{measure.name} [{measure.unit}]"
    cells = "".join(f"{cell(measure, s):>{_COLUMN}}" for s in subjects)
    return f"{label:<{_NAME}}{cells}  {remarks(measure, floor)}".rstrip()


def cell(measure: Measure, subject: str) -> str:
    """The median, and after ± half of the middle half."""
    if subject not in measure.samples:
        return "–"
    middle = number(measure.value(subject))
    if len(measure.samples[subject]) < 2:
        return middle
    low, high = measure.spread(subject)
    return f"{middle} ±{number((high - low) / 2)}"


def remarks(measure: Measure, floor: float) -> str:
    """The ratio, the promises, and whether everybody gave the same answer."""
    found = [verdict(measure, floor)]
    if not measure.peers:
        found.append(", ".join(f"{case}: {cell(measure, case)}" for case in measure.samples))
    found += [str(promise) for promise in promises(measure, floor)]
    if measure.same is not None:
        found.append("same answers" if measure.same else "DIFFERENT ANSWERS")
    found.append(measure.note)
    return "; ".join(part for part in found if part)


def promises_of(records: Sequence[Record]) -> list[Promise]:
    return [p for r in records for m in r.measures for p in promises(m, r.floor)]


def summary(records: Sequence[Record]) -> str:
    """How many promises were kept, and those that were not."""
    found = promises_of(records)
    kept = sum(p.verdict == KEPT for p in found)
    lines = [f"{kept} of {len(found)} promises kept"]
    for promise in found:
        if promise.verdict != KEPT:
            lines.append(f"  {promise.of}: {promise.measured}; {promise}")
    return "\n".join(lines)
