"""What a thread of a long run does: one short activity after another, chosen at random.

A thread writes only rows of its own, at most `MOST_ROWS` at a time, so that the graph stays the
same size and its content can be computed from the logs. Each write is logged before it begins and
after it was acknowledged.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TextIO

from omnigraph.errors import (
    BranchNotFoundError,
    CommitOutcomeUnknownError,
    ConflictError,
    HistoryReclaimedError,
    LockTimeoutError,
    OmniGraphError,
    RecoveryRequiredError,
)
from omnigraph.graph import Graph

SCHEMA = """
node Note {
    key: String @key
    text: String @index
    n: I64
    point: Vector(4)?
}
edge Refers: Note -> Note
"""
MOST_ROWS = 40
WORDS = ("graph", "branch", "merge", "commit", "vector", "search", "index", "snapshot", "lease")
INSERT = """query q($k: String, $t: String, $n: I64, $p: Vector(4)) {
    insert Note { key: $k, text: $t, n: $n, point: $p }
}"""
# What a write may meet because others write at the same time; the row is as before.
REFUSED = (ConflictError, BranchNotFoundError)
UNCLEAR = (CommitOutcomeUnknownError, RecoveryRequiredError, LockTimeoutError)


@dataclass
class Thread:
    """`rows` are the keys that this thread has inserted and not deleted, oldest first."""

    graph: Graph
    name: str
    chance: random.Random
    log: TextIO
    rows: deque[str] = field(default_factory=deque)
    number: int = 0
    branch: int = 0

    def step(self) -> str:
        """One activity; returns its name."""
        activity = self.chance.choices(list(ACTIVITIES), list(ACTIVITIES.values()))[0]
        activity(self)
        return activity.__name__

    def note(self, *entry: str) -> None:
        self.log.write(json.dumps(entry) + "\n")
        self.log.flush()

    def write(self, sign: str, key: str, act: Callable[[], object]) -> bool:
        """Log a write before and after. True: it was acknowledged."""
        self.note(sign, key)
        try:
            act()
        except REFUSED:
            self.note("refused", key)
            return False
        except UNCLEAR:
            self.note("unclear", key)
            self.graph.recover()
            return False
        self.note("done", key)
        return True

    def new_row(self) -> tuple[str, dict[str, object]]:
        self.number += 1
        key = f"{self.name}-{self.number}"
        point = [self.chance.random() for _ in range(4)]
        text = " ".join(self.chance.choices(WORDS, k=6))
        return key, {"k": key, "t": text, "n": self.number, "p": point}


def insert(thread: Thread) -> None:
    if len(thread.rows) >= MOST_ROWS:
        delete(thread)
    key, params = thread.new_row()
    if thread.write("+", key, lambda: thread.graph.mutate(INSERT, params=params)):
        thread.rows.append(key)


def delete(thread: Thread) -> None:
    if thread.rows:
        key, text = thread.rows[0], "query q($k: String) { delete Note where key = $k }"
        if thread.write("-", key, lambda: thread.graph.mutate(text, params={"k": key})):
            thread.rows.popleft()


def update(thread: Thread) -> None:
    if thread.rows:
        text = "query q($k: String) { update Note set { n: n + 1 } where key = $k }"
        with suppress(*REFUSED, *UNCLEAR):
            thread.graph.mutate(text, params={"k": thread.chance.choice(thread.rows)})


def connect(thread: Thread) -> None:
    if len(thread.rows) > 2:
        one, two = thread.chance.sample(list(thread.rows), 2)
        text = "query q($a: String, $b: String) { insert Refers { from: $a, to: $b } }"
        with suppress(*REFUSED, *UNCLEAR):
            thread.graph.mutate(text, params={"a": one, "b": two})


def fork(thread: Thread) -> None:
    """Insert a row on a branch, merge it, delete the branch."""
    thread.branch += 1
    name = f"{thread.name}/{thread.branch}"
    key, params = thread.new_row()

    def act() -> None:
        thread.graph.create_branch(name)
        thread.graph.on(name).mutate(INSERT, params=params)
        thread.graph.merge(name, delete_branch=True)

    if thread.write("+", key, act):
        thread.rows.append(key)
    else:
        with suppress(OmniGraphError):
            thread.graph.delete_branch(name)


def look_up(thread: Thread) -> None:
    key = thread.chance.choice(thread.rows) if thread.rows else "none"
    text = "query q($k: String) { match { $n: Note { key: $k } } return { $n.n } }"
    found = thread.graph.query(text, params={"k": key}).rows()
    assert len(found) == (key != "none"), f"{key}: {found}"


def walk(thread: Thread) -> None:
    text = "query q() { match { $a: Note $a refers{1,2} $b } return { count(*) as n } }"
    thread.graph.query(text).rows()


def search(thread: Thread) -> None:
    text = """query q($w: String) {
        match { $n: Note search($n.text, $w) } return { $n.key, $n.text } limit 20
    }"""
    word = thread.chance.choice(WORDS)
    for row in thread.graph.query(text, params={"w": word}).rows():
        assert word in row["n.text"], row


def neighbours(thread: Thread) -> None:
    text = """query q($p: Vector(4)) {
        match { $n: Note } return { $n.key } order { nearest($n.point, $p) } limit 5
    }"""
    thread.graph.query(text, params={"p": [thread.chance.random() for _ in range(4)]}).rows()


def travel(thread: Thread) -> None:
    """Read an older state; maintenance may reclaim it at any time."""
    commits = [commit.id for _, commit in zip(range(20), thread.graph.commits(), strict=False)]
    with suppress(HistoryReclaimedError):
        text = "query q() { match { $n: Note } return { count(*) as n } }"
        thread.graph.query(text, commit=thread.chance.choice(commits)).rows()


def compare(thread: Thread) -> None:
    commits = [commit.id for _, commit in zip(range(5), thread.graph.commits(), strict=False)]
    with suppress(HistoryReclaimedError):
        for _ in thread.graph.diff(commits[-1], commits[0]):
            pass


def maintain(thread: Thread) -> None:
    with suppress(*REFUSED, *UNCLEAR):
        thread.graph.optimize()
        thread.graph.cleanup(keep=30, grace=timedelta(seconds=60), confirm=True)


ACTIVITIES: dict[Callable[[Thread], None], float] = {
    insert: 10,
    delete: 3,
    update: 6,
    connect: 3,
    fork: 2,
    look_up: 20,
    walk: 6,
    search: 8,
    neighbours: 6,
    travel: 4,
    compare: 2,
    maintain: 0.4,
}
