"""The kill loop: writers that are killed at no particular instant, also inside of Lance.

Each writer commits again and again and says so over a pipe after every commit. What a pipe holds
stays readable when its writer dies, so the reader knows exactly what was acknowledged.

A commit adds a row to each of three tables under a name of its own, and sets the writer's own row
in two of them to its number: so one that is lost, doubled or half there is seen.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.nursery import Nursery
from tests.support.branchgraphs import content

import omnigraph
from omnigraph.errors import CommitOutcomeUnknownError, ConflictError, RecoveryRequiredError
from omnigraph.graph import Graph
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context
from omnigraph.storage.root import GraphRoot

SCHEMA = "node A { n: I64? }\nnode B { n: I64? }\nedge Link: A -> B { n: I64? }\n"
BRANCHES = ("main", "main", "side")
_LONGEST_LIFE_S = 0.08


def write_until_killed(uri: str, branch: str, name: str, pipe: str) -> None:
    """The life of a writer: it has no end of its own."""
    said = os.open(pipe, os.O_WRONLY)
    graph = omnigraph.open(uri, actor=name).on(branch)
    for number in range(10_000):
        token = f"{name}-{number}"
        while True:
            try:
                graph.ingest(_rows(token, name, number), "merge", message=token)
                break
            except RecoveryRequiredError:  # somebody died half-way; opening rolls it back
                graph = omnigraph.open(uri, actor=name).on(branch)
            except (ConflictError, CommitOutcomeUnknownError):
                if any(commit.message == token for commit in graph.commits()):
                    break
        os.write(said, json.dumps(token).encode() + b"\n")


def _rows(token: str, name: str, number: int) -> list[dict[str, Any]]:
    return [
        {"type": "A", "data": {"id": token, "n": number}},
        {"type": "B", "data": {"id": token, "n": number}},
        {"type": "A", "data": {"id": name, "n": number}},
        {"type": "B", "data": {"id": name, "n": number}},
        {"edge": "Link", "from": token, "to": token, "data": {"id": token, "n": number}},
    ]


@dataclass
class KillLoop:
    """One graph, and all that was ever acknowledged on it."""

    folder: Path
    nursery: Nursery
    acknowledged: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    recovered: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.uri = str(self.folder / "graph")
        omnigraph.init(self.uri, SCHEMA, actor="act-anna").create_branch("side")
        self.acknowledged = {branch: set() for branch in BRANCHES}
        self.seen = {branch: set() for branch in BRANCHES}

    def cycle(self, number: int) -> None:
        """Writers live for a moment, and die; then everything is looked at."""
        chance = random.Random(number)
        branches = chance.sample(BRANCHES, chance.randrange(1, 3))
        lives = [self._start(f"w{number}x{k}", branch) for k, branch in enumerate(branches)]
        # Some die before their first commit, some while others go on.
        if chance.random() < 0.85:
            self._wait_for_word(lives)
        for child, pipe, branch in lives:
            time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
            os.kill(child, signal.SIGKILL)
            ending = self.nursery.bury(child)
            assert ending.killed, f"a writer ended by itself: {ending.error}"
            self.acknowledged[branch] |= heard(pipe)
        self._check()

    def _start(self, name: str, branch: str) -> tuple[int, int, str]:
        path = self.folder / f"{name}.pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        child = self.nursery.start("write_until_killed", self.uri, branch, name, str(path))
        return child, reader, branch

    def _wait_for_word(self, lives: list[tuple[int, int, str]]) -> None:
        import select

        ready, _, _ = select.select([pipe for _, pipe, _ in lives], [], [], 60)
        assert ready, "no writer got anything done within a minute"

    def _check(self) -> None:
        graph = omnigraph.open(self.uri, actor="act-anna")
        assert graph.recoveries().pending == ()
        for branch in self.acknowledged:
            self._check_branch(graph.on(branch), branch)

    def _check_branch(self, graph: Graph, branch: str) -> None:
        messages = [c.message for c in graph.commits() if str(c.kind) == "load"]
        published = set(messages)
        assert len(messages) == len(published), "a commit is there twice"
        lost = self.acknowledged[branch] - published
        assert not lost, f"acknowledged, and lost: {sorted(lost)}"
        assert self.seen[branch] <= published, "a commit was there and is gone"
        self.seen[branch] = published
        shown = content(Context(GraphRoot.at(self.uri), Principal.named("reader")), branch)
        names = {token.rsplit("-", 1)[0] for token in published}
        for table in ("A", "B"):
            assert shown.get(table, {}).keys() == published | names, f"{table} is not whole"
        assert shown.get("Link", {}).keys() == published, "Link is not whole"
        for name in names:
            last = max(int(t.rsplit("-", 1)[1]) for t in published if t.startswith(f"{name}-"))
            for table in ("A", "B"):
                assert shown[table][name]["n"] == last, f"{name} stands at an older commit"


def heard(pipe: int) -> set[str]:
    """All that a dead writer said."""
    parts = []
    while part := os.read(pipe, 65536):
        parts.append(part)
    os.close(pipe)
    return {json.loads(line) for line in b"".join(parts).splitlines()}
