"""Results: lazy, repeatable, exact as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.result import Result, plain_value

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


def result(made: list[int], closed: list[bool] | None = None) -> Result:
    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for number in range(3):
                made.append(number)
                arrays = [pa.array([number, None]), pa.array(["x", f"y{number}"])]
                yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        finally:
            if closed is not None:
                closed.append(True)

    return Result(SCHEMA, batches(), commit_id="c1", branch="main")


# ledger: Q11
def test_batches_are_made_when_asked_for() -> None:
    made: list[int] = []
    found = result(made)
    assert found.schema == SCHEMA
    assert (found.commit_id, found.branch, found.columns) == ("c1", "main", ("n", "s"))
    assert made == []
    stream = found.stream()
    assert next(stream).num_rows == 2
    assert made == [0]


def test_a_stream_that_is_dropped_ends_its_source() -> None:
    closed: list[bool] = []
    stream = result([], closed).stream()
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert closed == [True]


def test_closing_drops_what_was_not_read() -> None:
    found = result([])
    found.close()
    found.close()
    with pytest.raises(InvalidArgumentError, match="streamed or closed"):
        found.rows()


def test_everything_but_a_stream_can_be_had_again() -> None:
    found = result([])
    rows = found.rows()
    assert rows[:2] == [{"n": 0, "s": "x"}, {"n": None, "s": "y0"}]
    assert found.rows() == rows == list(found)
    assert len(found) == 6
    assert sum(batch.num_rows for batch in found.stream()) == 6
    assert found.to_pandas()["s"].tolist()[:2] == ["x", "y0"]
    assert found.to_polars().shape == (6, 2)
    assert "6 rows" in repr(found)


def test_a_stream_can_be_had_once() -> None:
    found = result([])
    assert len(list(found.stream())) == 3
    with pytest.raises(InvalidArgumentError):
        next(found.stream())


def test_json() -> None:
    assert json.loads(result([]).to_json())[:2] == [{"n": 0, "s": "x"}, {"n": None, "s": "y0"}]
    assert "\n" in result([]).to_json(indent=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(2**63), "-9223372036854775808"),
        (2**64 - 1, "18446744073709551615"),
        (True, True),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (date(2024, 5, 6), "2024-05-06"),
        (datetime(2024, 5, 6, 7, 8, 9, 120_000, UTC), "2024-05-06T07:08:09.120Z"),
        ([1, 2**60], [1, "1152921504606846976"]),
        ({"id": "a", "n": 2**60}, {"id": "a", "n": "1152921504606846976"}),
        (b"\x00\xff", "AP8="),
        (None, None),
    ],
)
def test_json_values_are_exact(value: object, expected: object) -> None:
    assert plain_value(value) == expected
