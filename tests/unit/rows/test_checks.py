"""Row-local checks over Arrow batches, from whatever types a frame may bring."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.lang import pg
from omnigraph.model.types import Kind, ValueType, list_of, scalar, vector
from omnigraph.rows.checks import check_rows, check_values, logical_schema
from omnigraph.rows.columns import to_column
from omnigraph.rows.findings import Findings, Origin

CATALOG = pg.compile_schema("""
node Item {
    sku: String @key
    size: I32
    price: F32?
    grade: enum(a, b, c) @default("b")
    code: String?
    since: Date @default("2024-01-31")
    at: DateTime @default("2024-01-31T10:00:00Z")
    count: U64?
    @range(size, 1..10)
    @range(price, 0.0..0.1)
    @range(count, 5..)
    @check(code, "^[A-Z]{2}[0-9]+$")
}
edge Next: Item -> Item { weight: F64? }
""")
ITEM = CATALOG.nodes[0]
NEXT = CATALOG.edges[0]


def check(data: pa.Table, table=ITEM, **options) -> tuple[list[dict], list[tuple]]:
    findings = Findings()
    rows = check_rows(table, data, Origin(), findings, **options)
    assert rows.schema.names == logical_schema(table).names
    found = [(v.record, v.property, v.rule, v.value) for v in findings.violations]
    return rows.to_pylist(), found


def items(**columns: object) -> pa.Table:
    return pa.table({"sku": ["x", "y"], "size": [1, 2], **columns})


def test_defaults_stand_in_for_what_is_left_out():
    rows, found = check(items(grade=pa.array(["a", None])))
    assert found == []
    assert [r["grade"] for r in rows] == ["a", "b"]
    assert rows[0]["since"] == date(2024, 1, 31)
    assert rows[0]["at"] == datetime(2024, 1, 31, 10, tzinfo=UTC)


def test_a_null_that_was_said_stays_where_that_can_be_told():
    _, found = check(items(grade=pa.array(["a", None])), fill_nulls=False)
    assert found == [(1, "grade", "required", None)]


def test_every_rule_names_record_property_value_and_rule():
    """ledger: T01"""
    _, found = check(
        pa.table(
            {
                "sku": ["x", None, "z", "w"],
                "size": pa.array([0, 11, 5, None], pa.int64()),
                "price": [0.1, 0.2, None, -1.0],
                "grade": ["a", "d", "b", "c"],
                "code": ["AB1", "ab1", None, "AB"],
                "count": pa.array([5, 4, None, 2**64 - 1], pa.uint64()),
                "colour": [None, "red", None, None],
            }
        )
    )
    assert sorted(found, key=str) == sorted(
        [
            (0, "size", "range", 0),
            (1, "size", "range", 11),
            (3, "size", "required", None),
            (1, "sku", "required", None),
            (1, "price", "range", pytest.approx(0.2)),
            (3, "price", "range", -1.0),
            (1, "grade", "enum", "d"),
            (1, "code", "check", "ab1"),
            (3, "code", "check", "AB"),
            (1, "count", "range", 4),
            (1, "colour", "unknown", None),
        ],
        key=str,
    )


def test_a_bound_is_met_at_the_precision_of_the_column():
    _, found = check(items(price=pa.array([0.1, 0.1], pa.float32())))
    assert found == []


def test_a_misfit_is_reported_once():
    _, found = check(pa.table({"sku": ["x"], "size": ["7"]}))
    assert found == [(0, "size", "type", "7")]


def test_violations_carry_the_places_of_their_origin():
    findings = Findings()
    origin = Origin(np.array([70, 80]), np.array([7, 8]), "in.jsonl")
    check_rows(ITEM, items(size2=[1, 1]).drop_columns("size"), origin, findings)
    assert {(v.record, v.line, v.file) for v in findings.violations} == {
        (70, 7, "in.jsonl"),
        (80, 8, "in.jsonl"),
    }


def test_rows_in_physical_columns_are_checked_alike():
    rows, _ = check(items())
    findings = Findings()
    table = pa.Table.from_pylist(rows, schema=logical_schema(ITEM))
    broken = table.set_column(
        table.column_names.index("size"), "size", pa.array([0, None], pa.int32())
    )
    check_values(ITEM, broken, Origin(), findings)
    assert [(v.record, v.rule) for v in findings.violations] == [(0, "range"), (1, "required")]


def test_edges_pass_their_ends_on():
    rows, found = check(pa.table({"src": ["a"], "dst": ["b"], "weight": [1]}), NEXT)
    assert found == []
    assert rows == [{"id": None, "src": "a", "dst": "b", "weight": 1.0}]


MIDNIGHT = datetime.fromisoformat("2024-01-31")  # without a zone, as frames have it


@pytest.mark.parametrize(
    ("column", "type_", "expected"),
    [
        (pa.array([1.0, None]), scalar(Kind.I32), [1, None]),
        (pa.array([1, None], pa.uint8()), scalar(Kind.I64), [1, None]),
        (pa.array([1, 2]), scalar(Kind.F64), [1.0, 2.0]),
        (pa.array(["a", None]).dictionary_encode(), scalar(Kind.STRING), ["a", None]),
        (pa.array(["a"], pa.large_string()), scalar(Kind.STRING), ["a"]),
        (pa.array(["a"], pa.string_view()), scalar(Kind.STRING), ["a"]),
        (pa.array([None, None]), scalar(Kind.DATE), [None, None]),
        (pa.array([MIDNIGHT]), scalar(Kind.DATE), [date(2024, 1, 31)]),
        (pa.array(["2024-01-31"]), scalar(Kind.DATE), [date(2024, 1, 31)]),
        (
            pa.array([-1], pa.timestamp("ns")),
            scalar(Kind.DATETIME),
            [datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)],
        ),
        (
            pa.array([0], pa.timestamp("s", tz="Asia/Tokyo")),
            scalar(Kind.DATETIME),
            [datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        (pa.array([date(2024, 1, 31)]), scalar(Kind.DATETIME), [datetime(2024, 1, 31, tzinfo=UTC)]),
        (pa.array([b"x"]), scalar(Kind.BLOB), [b"x"]),
        (pa.array([[1, 2], None], pa.list_(pa.int64())), vector(2), [[1.0, 2.0], None]),
        (pa.array([[1, 2]], pa.large_list(pa.float64())), vector(2), [[1.0, 2.0]]),
        (pa.array([[1, 2], None], pa.list_(pa.float16(), 2)), vector(2), [[1.0, 2.0], None]),
        (pa.array([["1", "2"], [], None]), list_of(Kind.STRING), [["1", "2"], [], None]),
        (pa.array([[1], [], None])[1:], list_of(Kind.F32), [[], None]),
        (pa.chunked_array([], pa.int64()), scalar(Kind.I32), []),
    ],
)
def test_columns_are_brought_to_their_type(column, type_: ValueType, expected):
    array, misfits = to_column(column, type_)
    array.validate(full=True)
    assert array.type == type_.to_arrow()
    assert misfits == []
    assert array.to_pylist() == expected


@pytest.mark.parametrize(
    ("column", "type_", "rows"),
    [
        (pa.array([1.5, 2.0]), scalar(Kind.I32), [0]),
        (pa.array([2**31, 1]), scalar(Kind.I32), [0]),
        (pa.array([1, None]), scalar(Kind.STRING), [0]),
        (pa.array(["1"]), scalar(Kind.F64), [0]),
        (pa.array([float("nan"), 1.0, float("inf")]), scalar(Kind.F64), [0, 2]),
        (pa.array([1e39, 1.0]), scalar(Kind.F32), [0]),
        (pa.array([MIDNIGHT + timedelta(hours=1), MIDNIGHT]), scalar(Kind.DATE), [0]),
        (pa.array(["2024-01-31", "2024-1-31"]), scalar(Kind.DATE), [1]),
        (pa.array([[1.0, 2.0], [1.0]]), vector(2), [1]),
        (pa.array([[1.0, float("inf")], [1.0, 2.0]]), vector(2), [0]),
        (pa.array([[1, None], [1]]), list_of(Kind.I32), [0]),
        (pa.array([[2**40], [1]]), list_of(Kind.I32), [0]),
        (pa.array(["base64:AA==", "AA=="]), scalar(Kind.BLOB), [1]),
        (pa.array([True]), scalar(Kind.I64), [0]),
    ],
)
def test_values_that_do_not_fit_are_found_row_by_row(column, type_: ValueType, rows):
    array, misfits = to_column(column, type_)
    assert array.type == type_.to_arrow()
    assert [m.row for m in misfits] == rows
    assert [i for i, v in enumerate(array.to_pylist()) if v is None and i in rows] == rows
