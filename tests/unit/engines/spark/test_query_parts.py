"""Parts of queries on Spark that need no Spark: columns there and back, what a plan looks at."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engines.expressions.shapes import last_projection
from omnigraph.engines.spark.queries.batches import Constants
from omnigraph.engines.spark.queries.scans import Reading
from omnigraph.engines.spark.queries.wanted import wanted_fields
from omnigraph.engines.spark.sparktypes import arrow_type, from_spark, to_spark_type
from omnigraph.ir.expr import Compare, CompareOp, Literal, Property
from omnigraph.ir.query import ReadQuery
from omnigraph.lang import gq
from omnigraph.lang.pg import compile_schema
from omnigraph.model.types import I64, STRING, Kind, ValueType, list_of, scalar, vector
from omnigraph.plan.planner import plan_query
from omnigraph.plan.statistics import Statistics

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    city: String?
    spot: Vector(2)?
}
edge Knows: Person -> Person { since: I32? }
"""
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)

VALUES: list[tuple[ValueType, list[Any]]] = [
    (STRING, ["a", None, ""]),
    (scalar(Kind.U32), [2**32 - 1, None, 0]),
    (scalar(Kind.U64), [2**64 - 1, None, 0]),
    (scalar(Kind.DATE), [date(2024, 2, 29), None, date(1, 1, 1)]),
    (scalar(Kind.DATETIME), [NOON, None, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)]),
    (vector(2), [[1.0, 2.0], None, [0.5, -1.0]]),
    (list_of(Kind.U64), [[2**64 - 1, 1], None, []]),
    (list_of(Kind.STRING), [["a"], None, []]),
    (list_of(Kind.DATETIME), [[NOON], None, []]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda value: str(value)[:12])
def test_columns_come_back_as_they_were(type_: ValueType, values: list[Any]) -> None:
    column = pa.array(values, type_.to_arrow())
    for part in (column, column.slice(1), column.slice(0, 1), column.slice(0, 0)):
        there = to_spark_type(part, arrow_type(type_))
        assert there.type == arrow_type(type_)
        back = from_spark(there, type_)
        assert back.type == type_.to_arrow()
        assert back.to_pylist() == part.to_pylist()


def wanted(text: str) -> dict[str, set[str]]:
    catalog = compile_schema(SCHEMA)
    query = gq.compile_query(text, catalog).query
    assert isinstance(query, ReadQuery)
    plan = plan_query(query, catalog, Statistics((("Person", 9),), (("Knows", 9),)))
    found = wanted_fields(*last_projection(plan), catalog)
    return {var: {name for name, _ in fields} for var, fields in found.items()}


def test_only_what_is_looked_at_later_is_carried() -> None:
    found = wanted(
        "query q() { match { $p: Person $p.age > 3 $p knows $q } "
        "return { $q.city } order { $p.name } }"
    )
    assert found == {"p": {"name"}, "q": {"city"}}


def test_a_returned_node_wants_all_but_its_id() -> None:
    assert wanted("query q() { match { $p: Person } return { $p } }")["p"] == {
        "name",
        "age",
        "city",
        "spot",
    }


def test_a_new_name_wants_for_the_old_one() -> None:
    found = wanted(
        "query q() { match { $p: Person } with { $p as x, count(*) as n } "
        "match { $x knows $y } return { $x.city, $y.age } }"
    )
    assert found["p"] >= {"city"}
    assert found["y"] == {"age"}


def test_conditions_are_tested_where_rows_are_read() -> None:
    table = compile_schema(SCHEMA).node("Person")
    assert table is not None
    older = Compare(CompareOp.GT, Property("p", "age", I64), Literal(3, I64))
    columns = (("c0", "id", STRING), ("c1", "city", STRING), ("c2", "gone", I64))
    reading = Reading(table, "p", columns, (older,), frozenset({"id", "age"}))
    assert reading.needed() == {"id": "id", "age": "age"}
    rows = pa.RecordBatch.from_pydict(
        {"id": ["a", "b", "c"], "age": pa.array([1, 5, None], pa.int32())}
    )
    found = reading.shape(rows, Constants({}, NOON))
    assert found.to_pylist() == [{"c0": "b", "c1": None, "c2": None}]
