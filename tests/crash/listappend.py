"""List-append workloads on one graph, for the isolation checker.

A list is the digits of a number, base 16: `items * 16 + d` appends the digit d, inside the mutation
itself. A digit identifies its session, so a key takes at most 15 appends; sessions move on to other
keys when they have used theirs up. Kinds of transactions:

    read     all cells that are in use, in one query
    append   one or two cells, without reading them, in one commit
    decide   one cell after reading all, only if the branch has not moved since (`if_commit`)
    claim    a unique name: a claim that succeeds has read that the name was free
    fork     a branch of its own: read, append, merge back; overlapping forks are snapshot isolated

Each session logs an operation before it begins and after it ends, so the log of a killed session
ends with one whose outcome is unknown.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, TextIO

from tests.isolation.history import Append, Operation, Outcome, Read, Transaction

import omnigraph
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    InvalidDataError,
    OmniGraphError,
    PreconditionFailedError,
    RecoveryRequiredError,
)
from omnigraph.graph import Graph

SCHEMA = """
node Cell { key: String @key
    items: I64 }
node Claim { token: I64 @key
    name: String @unique }
"""
SESSIONS = 4
EACH = 3  # appends of one session to one key: 4 sessions x 3 digits fit into 15
ACTIVE = 3
NAMES = ("x", "y", "z")
KINDS = ("read", "read", "append", "append", "decide", "decide", "claim")
FORKING = (*KINDS, "fork", "fork", "fork")
READ = "query q() { match { $c: Cell } return { $c.key as key, $c.items as items } }"
_REFUSED = (ConflictError, PreconditionFailedError, InvalidDataError)
_LOST = (CommitOutcomeUnknownError, RecoveryRequiredError)


def keys_for(count: int) -> list[str]:
    """Enough keys for sessions of `count` operations each."""
    return [f"k{number:02}" for number in range(2 * count // EACH + ACTIVE + 1)]


def new_lists(uri: str, count: int) -> Graph:
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna")
    graph.ingest([{"key": key, "items": 0} for key in keys_for(count)], type="Cell")
    return graph


@dataclass
class Session:
    """One client: a loop of transactions on a handle of its own."""

    uri: str
    number: int
    chance: random.Random
    keys: Sequence[str]
    used: Counter[str] = field(default_factory=Counter)
    life: int = 0  # a transaction with an unknown outcome ends a life of the session

    def __post_init__(self) -> None:
        self.graph = omnigraph.open(self.uri, actor=f"s{self.number}")

    def active(self) -> list[str]:
        return [key for key in self.keys if self.used[key] < EACH][:ACTIVE]

    def take_digit(self, key: str) -> Append:
        self.used[key] += 1
        return Append(key, self.number * EACH + self.used[key])

    def run(self, kinds: Sequence[str], count: int, log: TextIO) -> None:
        for number in range(count):
            kind = self.chance.choice(kinds)
            planned = _PLANS[kind](self, number)
            entry: dict[str, Any] = {
                "name": f"s{self.number}-{number}-{kind}",
                "session": f"s{self.number}.{self.life}",
                "begin": time.monotonic(),
                "appends": [[a.key, a.value] for a in planned],
            }
            _write(log, entry)
            self._finish(log, entry, _ACTS[kind], planned)

    def _finish(
        self,
        log: TextIO,
        entry: dict[str, Any],
        act: Callable[[Session, list[Append]], dict[str, int]],
        planned: list[Append],
    ) -> None:
        try:
            entry["reads"] = act(self, planned)
            entry["outcome"] = Outcome.OK
        except _REFUSED:
            entry["outcome"] = Outcome.FAILED
        except _LOST:
            entry["outcome"] = Outcome.UNKNOWN
            self.life += 1
            self.graph = omnigraph.open(self.uri, actor=f"s{self.number}")
        _write(log, {**entry, "end": time.monotonic()})


def _write(log: TextIO, entry: dict[str, Any]) -> None:
    log.write(json.dumps(entry) + "\n")
    log.flush()


# What each kind of transaction is going to append.


def _plan_nothing(session: Session, number: int) -> list[Append]:
    return []


def _plan_one(session: Session, number: int) -> list[Append]:
    return [session.take_digit(session.chance.choice(session.active()))]


def _plan_some(session: Session, number: int) -> list[Append]:
    keys = session.chance.sample(session.active(), session.chance.choice((1, 2)))
    return [session.take_digit(key) for key in keys]


def _plan_claim(session: Session, number: int) -> list[Append]:
    name = session.chance.choice(NAMES)
    return [Append(f"name {name}", session.number * 1000 + number + 1)]


# What each kind does; returns what was read: the numbers of the cells, by key.


def _read(session: Session, planned: list[Append]) -> dict[str, int]:
    return _cells(session.graph)[1]


def _cells(graph: Graph) -> tuple[str, dict[str, int]]:
    result = graph.query(READ)
    return result.commit_id, {row["key"]: row["items"] for row in result.rows()}


def _append(session: Session, planned: list[Append]) -> dict[str, int]:
    _mutate(session.graph, planned)
    return {}


def _decide(session: Session, planned: list[Append]) -> dict[str, int]:
    head, cells = _cells(session.graph)
    _mutate(session.graph, planned, if_commit=head)
    return cells


def _claim(session: Session, planned: list[Append]) -> dict[str, int]:
    (claim,) = planned
    text = "query q($t: I64, $n: String) { insert Claim { token: $t, name: $n } }"
    session.graph.mutate(text, params={"t": claim.value, "n": claim.key.split()[1]})
    return {claim.key: 0}


def _fork(session: Session, planned: list[Append]) -> dict[str, int]:
    name = f"s{session.number}/{planned[0].key}-{planned[0].value}"
    session.graph.create_branch(name)
    branch = session.graph.on(name)
    try:
        _, cells = _cells(branch)
        _mutate(branch, planned)
        session.graph.merge(name)
    finally:
        with suppress(OmniGraphError):
            session.graph.delete_branch(name)
    return cells


def _mutate(graph: Graph, planned: list[Append], if_commit: str | None = None) -> None:
    heads = ", ".join(f"$k{n}: String, $d{n}: I64" for n in range(len(planned)))
    body = " ".join(
        f"update Cell set {{ items: items * 16 + $d{n} }} where key = $k{n}"
        for n in range(len(planned))
    )
    params: dict[str, Any] = {}
    for n, append in enumerate(planned):
        params |= {f"k{n}": append.key, f"d{n}": append.value}
    graph.mutate(f"query q({heads}) {{ {body} }}", params=params, if_commit=if_commit)


_PLANS: dict[str, Callable[[Session, int], list[Append]]] = {
    "read": _plan_nothing,
    "append": _plan_some,
    "decide": _plan_one,
    "claim": _plan_claim,
    "fork": _plan_some,
}
_ACTS: dict[str, Callable[[Session, list[Append]], dict[str, int]]] = {
    "read": _read,
    "append": _append,
    "decide": _decide,
    "claim": _claim,
    "fork": _fork,
}


# Running sessions, and reading their logs.


def append_to_lists(
    uri: str, log: str, number: int, seed: int, count: int, kinds: Sequence[str] = KINDS
) -> None:
    """One session, in a process or thread of its own."""
    session = Session(uri, number, random.Random(seed * 100 + number), keys_for(count))
    with Path(log).open("w") as file:
        session.run(kinds, count, file)


def run_in_threads(
    uri: str, logs: Sequence[Path], seed: int, count: int, kinds: Sequence[str] = KINDS
) -> None:
    failed: list[BaseException] = []

    def run(number: int, log: Path) -> None:
        try:
            append_to_lists(uri, str(log), number, seed, count, kinds)
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread below
            failed.append(error)

    threads = [Thread(target=run, args=each) for each in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def recorded(logs: Sequence[Path]) -> list[Transaction]:
    """What the sessions logged. The later line of an operation has its outcome."""
    entries: dict[str, dict[str, Any]] = {}
    for log in logs:
        for line in log.read_text().splitlines() if log.exists() else ():
            with suppress(json.JSONDecodeError):  # a session may be killed while it writes a line
                entry = json.loads(line)
                entries[entry["name"]] = entry
    return [_transaction(entry) for entry in entries.values()]


def _transaction(entry: dict[str, Any]) -> Transaction:
    outcome = Outcome(entry.get("outcome", Outcome.UNKNOWN))
    reads = entry.get("reads", {})
    operations: list[Operation] = [Read(key, digits(number)) for key, number in reads.items()]
    operations += [Append(key, value) for key, value in entry["appends"]]
    end = None if outcome is Outcome.UNKNOWN else entry["end"]
    name, session, begin = entry["name"], entry["session"], entry["begin"]
    return Transaction(name, session, begin, end, tuple(operations), outcome)


def digits(number: int) -> tuple[int, ...]:
    """The list that a cell's number holds."""
    found = []
    while number:
        number, digit = divmod(number, 16)
        found.append(digit)
    return tuple(reversed(found))


def final_read(uri: str) -> Transaction:
    """What a new handle sees when all sessions have ended: it proves what was lost."""
    graph = omnigraph.open(uri, actor="act-anna")
    begin = time.monotonic()
    _, cells = _cells(graph)
    operations = [Read(key, digits(number)) for key, number in cells.items()]
    rows = graph.query("query q() { match { $c: Claim } return { $c.token as t, $c.name as n } }")
    claims: dict[str, list[int]] = {f"name {name}": [] for name in NAMES}
    for row in rows.rows():
        claims[f"name {row['n']}"].append(row["t"])
    operations += [Read(key, tuple(sorted(tokens))) for key, tokens in claims.items()]
    return Transaction("final", "final", begin, time.monotonic(), tuple(operations))
