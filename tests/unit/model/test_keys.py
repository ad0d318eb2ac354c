"""Canonical key spelling, value by value and column by column."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidArgumentError, InvalidDataError
from omnigraph.model.keys import (
    KeyValue,
    canonical_column,
    canonical_scalar,
    composite_key,
    composite_keys,
    node_ids,
)
from omnigraph.model.types import Kind, scalar

CASES: list[tuple[Kind, KeyValue, str]] = [
    (Kind.STRING, "a b", "a b"),
    (Kind.BOOL, True, "true"),
    (Kind.BOOL, False, "false"),
    (Kind.I32, -32, "-32"),
    (Kind.I64, -(2**63), "-9223372036854775808"),
    (Kind.U32, 2**32 - 1, "4294967295"),
    (Kind.U64, 2**64 - 1, "18446744073709551615"),
    (Kind.F32, 1.25, "1.25"),
    (Kind.F32, 0.1, "0.1"),
    (Kind.F32, 16777216.0, "16777216"),
    (Kind.F32, 1e-7, "0.0000001"),
    (Kind.F64, -2.5, "-2.5"),
    (Kind.F64, 1.0, "1"),
    (Kind.F64, 0.1 + 0.2, "0.30000000000000004"),
    (Kind.F64, 1e21, "1000000000000000000000"),
    (Kind.F64, -1.5e-9, "-0.0000000015"),
    (Kind.F64, 123456789012345680.0, "123456789012345680"),
    (Kind.F32, -0.0, "0"),
    (Kind.F64, -0.0, "0"),
    (Kind.F64, 0.0, "0"),
    (Kind.DATE, date(2024, 1, 1), "19723"),
    (Kind.DATE, date(1969, 12, 31), "-1"),
    (Kind.DATETIME, datetime(2024, 1, 1, tzinfo=UTC), "1704067200000"),
    (Kind.DATETIME, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), "-1"),
]


@pytest.mark.parametrize(("kind", "value", "spelling"), CASES)
def test_spelling(kind: Kind, value: KeyValue, spelling: str) -> None:
    assert canonical_scalar(value, kind) == spelling
    column = pa.array([value, None], scalar(kind).to_arrow())
    assert canonical_column(column).to_pylist() == [spelling, None]


def test_times_elsewhere_are_times_here() -> None:
    local = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert canonical_scalar(local, Kind.DATETIME) == "1704067200000"
    naive = datetime(2024, 1, 1)  # noqa: DTZ001  # naive times are taken as UTC
    assert canonical_scalar(naive, Kind.DATETIME) == "1704067200000"


def test_stored_days_and_milliseconds_are_spelled_as_they_are() -> None:
    assert canonical_scalar(19723, Kind.DATE) == "19723"
    assert canonical_scalar(1704067200000, Kind.DATETIME) == "1704067200000"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_time_gives_milliseconds(unit: str) -> None:
    moments = [datetime(2024, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)]
    column = pa.array(moments, pa.timestamp(unit, tz="UTC"))
    assert canonical_column(column).to_pylist() == ["1704067200000", "-315619200000"]


def test_finer_times_are_cut_towards_the_past() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    column = pa.array([moment], pa.timestamp("us", tz="UTC"))
    assert canonical_column(column).to_pylist() == ["-1"]
    assert canonical_scalar(moment, Kind.DATETIME) == "-1"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [Kind.F32, Kind.F64])
def test_values_that_are_not_finite_are_refused(kind: Kind, value: float) -> None:
    with pytest.raises(InvalidDataError):
        canonical_scalar(value, kind)
    with pytest.raises(InvalidDataError) as caught:
        canonical_column(pa.array([1.0, None, value], scalar(kind).to_arrow()))
    assert caught.value.violations[0].record == 2


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, Kind.STRING),
        ("1", Kind.I32),
        (True, Kind.I64),
        (1.5, Kind.I32),
        (1, Kind.BOOL),
        ("x", Kind.DATE),
        (datetime(2024, 1, 1, tzinfo=UTC), Kind.DATE),
        ("x", Kind.BLOB),
    ],
)
def test_values_of_another_type_are_refused(value: Any, kind: Kind) -> None:
    with pytest.raises(InvalidArgumentError):
        canonical_scalar(value, kind)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]], pa.list_(pa.int32())),
        pa.array([[1.0]], pa.list_(pa.float32(), 1)),
        pa.array([b"x"], pa.large_binary()),
    ],
)
def test_unkeyable_types_fail_loudly(column: pa.Array) -> None:  # ledger: T04
    with pytest.raises(InvalidArgumentError):
        composite_keys([column])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_string_encoding_is_keyable(kind: pa.DataType) -> None:  # ledger: T04
    column = pa.array(["v", None], kind)
    assert composite_keys([column]).to_pylist() == ["v", None]
    encoded = pa.array(["v", None]).dictionary_encode()
    assert composite_keys([encoded]).to_pylist() == ["v", None]


def test_composite_keys_are_json_arrays() -> None:
    assert composite_key(["a", 5], [Kind.STRING, Kind.I32]) == '["a","5"]'
    assert composite_key(["a", None], [Kind.STRING, Kind.I32]) is None
    table = pa.table({"a": ['q"\\\n\x01ä', "x", None], "b": pa.array([1.0, -0.0, 2.0])})
    ids = node_ids(table, ["a", "b"]).to_pylist()
    assert ids == ['["q\\"\\\\\\n\\u0001ä","1"]', '["x","0"]', None]


def test_no_value_can_forge_another_key() -> None:
    left = composite_key(['a","b', "c"], [Kind.STRING] * 2)
    right = composite_key(["a", 'b","c'], [Kind.STRING] * 2)
    assert left != right


def test_chunks_and_no_rows() -> None:
    chunked = pa.chunked_array([pa.array(["a"]), pa.array(["b"])])
    assert composite_keys([chunked]).to_pylist() == ["a", "b"]
    empty = pa.chunked_array([], pa.string())
    assert composite_keys([empty, empty]).to_pylist() == []
    assert isinstance(composite_keys([chunked, chunked]), pa.StringArray)
    with pytest.raises(InvalidArgumentError):
        composite_keys([])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    spelled = canonical_scalar(value, Kind.F64)
    assert spelled is not None
    assert "e" not in spelled
    assert float(spelled) == value
    assert canonical_column(pa.array([value])).to_pylist() == [spelled]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_singles_read_back_at_their_width(value: float) -> None:
    spelled = canonical_scalar(value, Kind.F32)
    assert spelled is not None
    assert np.float32(spelled) == np.float32(value)
    assert len(spelled.replace("-", "").replace(".", "").strip("0")) <= 9
    assert canonical_column(pa.array([value], pa.float32())).to_pylist() == [spelled]
    assert struct.pack("f", float(spelled)) == struct.pack("f", value + 0.0)


@given(st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans()), max_size=20))
def test_rows_and_columns_agree(rows: list[tuple[str, int, bool]]) -> None:
    kinds = [Kind.STRING, Kind.I64, Kind.BOOL]
    columns = [
        pa.array([row[place] for row in rows], scalar(kind).to_arrow())
        for place, kind in enumerate(kinds)
    ]
    expected = [composite_key(row, kinds) for row in rows]
    assert composite_keys(columns).to_pylist() == expected
    for row, key in zip(rows, expected, strict=True):
        assert key is not None
        assert json.loads(key) == [row[0], str(row[1]), str(row[2]).lower()]
