"""A constant in the type of its column: the same answer as comparing exact values."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.ir.expr import CompareOp
from omnigraph.model.types import Kind
from omnigraph.rows.coercion import Fitted, fit, fit_options, mirrored

TESTS = {
    CompareOp.EQ: lambda a, b: a == b,
    CompareOp.NE: lambda a, b: a != b,
    CompareOp.LT: lambda a, b: a < b,
    CompareOp.LE: lambda a, b: a <= b,
    CompareOp.GT: lambda a, b: a > b,
    CompareOp.GE: lambda a, b: a >= b,
}
RANGES = {
    Kind.I32: (-(2**31), 2**31 - 1),
    Kind.I64: (-(2**63), 2**63 - 1),
    Kind.U32: (0, 2**32 - 1),
    Kind.U64: (0, 2**64 - 1),
}


def f32(value: float) -> float:
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return float(near)


def decide(op: CompareOp, kind: Kind, value: Any, constant: Any) -> bool:
    question = fit(op, kind, constant)
    if isinstance(question, bool):
        return question
    return bool(TESTS[question.op](value, question.value))


# ledger: I03
@pytest.mark.parametrize(
    ("op", "kind", "constant", "expected"),
    [
        (CompareOp.EQ, Kind.I32, 5, Fitted(CompareOp.EQ, 5)),
        (CompareOp.EQ, Kind.I32, 3_000_000_000, False),
        (CompareOp.NE, Kind.I32, 3_000_000_000, True),
        (CompareOp.LT, Kind.I32, 3_000_000_000, True),
        (CompareOp.GT, Kind.I32, 3_000_000_000, False),
        (CompareOp.GE, Kind.U32, -1, True),
        (CompareOp.LT, Kind.I64, 3.5, Fitted(CompareOp.LE, 3)),
        (CompareOp.GE, Kind.I64, 3.5, Fitted(CompareOp.GT, 3)),
        (CompareOp.EQ, Kind.I64, 2.0, Fitted(CompareOp.EQ, 2)),
        (CompareOp.EQ, Kind.I64, float("nan"), False),
        (CompareOp.LT, Kind.I64, float("inf"), True),
        (CompareOp.EQ, Kind.U64, 2**63, Fitted(CompareOp.EQ, 2**63)),
        (CompareOp.EQ, Kind.F64, 2**53 + 1, False),
        (CompareOp.GT, Kind.F64, 2**53 + 1, Fitted(CompareOp.GT, float(2**53))),
        (CompareOp.EQ, Kind.F32, 0.1, Fitted(CompareOp.EQ, f32(0.1))),
        (CompareOp.LT, Kind.F32, 1e300, True),
        (CompareOp.EQ, Kind.F32, 2**24 + 1, False),
        (CompareOp.EQ, Kind.STRING, "x", Fitted(CompareOp.EQ, "x")),
    ],
)
def test_questions(op: CompareOp, kind: Kind, constant: Any, expected: Any) -> None:
    assert fit(op, kind, constant) == expected


@given(st.sampled_from(list(RANGES)), st.sampled_from(list(CompareOp)), st.data())
def test_whole_columns_compare_exactly(kind: Kind, op: CompareOp, data: st.DataObject) -> None:
    low, high = RANGES[kind]
    value = data.draw(st.integers(low, high))
    near = st.integers(value - 2, value + 2)
    constant = data.draw(near | st.integers() | st.floats(allow_nan=False, width=64))
    assert decide(op, kind, value, constant) == TESTS[op](value, constant)


@given(st.sampled_from(list(CompareOp)), st.floats(allow_nan=False), st.data())
def test_float_columns_compare_exactly_with_whole_constants(
    op: CompareOp, value: float, data: st.DataObject
) -> None:
    whole = int(value) if abs(value) < 1e300 else 0
    constant = data.draw(st.integers(whole - 2, whole + 2) | st.integers())
    assert decide(op, Kind.F64, value, constant) == TESTS[op](value, constant)


@given(st.sampled_from(list(CompareOp)), st.floats(-(2.0**100), 2.0**100, width=32))
def test_a_decimal_meets_an_f32_column_at_its_precision(op: CompareOp, value: float) -> None:
    assert decide(op, Kind.F32, value, float(repr(value))) == TESTS[op](value, value)


@pytest.mark.parametrize("op", list(CompareOp))
@pytest.mark.parametrize("hour", [0, 5])
def test_days_against_instants(op: CompareOp, hour: int) -> None:
    constant = datetime(2024, 5, 6, hour, tzinfo=UTC)
    for day in (5, 6, 7):
        value = date(2024, 5, day)
        midnight = datetime(2024, 5, day, tzinfo=UTC)
        assert decide(op, Kind.DATE, value, constant) == TESTS[op](midnight, constant)


@pytest.mark.parametrize("op", list(CompareOp))
@pytest.mark.parametrize("micros", [0, 1, 999, 1000, 1500])
def test_instants_beyond_milliseconds(op: CompareOp, micros: int) -> None:
    constant = datetime(2024, 5, 6, 7, microsecond=micros, tzinfo=UTC)
    for millis in (0, 1, 2):
        value = datetime(2024, 5, 6, 7, microsecond=millis * 1000, tzinfo=UTC)
        assert decide(op, Kind.DATETIME, value, constant) == TESTS[op](value, constant)


def test_an_instant_without_zone_is_utc() -> None:
    question = fit(CompareOp.EQ, Kind.DATETIME, datetime(2024, 5, 6))  # noqa: DTZ001
    assert question == Fitted(CompareOp.EQ, datetime(2024, 5, 6, tzinfo=UTC))


def test_options_beyond_the_type_go() -> None:
    assert fit_options(Kind.I32, [1, 2.0, 2.5, 2**40, None]) == [1, 2]


@pytest.mark.parametrize("op", list(CompareOp))
def test_mirrored(op: CompareOp) -> None:
    assert TESTS[op](1, 2) == TESTS[mirrored(op)](2, 1)
