"""Recorded histories for the isolation checker: several processes on one graph of cells.

Every write puts a token of its own into the cells, so what a read saw names who wrote it. Kinds:

    read     all cells, in one snapshot
    pair     two cells, blindly, in one commit
    swap     one cell, having read all, only if the branch has not moved since
    claim    a name that is unique: having it refused or granted is having read whether it was free
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.crash.nursery import Nursery, call
from tests.histories import work
from tests.isolation import INITIAL, Anomaly, Txn, find_anomalies
from tests.twosides import content

import omnigraph
from omnigraph.errors import ConflictError, InvalidDataError, PreconditionFailedError
from omnigraph.graph import Graph
from omnigraph.operations.context import Context
from omnigraph.storage.root import GraphRoot

SCHEMA = """
node Cell { key: String @key
    value: String? }
node Claim { token: String @key
    name: String @unique }
"""
KEYS = ("a", "b", "c")
NAMES = ("x", "y")
Plain = dict[str, Any]


def new_cells(uri: str) -> Graph:
    graph = omnigraph.init(uri, SCHEMA, actor="act-anna")
    graph.ingest([{"key": key, "value": INITIAL} for key in KEYS], type="Cell")
    return graph


def transact(uri: str, session: str, seed: int, count: int) -> list[Plain]:
    """One session; returns what it did that was acknowledged."""
    chance = random.Random(seed)
    graph = omnigraph.open(uri, actor=session)
    done = []
    for number in range(count):
        token = f"{session}-{number}"
        begin = time.monotonic()
        kind = chance.choice(["read", "read", "pair", "swap", "swap", "claim"])
        try:
            entry = _KINDS[kind](graph, token, chance)
        except (ConflictError, PreconditionFailedError, InvalidDataError):
            continue  # nothing of it happened, and the orders will show if it did
        done.append(
            {"name": token, "session": session, "begin": begin, "end": time.monotonic(), **entry}
        )
    return done


def take_part(uri: str, log: str, seed: int, count: int, threads: int) -> str:
    """One worker's part of another kind of history, which `tests.histories` judges."""
    work(uri, Path(log), seed, count, threads)
    return "done"


def _read_cells(graph: Graph) -> tuple[str, dict[str, str]]:
    snapshot = graph.snapshot()
    shown = content(Context(GraphRoot.at(graph.uri), "reader"), snapshot)
    return snapshot.commit_id, {key: row["value"] for key, row in shown["Cell"].items()}


def _read(graph: Graph, token: str, chance: random.Random) -> Plain:
    return {"reads": _read_cells(graph)[1], "writes": []}


def _pair(graph: Graph, token: str, chance: random.Random) -> Plain:
    keys = chance.sample(KEYS, 2)
    rows = [{"key": key, "value": token} for key in keys]
    graph.ingest(rows, "merge", type="Cell", message=token)
    return {"reads": {}, "writes": keys}


def _swap(graph: Graph, token: str, chance: random.Random) -> Plain:
    head, cells = _read_cells(graph)
    key = chance.choice(KEYS)
    text = f'query q() {{ update Cell set {{ value: "{token}" }} where key = "{key}" }}'
    graph.mutate(text, if_commit=head, message=token)
    return {"reads": cells, "writes": [key]}


def _claim(graph: Graph, token: str, chance: random.Random) -> Plain:
    name = chance.choice(NAMES)
    text = f'query q() {{ insert Claim {{ token: "{token}", name: "{name}" }} }}'
    graph.mutate(text, message=token)
    return {"reads": {f"name {name}": INITIAL}, "writes": [f"name {name}"]}


_KINDS = {"read": _read, "pair": _pair, "swap": _swap, "claim": _claim}


def record(nursery: Nursery, uri: str, seed: int, sessions: int = 4, count: int = 8) -> list[Txn]:
    """A history of several processes, and who published what in which order."""
    calls = [
        call("transact", uri, f"s{number}", seed * 100 + number, count)
        for number in range(sessions)
    ]
    entries = [entry for ending in nursery.run_all(calls) for entry in ending.result()]
    return [
        Txn(e["name"], e["session"], e["begin"], e["end"], e["reads"], frozenset(e["writes"]))
        for e in entries
    ]


def orders_of(graph: Graph, history: list[Txn]) -> dict[str, list[str]]:
    """Per key, who wrote it, in the order of the branch's commits."""
    by_name = {txn.name: txn for txn in history}
    orders: dict[str, list[str]] = defaultdict(list)
    for commit in reversed(list(graph.commits())):
        if commit.message in by_name:
            for key in sorted(by_name[commit.message].writes):
                orders[key].append(commit.message)
    return dict(orders)


def judge(nursery: Nursery, uri: str, seed: int) -> tuple[list[Txn], list[Anomaly]]:
    graph = new_cells(uri)
    history = record(nursery, uri, seed)
    fresh = omnigraph.open(uri, actor="act-anna")
    found = find_anomalies(history, orders_of(fresh, history))
    assert fresh.verify().findings == []
    assert graph.uri == fresh.uri
    return history, found
