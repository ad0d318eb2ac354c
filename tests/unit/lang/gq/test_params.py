"""Parameters: what a caller may give, what comes out, and what is said about the rest."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import Param
from omnigraph.ir.query import Query, ReadQuery
from omnigraph.lang import gq
from omnigraph.model.types import Kind, ValueType, enum_of, list_of, scalar, vector


def query(**params: ValueType) -> Query:
    return ReadQuery("q", tuple(Param(name, type_) for name, type_ in params.items()), ())


def bind(type_: ValueType, value: Any) -> Any:
    return gq.bind_params(query(x=type_), {"x": value})["x"]


def reason(type_: ValueType, value: Any) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        bind(type_, value)
    (problem,) = caught.value.details["problems"]
    assert problem["param"] == "x"
    return str(problem["reason"])


NOON = datetime(2026, 2, 14, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "given", "bound"),
    [
        (Kind.STRING, "a", "a"),
        (Kind.BOOL, True, True),
        (Kind.I32, -5, -5),
        (Kind.I32, "7", 7),
        (Kind.I64, "9007199254740993", 9007199254740993),
        (Kind.I64, np.int16(3), 3),
        (Kind.U64, 2**64 - 1, 2**64 - 1),
        (Kind.U64, "18446744073709551615", 2**64 - 1),
        (Kind.F64, 3, 3.0),
        (Kind.F32, 1.5, 1.5),
        (Kind.F64, np.float32(0.5), 0.5),
        (Kind.DATE, "2026-02-14", date(2026, 2, 14)),
        (Kind.DATE, date(2026, 2, 14), date(2026, 2, 14)),
        (Kind.DATETIME, "2026-02-14T12:00:00Z", NOON),
        (Kind.DATETIME, "2026-02-14T12:00:00", NOON),
        (Kind.DATETIME, "2026-02-14T14:00:00+02:00", NOON),
        (Kind.DATETIME, NOON.astimezone(timezone(timedelta(hours=-3))), NOON),
        (Kind.DATETIME, NOON.replace(microsecond=1999), NOON.replace(microsecond=1000)),
        (Kind.BLOB, b"bytes", b"bytes"),
        (Kind.BLOB, "file:///x", "file:///x"),
    ],
)
def test_values_come_out_in_their_type(kind: Kind, given: Any, bound: Any) -> None:
    found = bind(scalar(kind), given)
    assert found == bound
    assert type(found) is type(bound)


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        (Kind.STRING, 3, "wrong_type"),
        (Kind.BOOL, 1, "wrong_type"),
        (Kind.BOOL, "true", "wrong_type"),
        (Kind.I32, True, "wrong_type"),
        (Kind.I32, 1.0, "wrong_type"),
        (Kind.I32, "1.0", "wrong_type"),
        (Kind.I32, "9" * 5000, "wrong_type"),
        (Kind.I32, 2**31, "out_of_range"),
        (Kind.I64, 2**63, "out_of_range"),
        (Kind.U32, -1, "out_of_range"),
        (Kind.U64, "-1", "out_of_range"),
        (Kind.F64, "1.5", "wrong_type"),
        (Kind.F64, True, "wrong_type"),
        (Kind.F64, float("nan"), "out_of_range"),
        (Kind.F64, 10**400, "wrong_type"),
        (Kind.DATE, "2026-02-30", "wrong_type"),
        (Kind.DATE, NOON, "wrong_type"),
        (Kind.DATETIME, "noon", "wrong_type"),
        (Kind.DATETIME, date(2026, 2, 14), "wrong_type"),
        (Kind.BLOB, 3, "wrong_type"),
        (Kind.STRING, {"a": 1}, "wrong_type"),
    ],
)
def test_values_of_another_type_are_refused(kind: Kind, given: Any, why: str) -> None:
    assert reason(scalar(kind), given) == why


def test_lists() -> None:
    assert bind(list_of(Kind.DATE), ["2026-02-14"]) == [date(2026, 2, 14)]
    assert bind(list_of(Kind.I64), (1, "2")) == [1, 2]
    assert bind(list_of(Kind.STRING), []) == []
    assert reason(list_of(Kind.STRING), "abc") == "wrong_type"
    assert reason(list_of(Kind.STRING), ["a", 1]) == "wrong_type"
    assert reason(list_of(Kind.STRING), ["a", None]) == "null"
    assert reason(list_of(Kind.STRING), {"a": 1}) == "wrong_type"
    assert reason(list_of(Kind.STRING, nullable=True), ["a", None]) == "null"


def test_vectors() -> None:
    assert bind(vector(3), [1, 2.5, 3]) == [1.0, 2.5, 3.0]
    assert bind(vector(2), np.array([1, 2], dtype=np.float32)) == [1.0, 2.0]
    assert reason(vector(3), [1, 2]) == "wrong_length"
    assert reason(vector(2), [1, "2"]) == "wrong_type"
    assert reason(vector(2), "12") == "wrong_type"


def test_enums() -> None:
    mood = enum_of(("happy", "sad"))
    assert bind(mood, "happy") == "happy"
    assert reason(mood, "angry") == "not_in_enum"


def test_an_optional_parameter_may_be_null_or_left_out() -> None:
    optional = query(x=scalar(Kind.I64, nullable=True))
    assert gq.bind_params(optional, {}) == {"x": None}
    assert gq.bind_params(optional, {"x": None}) == {"x": None}


def test_all_problems_are_told_at_once() -> None:
    asked = query(name=scalar(Kind.STRING), age=scalar(Kind.I32), born=scalar(Kind.DATE))
    with pytest.raises(InvalidArgumentError) as caught:
        gq.bind_params(asked, {"age": "old", "born": None, "nmae": "x"})
    reasons = {p["param"]: p["reason"] for p in caught.value.details["problems"]}
    assert reasons == {"name": "missing", "age": "wrong_type", "born": "null", "nmae": "unknown"}
    assert "did you mean `name`?" in caught.value.message
    assert caught.value.hint == "The query takes ($name: String, $age: I32, $born: Date)."
