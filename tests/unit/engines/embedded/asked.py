"""A small graph and one call to ask it, for tests of the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.querygraphs import PLAIN, Shape, write_graph

from omnigraph.engines.base import DEFAULT_OPTIONS, Options
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.planner import plan_query

SCHEMA = """
node Person {
    name: String @key
    age: I32? @index
    score: F64?
    big: I64? @index
    vec: Vector(2)?
}
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""


def people(count: int, degree: int = 0) -> dict[str, list[dict[str, Any]]]:
    """`count` people, each of whom knows the next `degree`."""
    return {
        "Person": [
            {"name": f"p{i:05d}", "age": i % 90, "score": i / 2, "big": i, "vec": [1.0, i]}
            for i in range(count)
        ],
        "Knows": [
            {"from": f"p{i:05d}", "to": f"p{(i + step + 1) % count:05d}"}
            for i in range(count)
            for step in range(degree)
        ],
    }


def graph(path: Path, data: dict[str, list[dict[str, Any]]], shape: Shape = PLAIN) -> Snapshot:
    return write_graph(path / "graph", SCHEMA, data, shape)


def ask(
    engine: EmbeddedEngine,
    snapshot: Snapshot,
    body: str,
    options: Options = DEFAULT_OPTIONS,
    **params: Any,
) -> Result:
    declared = ", ".join(f"${name}: {_type(value)}" for name, value in params.items())
    query = gq.compile_query(f"query q({declared}) {{ {body} }}", snapshot.catalog).query
    assert isinstance(query, ReadQuery)
    plan = plan_query(query, snapshot.catalog, engine.statistics(snapshot))
    return engine.run(plan, snapshot, gq.bind_params(query, params), options)


def _type(value: Any) -> str:
    return {int: "I64", str: "String", float: "F64"}[type(value)]
