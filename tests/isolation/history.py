"""Transactions of reads and appends: what a client sent, and what it learned.

An append adds a value to the list of a key; a value is appended to a key at most once in a history.
A read returns the whole list of a key. An outcome is unknown when the client was killed or the
answer was lost: the transaction may or may not have happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Read:
    key: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Append:
    key: str
    value: int


Operation = Read | Append


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Transaction:
    """`operations` are in program order. `end` is None if the client never got an answer."""

    name: str
    session: str
    begin: float
    end: float | None
    operations: tuple[Operation, ...]
    outcome: Outcome = Outcome.OK

    @property
    def reads(self) -> Iterator[Read]:
        return (each for each in self.operations if isinstance(each, Read))

    @property
    def appends(self) -> Iterator[Append]:
        return (each for each in self.operations if isinstance(each, Append))

    @property
    def external_reads(self) -> dict[str, tuple[int, ...]]:
        """Per key, what the transaction found before it appended to that key itself."""
        found: dict[str, tuple[int, ...]] = {}
        appended: set[str] = set()
        for each in self.operations:
            if isinstance(each, Append):
                appended.add(each.key)
            elif each.key not in appended:
                found.setdefault(each.key, each.values)
        return found


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`about` names the key, or the edges of a cycle."""

    kind: str
    transactions: tuple[str, ...]
    about: str


def check_form(history: Sequence[Transaction]) -> None:
    """Raise ValueError if the history itself is malformed: no verdict can be drawn from it."""
    names: set[str] = set()
    values: set[tuple[str, int]] = set()
    for each in history:
        if each.name in names:
            raise ValueError(f"two transactions are named {each.name!r}")
        names.add(each.name)
        for append in each.appends:
            if (append.key, append.value) in values:
                raise ValueError(f"{append.value} is appended to {append.key!r} twice")
            values.add((append.key, append.value))
    for session, members in by_session(history).items():
        for one, two in pairwise(members):
            if one.end is None or one.end > two.begin:
                raise ValueError(f"{one.name!r} and {two.name!r} overlap in session {session!r}")


def by_session(history: Sequence[Transaction]) -> dict[str, list[Transaction]]:
    found: dict[str, list[Transaction]] = {}
    for each in sorted(history, key=lambda txn: txn.begin):
        found.setdefault(each.session, []).append(each)
    return found
