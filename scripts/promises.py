"""Compare docs/reference/promises.md with the tests that cite its ids.

A test cites a promise by `ledger:` and one or more ids, in a comment or a docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROW = re.compile(r"^\| ([A-Z]\d\d) \| .+ \| ([^|]+) \|$", re.MULTILINE)
STATE = re.compile(r"kept|not yet|partly: .+")
CITATION = re.compile(r"\bledger: ([A-Z]\d\d(?:[, ]+[A-Z]\d\d)*)")


def stated(page: str) -> Iterator[tuple[str, str]]:
    """The id and the state of each promise on the page."""
    for match in ROW.finditer(page):
        yield match[1], match[2].strip()


def cited(tests: Path) -> dict[str, list[str]]:
    """For each cited id, the places that cite it, as `file:line` relative to the tests."""
    found: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("*.py")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for match in CITATION.finditer(line):
                for promise in re.findall(r"[A-Z]\d\d", match[1]):
                    found.setdefault(promise, []).append(f"{file.relative_to(tests)}:{number}")
    return found


def find_mismatches(page: str, citations: Mapping[str, list[str]]) -> Iterator[str]:
    """Differences between the page and the citations, one sentence each."""
    states: dict[str, str] = {}
    for promise, state in stated(page):
        if promise in states:
            yield f"promises.md lists {promise} twice."
        states[promise] = state
        yield from _mismatches(promise, state, citations.get(promise, []))
    for promise in sorted(citations.keys() - states.keys()):
        yield f"{citations[promise][0]} cites {promise}, which promises.md does not list."


def _mismatches(promise: str, state: str, places: list[str]) -> Iterator[str]:
    if not STATE.fullmatch(state):
        yield f"promises.md: the state of {promise} is {state!r}; use kept, partly: … or not yet."
    elif state == "not yet" and places:
        yield f"promises.md marks {promise} as not yet kept, but {places[0]} cites it."
    elif state != "not yet" and not places:
        yield f"promises.md marks {promise} as {state.partition(':')[0]}, but no test cites it."
