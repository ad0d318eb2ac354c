"""Tables compared on Spark: the differences, merges and conflicts of the embedded path."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.support.branchgraphs import content, new_graph, put

import omnigraph
from omnigraph import headroom
from omnigraph.engines.embedded import view
from omnigraph.engines.spark.tablecompare import differ_on
from omnigraph.errors import (
    EngineUnavailableError,
    InvalidArgumentError,
    InvalidDataError,
    LimitExceededError,
)
from omnigraph.graph import Graph
from omnigraph.history.entitydiff import diff_versions, type_pairs
from omnigraph.history.resolve import Target, resolve
from omnigraph.merges import comparers
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CreateBranch
from omnigraph.operations.verbs import run


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **more}


def knows(name: str, src: str, dst: str, since: int | None = None) -> dict[str, Any]:
    return {"id": name, "src": src, "dst": dst, "since": since}


def two_sides(uri: str) -> Context:
    """A graph on which `main` and `side` both changed much of everything, and no row clashes."""
    context = new_graph(uri)
    people = [
        person(f"p{n}", age=n, score=float(n), tags=["x"] * (n % 3), face=[float(n), 1.0])
        for n in range(40)
    ]
    people[7] |= {"score": math.nan, "photo": b"\x00\x01"}
    put(context, {"Person": people, "Company": [{"id": "c", "name": "c"}]})
    put(context, {"Knows": [knows(f"k{n}", f"p{n}", f"p{n + 1}") for n in range(20)]})
    run(context, CreateBranch("side"))
    put(context, {"Person": [person("p1", age=99), people[7]]}, removed={"Knows": ["k3"]})
    put(context, {"Person": [person("new", photo=b"abc")]})
    put(context, {"Knows": [knows("k5", "p5", "p6", 2020)]}, "side", {"Person": ["p39"]})
    put(context, {"Person": [person("p2", city="Rome", age=2), person("far")]}, "side")
    return context


# ledger: B02, B03
def test_differences_are_those_of_the_embedded_path(tmp_path: Path, spark: Any) -> None:
    context = two_sides(str(tmp_path / "graph"))
    graph = omnigraph.open(context.root.uri)
    graph.optimize()
    graph.on("side").ingest([], "overwrite", types=["Company"])
    differ, root = differ_on(spark), context.root
    first = resolve(root, Target("main", version=3))
    main, side = resolve(root, Target("main")), resolve(root, Target("side"))
    compared = 0
    for before, after in ((first, main), (first, side), (main, side), (side, main), (main, main)):
        for pair in type_pairs(before, after):
            old, new = before.table(pair.shown.id), after.table(pair.shown.id)
            mine, theirs = differ(root, pair, old, new), diff_versions(root, pair, old, new)
            for found, expected in ((mine.before, theirs.before), (mine.after, theirs.after)):
                assert found.schema == expected.schema
                shown = ["id", *(p.column for p in pair.shown.properties)]
                assert str(found.select(shown).to_pylist()) == str(
                    expected.select(shown).to_pylist()
                )
                compared += found.num_rows
    assert compared > 20


def test_a_merge_compared_on_spark_is_the_same_merge(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged: list[Any] = []
    for engine in ("embedded", "spark"):
        context = two_sides(str(tmp_path / engine))
        graph = omnigraph.open(context.root.uri)
        with monkeypatch.context() as patch:
            patch.setattr(headroom, "total_bytes", lambda: 400)
            with pytest.raises(LimitExceededError):
                graph.preview_merge("side", engine=engine)
        preview = graph.preview_merge("side", engine=engine)
        changes = list(graph.diff("main", "side", engine=engine))
        outcome = graph.merge("side", engine=engine)
        merged.append((preview.counts, preview.conflicts, str(changes), outcome.outcome))
        merged.append(str(content(context)))
    assert merged[0] == merged[2]
    assert merged[1] == merged[3]


def test_conflicts_found_on_spark_are_the_same(tmp_path: Path, spark: Any) -> None:
    context = two_sides(str(tmp_path / "graph"))
    put(context, {"Person": [person("p2", city="Oslo", age=2), person("far", age=3)]})
    put(context, {"Knows": [knows("late", "p1", "p39")]})
    graph = omnigraph.open(context.root.uri)
    found = graph.preview_merge("side", engine="spark").conflicts
    assert [c.kind for c in found]
    assert found == graph.preview_merge("side", engine="embedded").conflicts


def test_rules_checked_on_spark_find_the_same(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that both sides gave out, among so many that the whole table is passed over, and keys
    over a column that the target has not got."""
    monkeypatch.setattr(view, "_MANY", 0)
    context = two_sides(str(tmp_path / "graph"))
    put(context, {"Person": [person("o1", email="a"), person("o2", email="b")]})
    put(context, {"Person": [person("t1", email="b"), person("t2", email="c")]}, "side")
    graph = omnigraph.open(context.root.uri)
    graph.apply_schema(graph.schema().replace("city: String?", "city: String?\n  rank: I64?"))
    wider = "city: String?\n  code: I64 @default(5) @unique"
    with pytest.raises(InvalidDataError):
        graph.on("side").apply_schema(graph.on("side").schema().replace("city: String?", wider))
    nullable = wider.replace("I64 @default(5)", "I64?")
    graph.on("side").apply_schema(graph.on("side").schema().replace("city: String?", nullable))
    put(context, {"Person": [person("t3", code=1)]}, "side")
    found = graph.preview_merge("side", engine="spark").conflicts
    assert {(c.kind, c.entity_id) for c in found} >= {("UniqueViolation", "t1")}
    assert found == graph.preview_merge("side", engine="embedded").conflicts
    put(context, {}, "side", {"Person": ["t1"]})
    assert graph.merge("side", engine="spark").outcome == "merged"
    assert graph.verify().is_clean


def test_large_tables_are_compared_on_spark_unless_it_is_missing(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = two_sides(str(tmp_path / "graph"))
    graph: Graph = omnigraph.open(context.root.uri)
    asked: list[str] = []
    on_spark = comparers._on_spark

    def watched(settings: Any) -> Any:
        asked.append("spark")
        return on_spark(settings)

    monkeypatch.setattr(comparers, "_on_spark", watched)
    expected = graph.preview_merge("side")
    assert not asked
    monkeypatch.setattr(comparers, "LARGE_ROWS", 3)
    assert graph.preview_merge("side") == expected
    assert asked

    def missing(settings: Any) -> Any:
        raise EngineUnavailableError("There is no Spark here.")

    monkeypatch.setattr(comparers, "_on_spark", missing)
    assert graph.preview_merge("side") == expected
    with pytest.raises(InvalidArgumentError, match="no engine"):
        graph.preview_merge("side", engine="abacus")
