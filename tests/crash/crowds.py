"""Crowds of processes that insert into one branch and write for each other, some of them killed.

Rows have no key, so an insert that is carried out twice leaves two rows. Each process says over a
pipe what it was told is done; what a pipe holds outlives its writer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.killloop import heard
from tests.crash.nursery import Nursery

import omnigraph
from omnigraph.errors import CommitOutcomeUnknownError, RecoveryRequiredError
from omnigraph.model.commit import RECOVERY_ACTOR, CommitKind
from omnigraph.storage.root import GraphRoot
from omnigraph.writes import attempt

SCHEMA = "node Note { text: String }\n"
INSERT = "query i($t: String) { insert Note { text: $t } }"
CROWD = 4
_LONGEST_LIFE_S = 0.15


def insert_until_killed(uri: str, name: str, pipe: str) -> None:
    """The life of a process in a crowd: it has no end of its own."""
    said = os.open(pipe, os.O_WRONLY)
    # Processes write for each other only if they have the same principal: two of a crowd have.
    actor = f"act-{int(name[-1]) % 2}"
    graph = omnigraph.open(uri, actor=actor)
    attempt._note_contention(GraphRoot.at(uri), "main")
    for number in range(10_000):
        token = f"{actor}-{name}-{number}"
        while True:
            try:
                graph.mutate(INSERT, params={"t": token}, message=token)
                break
            except (RecoveryRequiredError, CommitOutcomeUnknownError):
                graph = omnigraph.open(uri, actor=actor)  # recovers what the dead have left
                if any(commit.message == token for commit in graph.commits()):
                    break
        os.write(said, json.dumps(token).encode() + b"\n")


@dataclass
class CrowdLoop:
    """One graph, and what its writers were told."""

    folder: Path
    nursery: Nursery
    acknowledged: set[str] = field(default_factory=set)
    shared: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.uri = str(self.folder / "graph")
        omnigraph.init(self.uri, SCHEMA, actor="act-anna")

    def cycle(self, number: int) -> None:
        """A crowd lives for a moment, and dies one by one while the others go on."""
        chance = random.Random(number)
        lives = [self._start(f"w{number}x{k}") for k in range(CROWD)]
        time.sleep(0.2)
        for child, pipe in lives:
            time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
            os.kill(child, signal.SIGKILL)
            ending = self.nursery.bury(child)
            assert ending.killed, f"a writer ended by itself: {ending.error}"
            self.acknowledged |= heard(pipe)
        self._check()

    def _start(self, name: str) -> tuple[int, int]:
        path = self.folder / f"{name}.pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return self.nursery.start("insert_until_killed", self.uri, name, str(path)), reader

    def _check(self) -> None:
        graph = omnigraph.open(self.uri, actor="reader")
        found = graph.query("query q() { match { $n: Note } return { $n.text as text } }").rows()
        rows = Counter(row["text"] for row in found)
        commits = [commit for commit in graph.commits() if commit.kind is CommitKind.MUTATE]
        twice = [text for text, count in rows.items() if count > 1]
        assert not twice, f"carried out twice: {twice}"
        lost = self.acknowledged - rows.keys()
        assert not lost, f"acknowledged, and lost: {sorted(lost)}"
        assert Counter(commit.message for commit in commits) == rows
        strangers = {(c.actor, c.message) for c in commits if not c.message.startswith(c.actor)}
        assert all(actor == RECOVERY_ACTOR for actor, _ in strangers), strangers
        self.shared = sum(1 for c in commits if c.details.get("group", {}).get("place", 0) > 0)
