"""The everyday verbs that write, as scenes: the graph as a person uses it, killed in the middle.

Merging and its kin, and changes of schema, have scenes of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
from tests.support.doorgraph import ACTOR, head

import omnigraph
from omnigraph.graph import Graph
from omnigraph.storage.root import GraphRoot

SCHEMA = "node A { n: I64? }\nnode B { n: I64? }\nedge Link: A -> B { n: I64? }\n"


def envelopes(n: int) -> list[dict[str, Any]]:
    return [
        {"type": "A", "data": {"id": f"x{n}", "n": n}},
        {"type": "B", "data": {"id": f"y{n}", "n": n}},
        {"edge": "Link", "from": f"x{n}", "to": f"y{n}", "data": {"id": f"l{n}", "n": n}},
    ]


def filled(uri: str) -> Graph:
    graph = omnigraph.init(uri, SCHEMA, actor=ACTOR)
    graph.ingest(envelopes(1))
    return graph


def _update(graph: Graph, name: str, n: int) -> None:
    graph.mutate(f"query q() {{ update {name} set {{ n: {n} }} where n = 1 }}")


def ahead(uri: str) -> None:
    other = filled(uri).create_branch("f")
    _update(other, "A", 2)
    other.ingest(envelopes(7))


def _file(uri: str) -> None:
    filled(uri)
    lines = [json.dumps(each) for n in (2, 3) for each in envelopes(n)]
    Path(f"{uri}.jsonl").write_text("\n".join(lines))


def _scattered(uri: str) -> None:
    graph = filled(uri)
    for n in range(2, 6):
        graph.ingest(envelopes(n))


def _several(uri: str) -> None:
    """Rows in one file, so that the end of one of them is a file of its own."""
    filled(uri).ingest([each for n in (2, 3, 4) for each in envelopes(n) if "type" in each])


def _drifted(uri: str) -> None:
    """Somebody has changed a table behind our back."""
    filled(uri)
    root = GraphRoot.at(uri)
    path = head(root).tables[1].path
    lance.dataset(root.location.lance_uri(path)).update({"n": "9"})


def opened(uri: str, branch: str = "main") -> Graph:
    return omnigraph.open(uri, actor=ACTOR, branch=branch)


VERBS: dict[str, tuple[Callable[[str], object], Callable[[str], object]]] = {
    "verb mutate: update": (filled, lambda uri: _update(opened(uri), "A", 2)),
    "verb mutate: delete": (
        filled,
        lambda uri: opened(uri).mutate("query q() { delete A where n = 1 }"),
    ),
    "verb mutate: delete some": (
        _several,
        lambda uri: opened(uri).mutate("query q() { delete A where n = 2 }"),
    ),
    "verb ingest: append": (filled, lambda uri: opened(uri).ingest(envelopes(2))),
    "verb ingest: merge": (
        filled,
        lambda uri: opened(uri).ingest([*envelopes(1), *envelopes(2)], "merge"),
    ),
    "verb ingest: overwrite": (
        filled,
        lambda uri: opened(uri).ingest(envelopes(3), "overwrite"),
    ),
    "verb ingest on a branch": (ahead, lambda uri: opened(uri, "f").ingest(envelopes(8))),
    "verb load": (_file, lambda uri: opened(uri).load(f"{uri}.jsonl", engine="embedded")),
    "verb optimize": (_scattered, lambda uri: opened(uri).optimize()),
    "verb ensure indexes": (filled, lambda uri: opened(uri).ensure_indices()),
    "verb repair: adopt": (_drifted, lambda uri: opened(uri).repair(confirm=True, force=True)),
    "verb repair: discard": (_drifted, lambda uri: opened(uri).repair(confirm=True, discard=True)),
    "verb cleanup": (
        _scattered,
        lambda uri: opened(uri).cleanup(keep=1, grace=timedelta(0), confirm=True),
    ),
}
