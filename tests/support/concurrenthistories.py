"""Concurrent histories: several processes write to one graph, and what they saw is put on trial.

Each worker process carries out random operations on a small graph of cells and links, alone or
from two threads, and writes down when each began, when it ended and what came of it. `judge` then
walks the branch's commits in order, replays each on a plain dict, and holds the recorded outcomes
against it:

- every acknowledged commit is there once, in its place, with the effect that it reported;
- every read equals the state after exactly the commit that it names, in both tables at once;
- what ended before something else began comes before it (so nobody reads the past, and no update
  is lost);
- every refusal is true of some state between the operation's beginning and its end.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.engines.embedded.view import View
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    InvalidDataError,
    KeyConflictError,
    OmniGraphError,
    PreconditionFailedError,
    RecoveryRequiredError,
)
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.storage.root import GraphRoot

SCHEMA = """
node Cell { key: I64 @key
    value: I64 }
edge Link: Cell -> Cell @card(0..2)
"""
MOST_LINKS = 2
KEYS = 4
Op = dict[str, Any]

TEXTS = {
    "put": "query put($k: I64, $v: I64) { insert Cell { key: $k, value: $v } }",
    "add": "query add($k: I64, $v: I64) { update Cell set { value: value + $v } where key = $k }",
    "sweep": "query sweep($v: I64) { update Cell set { value: value + 1 } where value < $v }",
    "delete": "query del($k: I64) { delete Cell where key = $k }",
    "link": "query link($k: I64, $to: I64) { insert Link { from: $k, to: $to } }",
    "swap": "query swap($k: I64, $v: I64) { update Cell set { value: $v } where key = $k }",
}


# The workers.


def random_op(chance: random.Random, name: str) -> Op:
    kinds = [
        "read",
        "read",
        "append",
        "put",
        "add",
        "add",
        "add",
        "sweep",
        "delete",
        "link",
        "swap",
    ]
    return {
        "name": name,
        "kind": chance.choice(kinds),
        "k": chance.randrange(KEYS),
        "to": chance.randrange(KEYS),
        "v": chance.randrange(1, 50),
    }


SWAP = 1000
"""What a swap adds to the value that it read."""


def read_state(root: GraphRoot) -> tuple[int, dict[str, Any]]:
    """The newest commit's sequence, and both tables as it has them."""
    snapshot = resolve(root, Target())
    view = View(root, snapshot)
    cells = view.select(snapshot.catalog.nodes[0]).to_pylist()
    links = view.select(snapshot.catalog.edges[0]).to_pylist()
    return snapshot.sequence, {
        "commit": snapshot.commit_id,
        "cells": {str(cell["key"]): cell["value"] for cell in cells},
        "links": sorted(f"{link['src']}-{link['dst']}" for link in links),
    }


def carry_out(graph: Graph, root: GraphRoot, op: Op) -> dict[str, Any]:
    """Do one operation; returns its outcome."""
    kind, params = op["kind"], {name: op[name] for name in ("k", "v", "to")}
    if kind == "read":
        sequence, state = read_state(root)
        return {"outcome": "read", "sequence": sequence, **state}
    try:
        if kind == "append":
            row = {"key": op["k"], "value": op["v"]}
            result = graph.ingest([row], "append", type="Cell", message=op["name"])
        else:
            head = None
            if kind == "swap":  # decide on what was read, and write only if that still stands
                _, state = read_state(root)
                head = state["commit"]
                op["v"] = params["v"] = state["cells"].get(str(op["k"]), 0) + SWAP
            wanted = {n: v for n, v in params.items() if f"${n}:" in TEXTS[kind]}
            result = graph.mutate(TEXTS[kind], params=wanted, message=op["name"], if_commit=head)
    except OmniGraphError as error:
        return {"outcome": _named(error), "error": str(error)}
    if result.commit is None:
        return {"outcome": "nothing"}
    touched = result.affected.get("Cell"), result.affected.get("Link")
    return {
        "outcome": "done",
        "sequence": result.commit.sequence,
        "touched": [a.total if a else 0 for a in touched],
    }


def _named(error: OmniGraphError) -> str:
    for kind, name in (
        (KeyConflictError, "taken"),
        (PreconditionFailedError, "moved"),
        (CommitOutcomeUnknownError, "unknown"),
        (RecoveryRequiredError, "blocked"),  # somebody died half-way; nothing of ours happened
        (ConflictError, "conflict"),
        (InvalidDataError, "broken"),
    ):
        if isinstance(error, kind):
            return name
    raise error


def take_part(uri: str, log: str, seed: int, count: int, threads: int) -> str:
    """One worker's part, as a child of the nursery runs it."""
    work(uri, Path(log), seed, count, threads)
    return "done"


def work(uri: str, log: Path, seed: int, count: int, threads: int) -> None:
    """One worker's part of one history."""
    graph = omnigraph.open(uri)
    root = GraphRoot.at(uri)
    guard = threading.Lock()

    def note(entry: Mapping[str, Any]) -> None:
        with guard, log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def run(thread: int) -> None:
        chance = random.Random(f"{seed}-{thread}")
        for number in range(count):
            op = random_op(chance, f"{log.stem}-{thread}-{number}")
            begin, first = time.monotonic(), resolve(root, Target()).sequence
            note({"begin": begin, "first": first, **op})
            outcome = carry_out(graph, root, op)
            if outcome["outcome"] == "blocked":
                omnigraph.open(uri)  # rolls back what the dead one left
            last = resolve(root, Target()).sequence
            note({"end": time.monotonic(), "last": last, **op, **outcome})

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def new_cells(folder: Path) -> Graph:
    """A graph to begin a history with."""
    graph = omnigraph.init(str(folder / "graph"), SCHEMA, actor="judge")
    graph.ingest([{"key": 0, "value": 0}, {"key": 1, "value": 0}], type="Cell", message="start")
    return graph


def recorded(logs: Iterable[Path]) -> list[dict[str, Any]]:
    """All that workers wrote down."""
    return [
        json.loads(line) for log in logs if log.exists() for line in log.read_text().splitlines()
    ]


def serve() -> None:
    """The body of a worker process: histories come in on stdin, one to a line."""
    for line in sys.stdin:
        task = json.loads(line)
        work(task["uri"], Path(task["log"]), task["seed"], task["count"], task["threads"])
        print("done", flush=True)


class Workers:
    """Processes that take part in one history after another."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes = [_start() for _ in range(count)]

    def play(self, folder: Path, seed: int, *, count: int = 5, threads: int = 1) -> Trial:
        """One history on a new graph, and all that is known of it afterwards."""
        graph = new_cells(folder)
        logs = [folder / f"w{number}.jsonl" for number in range(self._count)]
        for number, (process, log) in enumerate(zip(self._processes, logs, strict=True)):
            task = {"uri": graph.uri, "log": str(log), "seed": seed * 100 + number}
            assert process.stdin is not None
            process.stdin.write(json.dumps({**task, "count": count, "threads": threads}) + "\n")
            process.stdin.flush()
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "done", "a worker failed"
        return Trial(omnigraph.open(graph.uri), recorded(logs))

    def close(self) -> None:
        for process in self._processes:
            _end(process)


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.concurrenthistories"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )


def _end(process: subprocess.Popen[str]) -> None:
    """Tell a worker that there is no more to do, and see it out."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.wait()
    process.stdout.close()


# The judge.


@dataclass
class State:
    """The model: values by key, and links as a bag."""

    cells: dict[int, int] = field(default_factory=dict)
    links: Counter[str] = field(default_factory=Counter)

    def copy(self) -> State:
        return State(dict(self.cells), Counter(self.links))

    def from_(self, key: int) -> int:
        return sum(n for link, n in self.links.items() if link.startswith(f"{key}-"))


def replay(state: State, op: Op) -> str | tuple[int, int]:
    """Carry an operation out on the model: what it touches, or why it is refused."""
    kind, k = op["kind"], op["k"]
    if kind == "append" and k in state.cells:
        return "taken"
    if kind in ("append", "put"):
        state.cells[k] = op["v"]
        return 1, 0
    if kind in ("add", "swap"):
        if k not in state.cells:
            return "nothing"
        # What a swap writes follows from the state that it met; who died did not say it.
        state.cells[k] += op["v"] if kind == "add" else SWAP
        return 1, 0
    if kind == "sweep":
        low = [key for key, value in state.cells.items() if value < op["v"]]
        for key in low:
            state.cells[key] += 1
        return (len(low), 0) if low else "nothing"
    if kind == "delete":
        return _delete(state, k)
    missing = {k, op["to"]} - state.cells.keys()
    if missing or state.from_(k) >= MOST_LINKS:
        return "broken"
    state.links[f"{k}-{op['to']}"] += 1
    return 0, 1


def _delete(state: State, key: int) -> str | tuple[int, int]:
    if key not in state.cells:
        return "nothing"
    del state.cells[key]
    gone = [link for link in state.links if str(key) in link.split("-")]
    return 1, sum(state.links.pop(link) for link in gone)


@dataclass
class Trial:
    """A history and the graph that it left."""

    graph: Graph
    entries: Sequence[Mapping[str, Any]]
    died: bool = False

    def judge(self) -> Counter[str]:
        """Raise AssertionError unless the history is that of an honest graph; returns how often
        each outcome occurred."""
        begun = {e["name"]: e for e in self.entries if "begin" in e}
        ended = {e["name"]: e for e in self.entries if "end" in e}
        assert self.died or begun.keys() == ended.keys()
        states = self._replay({**begun, **ended})
        for name, entry in ended.items():
            self._judge_one(entry, begun[name], states)
        self._judge_order(begun, ended)
        final = read_state(GraphRoot.at(self.graph.uri))[1]
        assert final["cells"] == {str(k): v for k, v in states[max(states)].cells.items()}
        return Counter(entry["outcome"] for entry in ended.values())

    def _replay(self, ops: Mapping[str, Mapping[str, Any]]) -> dict[int, State]:
        """The state after every commit, by sequence."""
        states: dict[int, State] = {}
        state = State()
        seen: set[str] = set()
        for commit in reversed(list(self.graph.commits())):
            name = commit.message
            if name == "start":
                state = State({0: 0, 1: 0})
            elif name in ops:
                assert name not in seen, f"{name} was published twice"
                seen.add(name)
                touched = replay(state, dict(ops[name]))
                assert not isinstance(touched, str), (name, ops[name], touched)
                entry = ops[name]
                if entry.get("outcome") == "done":
                    assert commit.sequence == entry["sequence"], entry
                    assert list(touched) == entry["touched"], (entry, touched)
                else:
                    assert entry.get("outcome") in (None, "unknown"), entry
            states[commit.sequence] = state.copy()
        acknowledged = {name for name, e in ops.items() if e.get("outcome") == "done"}
        assert acknowledged <= seen, f"lost: {acknowledged - seen}"
        return states

    def _judge_one(
        self, entry: Mapping[str, Any], begun: Mapping[str, Any], states: Mapping[int, State]
    ) -> None:
        outcome = entry["outcome"]
        if outcome == "read":
            state = states[entry["sequence"]]
            assert entry["cells"] == {str(k): v for k, v in state.cells.items()}, entry
            assert entry["links"] == sorted(state.links.elements()), entry
        if outcome in ("taken", "broken", "nothing"):
            between = range(begun["first"], entry["last"] + 1)
            verdicts = [replay(states[s].copy(), dict(entry)) for s in between]
            assert outcome in verdicts, (entry, verdicts)
        if outcome in ("blocked", "unknown"):
            assert self.died, entry
        if outcome in ("conflict", "moved"):
            assert self.died or entry["last"] > begun["first"], f"nobody was there: {entry}"

    def _judge_order(
        self, begun: Mapping[str, Mapping[str, Any]], ended: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """What ended before something else began comes before it."""
        placed = [(e, begun[n]["begin"]) for n, e in ended.items() if "sequence" in e]
        for earlier, _ in placed:
            for later, begin in placed:
                if earlier["end"] < begin:
                    assert earlier["sequence"] <= later["sequence"], (earlier, later)


def play_all(workers: Workers, folder: Path, seeds: Iterable[int], **options: Any) -> Counter[str]:
    """Play and judge one history per seed; returns how often each outcome occurred."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        place = folder / f"h{seed}"
        place.mkdir()
        outcomes += workers.play(place, seed, threads=1 + seed % 2, **options).judge()
    return outcomes


if __name__ == "__main__":
    serve()
