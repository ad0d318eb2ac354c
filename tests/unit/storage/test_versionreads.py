"""Reads through handles that were opened before cleanup removed their version."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.errors import HistoryReclaimedError, StorageNotFoundError
from omnigraph.storage.search import text_topk, vector_topk
from omnigraph.storage.table import Table, open_table

SCHEMA = """
node P {
    k: String @key
    x: I64?
    text: String? @index
    spot: Vector(2)?
}
"""
READS: dict[str, Callable[[Table], Any]] = {
    "read": lambda table: table.read(["x"]),
    "filtered read": lambda table: table.read(["x"], filter=pc.field("x") > 0),
    "scan": lambda table: list(table.scan(["x"])),
    "filtered scan": lambda table: list(table.scan(["x"], filter=pc.field("x") > 0)),
    "count": lambda table: table.count(pc.field("x") > 0),
    "take": lambda table: table.take(np.arange(3, dtype=np.uint64), ["x"]),
    "lookup": lambda table: table.lookup(["p1"], ["x"]),
    "vectors": lambda table: vector_topk(table, "spot", [1.0, 2.0], 3),
    "text": lambda table: text_topk(table, "text", "red", 3),
}


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    rows = [{"k": f"p{n}", "x": n, "text": "red " * n, "spot": [n, 1]} for n in range(300)]
    graph.ingest([{"type": "P", "data": row} for row in rows])
    return graph


def old_table(graph: omnigraph.Graph) -> Table:
    snapshot = graph.snapshot()
    (version,) = snapshot.tables.values()
    return open_table(snapshot.location, version)


def clean(graph: omnigraph.Graph) -> None:
    graph.mutate("query q() { update P set { x: 2 } where k is not null }")
    graph.cleanup(keep=1, grace=timedelta(0), confirm=True)


@pytest.mark.parametrize("name", READS)
def test_a_version_that_is_gone_was_reclaimed(graph: omnigraph.Graph, name: str) -> None:
    table = old_table(graph)
    clean(graph)
    with pytest.raises(HistoryReclaimedError):
        READS[name](table)


@pytest.mark.parametrize("name", READS)
def test_a_file_that_is_lost_is_not_history(graph: omnigraph.Graph, name: str) -> None:
    table = old_table(graph)
    for place in Path(graph.uri).glob("nodes/*/data"):
        shutil.rmtree(place)
    with pytest.raises(StorageNotFoundError):
        READS[name](table)


def test_an_old_commit_is_reclaimed_whatever_was_read_before(graph: omnigraph.Graph) -> None:
    old = next(iter(graph.commits())).id
    asked = "query q() { match { $p: P } return { $p.k%s } limit 3 }"
    assert len(graph.query(asked % "", commit=old).rows()) == 3
    clean(graph)
    with pytest.raises(HistoryReclaimedError):
        graph.query(asked % ", $p.text", commit=old).rows()
