"""A disk that lies: every kind of file of a graph, damaged in every way.

    furnish(uri)                  a graph that has every kind of file, and what it answers
    files_of(uri)                 its files by kind
    harm(uri, path, way, seed)    damages one file
    probe_disk(uri)               what a reader, an export, `fsck` and a writer make of it

A probe is fine when each of them gives the right answer or raises an error of ours. An older state
counts as right only if opening reported the loss. Everything else is returned as a problem.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.decay import at_once

import omnigraph
from omnigraph import faults
from omnigraph.engines.embedded import adjacency_store
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.errors import OmniGraphError, StorageTransientError
from omnigraph.graph import Graph

SCHEMA = """
node Doc {
    key: String @key
    body: String? @index
    n: I64? @index
}
edge Cites: Doc -> Doc { w: I64? }
"""
ROWS = 60
PAGE = 4096
WORDS = ("apple", "apples and pears", "orange", "river")
ALL = "match { $d: Doc } return { $d.key as k, $d.body as b, $d.n as n }"
QUESTIONS = (
    ALL,
    "match { $d: Doc $d.n >= 30 } return { $d.key as k }",
    'match { $d: Doc search($d.body, "apple") } return { $d.key as k }',
    "match { $d: Doc $d cites $e } return { $d.key as d, $e.key as e }",
    "match { $d: Doc $d cites{1,3} $e } return { $d.key as d, count($e) as n }",
)
BRANCHES = ("main", "side")

Facts = dict[str, Any]
Answers = dict[str, list[str]]


class Way(StrEnum):
    FLIP = "one flipped bit"
    PAGE = "a page of zeros"
    HALF = "cut to half"
    EMPTY = "empty"
    MISSING = "missing"
    OLD = "older content"
    SWAP = "content of another file"
    UNREADABLE = "cannot be read"


def furnish(uri: str) -> None:
    """Build the graph; keep beside it what its states answer, and older contents of its files."""
    chance = random.Random(5)
    history: dict[str, list[str]] = defaultdict(list)
    kept = Path(f"{uri}.history")
    with patch.object(adjacency_store, "_LEAST_EDGES", 0), patch.object(Bounds, "beside", at_once):
        for number, _ in enumerate(_stages(uri, chance)):
            _keep_contents(Path(uri), kept / str(number), history)
        graph = omnigraph.open(uri)
        states = {branch: _states(graph.on(branch)) for branch in BRANCHES}
        exported = {branch: exported_lines(graph.on(branch)) for branch in BRANCHES}
    facts = {"states": states, "exports": exported, "older": dict(history)}
    facts_file(uri).write_text(json.dumps(facts))


def facts_file(uri: str) -> Path:
    return Path(f"{uri}.facts.json")


def _stages(uri: str, chance: random.Random) -> Iterator[None]:
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna", durability="process")
    docs = [{"key": f"k{n:02}", "body": chance.choice(WORDS), "n": n} for n in range(ROWS)]
    edges = [
        {"from": f"k{chance.randrange(ROWS):02}", "to": f"k{chance.randrange(ROWS):02}", "w": n}
        for n in range(2 * ROWS)
    ]
    graph.ingest(docs, type="Doc", idempotency_key="first")
    graph.ingest(edges, type="Cites")
    yield
    side = graph.create_branch("side")
    side.ingest([{"key": "s1", "body": "river", "n": 100}], type="Doc")
    graph.mutate("query q() { delete Doc where n < 5 }")
    graph.optimize()
    yield
    graph.mutate('query q() { update Doc set { body: "apple" } where n > 55 }')
    graph.create_branch("gone").ingest([{"key": "g1"}], type="Doc")
    graph.delete_branch("gone")
    graph.merge("side")
    graph.create_tag("v1")
    side.ingest([{"key": "s2", "body": "apple", "n": 101}], type="Doc")
    graph.apply_schema(SCHEMA + "node Note { text: String? }\n")
    yield
    with faults.armed("commit.before_publish", faults.Raise(StorageTransientError)):
        try:
            graph.ingest([{"key": "late", "n": 7}], type="Doc")
        except OmniGraphError:
            pass
        else:
            raise AssertionError("the write was not interrupted")
    omnigraph.open(uri)  # recovers it, and writes the audit
    for text in QUESTIONS:
        ask(graph, text)
    yield


def _keep_contents(root: Path, kept: Path, history: dict[str, list[str]]) -> None:
    """Remember contents that later stages replace."""
    shutil.copytree(root, kept)
    for file in kept.rglob("*"):
        if file.is_file():
            history[file.relative_to(kept).as_posix()].append(str(file))


def _states(graph: Graph) -> list[Answers]:
    """What each kept state answers, the newest first."""
    states = []
    for commit in graph.commits():
        try:
            states.append({text: ask(graph, text, commit=commit.id) for text in QUESTIONS})
        except OmniGraphError:  # before the first schema of this shape
            continue
    return states


def ask(graph: Graph, text: str, **at: Any) -> list[str]:
    rows = graph.query(f"query q() {{ {text} }}", **at).rows()
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def exported_lines(graph: Graph) -> list[str]:
    return sorted(line.decode() for line in graph.export_lines())


def files_of(uri: str) -> dict[str, list[str]]:
    """The files of a graph by kind, each kind in the order in which its files were written."""
    root = Path(uri)
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(root.rglob("*"), key=lambda each: (each.stat().st_mtime_ns, each.name)):
        if file.is_file():
            path = file.relative_to(root).as_posix()
            found[kind_of(path)].append(path)
    for kind in ("lock",):
        found.pop(kind, None)
    return dict(sorted(found.items()))


def kind_of(path: str) -> str:
    """Which kind of file a path is: a folder of ours, and a folder of Lance's within it."""
    first = path.split("/")[0]
    if first in ("__locks", "__tmp"):
        return "lock"
    if first == "__derived":
        return "derived record" if path.endswith(".record") else "derived"
    owners = {"nodes": "table", "edges": "table", "__manifest": "manifest"}
    owner = owners.get(first, "audit" if first.endswith(".lance") else "")
    if not owner:
        return first
    parts = {
        "/data/": "data", "/_deletions/": "deletion", "/_indices/": "index",
        "/_transactions/": "transaction", "/_refs/": "fork", "latest_version_hint": "hint",
        "/_versions/": "version",
    }  # fmt: skip
    return f"{owner} {next(name for part, name in parts.items() if part in path)}"


def harm(uri: str, path: str, way: Way, seed: int, facts: Facts, others: list[str]) -> bool:
    """Damage a file in one way; False if that would change nothing."""
    file, chance = Path(uri, path), random.Random(f"{seed} {way}")
    data = file.read_bytes()
    if way in (Way.MISSING, Way.UNREADABLE):
        file.unlink()
        if way is Way.UNREADABLE:
            file.mkdir()  # reading it is an error of the operating system
        return True
    harmed = _harmed(bytearray(data), way, chance)
    if way is Way.OLD:
        older = [Path(each).read_bytes() for each in facts["older"].get(path, [])]
        harmed = next((each for each in older if each != data), data)
    if way is Way.SWAP and others:
        harmed = Path(uri, chance.choice(others)).read_bytes()
    if harmed == data:
        return False
    file.unlink()  # what is mapped already stays as it was
    file.write_bytes(harmed)
    os.utime(file)
    return True


def _harmed(data: bytearray, way: Way, chance: random.Random) -> bytes:
    if way is Way.FLIP and data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way is Way.PAGE and data:
        at = chance.randrange(len(data)) // PAGE * PAGE
        data[at : at + PAGE] = bytes(len(data[at : at + PAGE]))
    elif way is Way.HALF:
        return bytes(data[: len(data) // 2])
    elif way is Way.EMPTY:
        return b""
    return bytes(data)


class _Probe:
    """Collects what went wrong, which answers were wrong, and which errors were raised."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.problems: list[str] = []
        self.wrong: list[str] = []
        self.errors: list[str] = []

    def attempt(self, name: str, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except OmniGraphError as error:
            self.errors.append(f"{name}: {error.code}: {error.message}")
        except BaseException as error:  # noqa: BLE001  # also what Rust raises
            self.problems.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        return None

    def compare(self, graph: Graph, branch: str) -> None:
        on = graph.on(branch)
        states = self._facts["states"][branch]
        allowed = states if graph.losses else states[:1]
        for text in QUESTIONS:
            found = self.attempt(f"query {branch}", partial(ask, on, text))
            if found is not None and not any(found == state[text] for state in allowed):
                self.wrong.append(f"{branch}: {text}")
        lines = self.attempt(f"export {branch}", lambda: exported_lines(on))
        if lines is not None and not graph.losses and lines != self._facts["exports"][branch]:
            self.wrong.append(f"{branch}: export")

    def write(self, graph: Graph) -> None:
        before = self.attempt("read", lambda: ask(graph, ALL))
        row = {"key": "new", "body": "fresh", "n": 500}
        done = self.attempt("write", lambda: graph.ingest([row], type="Doc"))
        after = self.attempt("read", lambda: ask(graph, ALL)) if done is not None else None
        if before is not None and after is not None:
            fresh = json.dumps({"b": "fresh", "k": "new", "n": 500}, sort_keys=True)
            if after != sorted([*before, fresh]):
                self.wrong.append("main: after a write")


def probe_disk(uri: str) -> Facts:
    """Ask a damaged graph for everything."""
    found = _Probe(json.loads(facts_file(uri).read_text()))
    with patch.object(adjacency_store, "_LEAST_EDGES", 0), patch.object(Bounds, "beside", at_once):
        reader = found.attempt("open", lambda: omnigraph.open(uri, read_only=True))
        findings: list[str] = []
        if reader is not None:
            seen = found.attempt("fsck", reader.verify)  # before reading makes derived files again
            findings = [f"{f.where} {f.message}" for f in seen.findings] if seen else []
            for branch in BRANCHES:
                found.compare(reader, branch)
        writer = found.attempt("open for writing", lambda: omnigraph.open(uri, actor="act-ben"))
        if writer is not None:
            found.compare(writer, "main")
            found.write(writer)
    return {
        "problems": found.problems,
        "wrong": found.wrong,
        "errors": found.errors,
        "findings": findings,
        "losses": [loss.message for loss in reader.losses] if reader is not None else [],
    }


def names_it(path: str, seen: Facts) -> bool:
    """Whether `fsck`, the losses or an error name the damaged file."""
    said = [*seen["findings"], *seen["losses"], *seen["errors"]]
    return any(Path(path).name in each for each in said)
