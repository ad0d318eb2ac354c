"""Gathering violations: the first ones in full, all of them counted.

Rows that break a rule are found as masks over columns, a million at a time; only the first of them
are turned into words.

Guarantees: whatever the order of discovery, what is kept are the violations of the smallest record
numbers, at most `most`; `total` counts every one. Two findings may be added up, so that parts of
an input can be checked apart (in tasks of a cluster, say).
Deliberately absent: the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from omnigraph.errors import InvalidDataError, Violation

MOST = 100
_LONGEST_VALUE = 120

Numbers: TypeAlias = np.ndarray[Any, Any]
Place: TypeAlias = tuple[str | None, str | None, str]  # type, property and rule


@dataclass(frozen=True)
class Origin:
    """Where the rows of a batch came from: record numbers from 0, lines from 1.

    `records` None: row number and record number are the same. `ids` are those of rows that exist
    already, which no record names. `is_input` False: the rows are not from an input, such as those
    of a merge, and are named by their ids.
    """

    records: Numbers | None = None
    lines: Numbers | None = None
    file: str | None = None
    ids: Sequence[str] | None = None
    is_input: bool = True

    def record(self, row: int) -> int:
        return row if self.records is None else int(self.records[row])

    def line(self, row: int) -> int | None:
        return None if self.lines is None else int(self.lines[row])

    def take(self, rows: Numbers) -> Origin:
        records = rows.astype(np.int64) if self.records is None else self.records[rows]
        return Origin(records, None if self.lines is None else self.lines[rows], self.file)

    def moved(self, records: int) -> Origin:
        """The same rows, so many records further into a larger input."""
        if not records or self.records is None:
            return self
        return Origin(self.records + records, self.lines, self.file)

    @staticmethod
    def joined(parts: Sequence[Origin]) -> Origin:
        """The origin of several batches with record numbers, one after another."""
        if len(parts) == 1:
            return parts[0]
        records = [part.records for part in parts if part.records is not None]
        lines = [part.lines for part in parts if part.lines is not None]
        return Origin(
            np.concatenate(records),
            np.concatenate(lines) if len(lines) == len(parts) else None,
            parts[0].file,
        )

    def followed_by(self, other: Origin, rows: int) -> Origin:
        """The origin of these rows and then `rows` others."""
        return Origin.joined([self, other.take(np.arange(rows))])


class Findings:
    """Violations found so far. `most`: how many are kept in full."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.total = 0
        self.by_rule: Counter[str] = Counter()
        self.by_place: Counter[Place] = Counter()
        self._kept: list[Violation] = []

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was kept, by record."""
        return tuple(sorted(self._kept, key=_place)[: self.most])

    def add(self, violation: Violation) -> None:
        self.total += 1
        self.by_rule[violation.rule] += 1
        self.by_place[_group_of(violation)] += 1
        self._keep([violation])

    def add_rows(
        self, rows: Numbers | Sequence[int], origin: Origin, describe: Callable[[int], Violation]
    ) -> None:
        """One violation for each row number; `rows` ascend."""
        described = [located(describe(int(row)), origin, int(row)) for row in rows[: self.most]]
        self._count(described, len(rows))

    def add_each(self, rows: Numbers | Sequence[int], origin: Origin, violation: Violation) -> None:
        """The same violation for each row number."""
        self.add_rows(rows, origin, lambda _: violation)

    def add_apart(self, count: int, describe: Callable[[int], Violation]) -> None:
        """Violations that belong to no record of the input."""
        self._count([describe(place) for place in range(min(count, self.most))], count)

    def merge(self, other: Findings) -> None:
        self.total += other.total
        self.by_rule.update(other.by_rule)
        self.by_place.update(other.by_place)
        self._keep(other._kept)

    def moved(self, records: int) -> Findings:
        """The same findings, so many records further into a larger input."""
        moved = Findings(self.most)
        moved.total = self.total
        moved.by_rule = self.by_rule.copy()
        moved.by_place = self.by_place.copy()
        moved._kept = [
            v if v.record is None else replace(v, record=v.record + records) for v in self._kept
        ]
        return moved

    def raise_if_any(self) -> None:
        if self.total:
            raise invalid(self.violations, self.total, places=self.by_place)

    def _count(self, described: Sequence[Violation], count: int) -> None:
        """Violations that were found together break the same rule."""
        if count:
            self.total += count
            self.by_rule[described[0].rule] += count
            self.by_place[_group_of(described[0])] += count
            self._keep(described)

    def _keep(self, violations: Iterable[Violation]) -> None:
        self._kept.extend(violations)
        if len(self._kept) > 10 * self.most:
            self._kept = sorted(self._kept, key=_place)[: self.most]


def located(violation: Violation, origin: Origin, row: int) -> Violation:
    if origin.ids is not None:
        message = f"{violation.message}, in {violation.type_name} {shown(origin.ids[row])!r}"
        violation = replace(violation, message=message)
    return replace(violation, record=origin.record(row), line=origin.line(row), file=origin.file)


def invalid(
    violations: Sequence[Violation],
    total: int,
    rules: Mapping[str, int] | None = None,
    places: Mapping[Place, int] | None = None,
) -> InvalidDataError:
    """The error about violations, whose message contains the first one; `rules` are totals for each
    rule, `places` those for each rule of each property."""
    left = {0: "", 1: " There is 1 more."}.get(total - 1, f" There are {total - 1} more.")
    counted: dict[str, Any] = {} if rules is None else {"rules": dict(sorted(rules.items()))}
    if places and len(violations) > 1:
        counted["groups"] = [
            {"type": type_name, "property": name, "rule": rule, "count": count}
            for (type_name, name, rule), count in places.items()
        ]
    return InvalidDataError(
        f"{violations[0]}.{left}", violations=violations, total=total, **counted
    )


def shown(value: Any) -> Any:
    """A value as a violation may carry it: plain and not too long."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _group_of(violation: Violation) -> Place:
    return violation.type_name, violation.property, violation.rule


def _place(violation: Violation) -> tuple[int, str, str]:
    record = -1 if violation.record is None else violation.record
    return record, violation.property or "", violation.rule
