"""A process of its own that asks long queries and is interrupted: prints what it saw as JSON.

`python interrupted.py <root>` makes a graph there, then asks each of `QUERIES` a few times while a
thread sends this process Ctrl-C. It needs a main thread of its own, which a test does not have.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.graph import Graph

SCHEMA = """
node Person {
    name: String @key
    age: I32
}
edge Knows: Person -> Person
"""
PEOPLE, DEGREE = 20_000, 10
QUERIES = {
    "rows": """query q() { match { $a: Person $a knows $b $b knows $c $c knows $d }
        return { $a.name, count(distinct $d.age) as n } order { n } limit 3 }""",
    "walks": """query q() { match { $a: Person $a knows{1,} $b } return { count($b) as n } }""",
    "pairs": """query q() { match { $a: Person $b: Person $a.age < $b.age $a.name < $b.name }
        return { count(*) as n } }""",
}
AFTERWARDS = "query q() { match { $a: Person $a knows $b } return { count(*) as n } }"
ATTEMPTS = 4
HEAD_START = 0.3


def main(root: str) -> None:
    graph = make(root)
    graph.query(AFTERWARDS).rows()
    before = files(root)
    for name, text in QUERIES.items():
        delays = [interrupt(graph, text) for _ in range(ATTEMPTS)]
        left = busy_threads()
        found: dict[str, Any] = {
            "query": name,
            "delays": delays,
            "threads": left,
            "afterwards": graph.query(AFTERWARDS).rows(),
            "files": sorted(files(root) - before),
        }
        print(json.dumps(found), flush=True)


def make(root: str) -> Graph:
    graph = omnigraph.init(root, SCHEMA)
    names = [f"p{n:05d}" for n in range(PEOPLE)]
    graph.ingest(pa.table({"name": names, "age": [n % 90 for n in range(PEOPLE)]}), type="Person")
    near = [name for name in names for _ in range(DEGREE)]
    far = [names[(n * 7919 + k * 104729) % PEOPLE] for n in range(PEOPLE) for k in range(DEGREE)]
    graph.ingest(pa.table({"from": near, "to": far}), type="Knows")
    return graph


def interrupt(graph: Graph, text: str) -> float | None:
    """Seconds from Ctrl-C to its being heard; None if the query was done before."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(HEAD_START, send)
    timer.start()
    try:
        graph.query(text).rows()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    timer.cancel()
    return None


def busy_threads(patience: float = 20.0) -> list[str]:
    """Threads of queries that do not end."""
    until = time.monotonic() + patience
    while True:
        names = [t.name for t in threading.enumerate() if t.name.endswith("-main")]
        if not names or time.monotonic() > until:
            return names
        time.sleep(0.01)


def files(root: str) -> set[str]:
    """Names of files, but for what reading may add: derived state and names of locks."""
    paths = (path.relative_to(root) for path in Path(root).rglob("*") if path.is_file())
    return {str(path) for path in paths if path.parts[0] not in ("__derived", "__locks")}


if __name__ == "__main__":
    main(sys.argv[1])
