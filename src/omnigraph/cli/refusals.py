"""Violations as text for a terminal: grouped by property and rule, with examples.

    Person.age: range, 412 values
      people.jsonl:3: -1 is not within 0..150
      people.jsonl:9: 400 is not within 0..150
      people.jsonl:17: -7 is not within 0..150

At most three examples of a group; with `quiet` none. Counts are of all violations where the error
carries them (`groups`), else of those that it lists; a last line counts the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from omnigraph.errors import InvalidDataError, Violation

EXAMPLES = 3


def refusals(error: InvalidDataError, *, quiet: bool) -> Iterator[str]:
    """What follows the message of an error about rows."""
    found = error.violations
    if error.total <= 1 and all(str(each) in error.message for each in found):
        return  # the message says it all
    members: dict[tuple[str, str], list[Violation]] = defaultdict(list)
    for each in found:
        members[_place(each.type_name, each.property), each.rule].append(each)
    counts = {
        (_place(each["type"], each["property"]), each["rule"]): int(each["count"])
        for each in error.details.get("groups") or ()
    }
    for (place, rule), listed in members.items():
        count = counts.pop((place, rule), len(listed))
        yield from _group(f"{place}: {rule}" if place else rule, listed, count, quiet=quiet)
    for (place, rule), count in counts.items():  # of which none is among the listed
        yield from _group(f"{place}: {rule}" if place else rule, (), count, quiet=quiet)
    if not error.details.get("groups"):
        yield from _unlisted(error)


def _group(head: str, members: Sequence[Violation], count: int, *, quiet: bool) -> Iterator[str]:
    if count == 1 and members and not quiet:
        yield f"  {members[0]}"
        return
    yield f"  {head}, {count} value{'' if count == 1 else 's'}"
    if not quiet:
        for each in members[:EXAMPLES]:
            yield f"    {_example(each)}"


def _place(type_name: str | None, property_name: str | None) -> str:
    return ".".join(part for part in (type_name, property_name) if part)


def _example(violation: Violation) -> str:
    """Where, and what is wrong; the group has named the property."""
    where = ":".join(str(part) for part in (violation.file, violation.line) if part)
    if not where and violation.record is not None:
        where = f"record {violation.record}"
    return f"{where}: {violation.message}" if where else violation.message


def _unlisted(error: InvalidDataError) -> Iterator[str]:
    unlisted = error.total - len(error.violations)
    if unlisted <= 0:
        return
    yield f"  and {unlisted} more"
    rules = error.details.get("rules") or {}
    if rules:
        yield f"  by rule: {', '.join(f'{rule} {count}' for rule, count in rules.items())}"
