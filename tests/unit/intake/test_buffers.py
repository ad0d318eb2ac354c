"""Columns from outside: damage is found before anything reads it, and is told by column and row."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import InvalidDataError
from omnigraph.intake.buffers import sound_rows
from omnigraph.rows.findings import Findings, Origin

BYTES = [b"ok", b"caf\xe9 with more than twelve bytes", None, b"z"]


def text(type_: pa.DataType | None = None) -> pa.Array:
    raw = pa.array(BYTES, pa.binary())
    plain = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), null_count=1)
    return plain if type_ is None else plain.cast(type_)


def checked(column: pa.Array) -> tuple[list[int], Findings]:
    findings = Findings()
    _, good = sound_rows("T", pa.table({"c": column}), Origin(file="f"), findings)
    return good.tolist(), findings


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_18_09_text_that_is_not_utf8_is_found_by_row(type_):
    good, findings = checked(text(type_))
    assert good == [0, 2, 3]
    (found,) = findings.violations
    assert (found.record, found.property, found.file, found.rule) == (1, "c", "f", "type")
    assert "UTF-8" in found.message
    assert "\\xe9" in found.value


@pytest.mark.parametrize(
    "nested",
    [
        lambda t: pa.ListArray.from_arrays(pa.array([0, 1, 2, 4], pa.int32()), t),
        lambda t: pa.LargeListArray.from_arrays(pa.array([0, 1, 2, 4], pa.int64()), t),
        lambda t: pa.FixedSizeListArray.from_arrays(t, 1),
        lambda t: pa.StructArray.from_arrays([t], ["x"]),
        lambda t: pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), t),
        lambda t: pa.ListArray.from_arrays(
            pa.array([0, 1, 2], pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), t),
        ),
    ],
)
def test_18_09_nested_texts_are_looked_into(nested):
    good, findings = checked(nested(text()))
    assert 1 not in good
    assert 0 in good
    assert [v.record for v in findings.violations] == [1]


def broken_offsets() -> pa.Array:
    offsets = pa.py_buffer(np.array([0, 2, 4, 999_999, 6], np.int32))
    return pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"abcdef")])


def broken_list() -> pa.Array:
    offsets = pa.py_buffer(np.array([0, 1, 2, 77, 3], np.int32))
    items = pa.array([1.0, 2.0, 3.0])
    return pa.Array.from_buffers(pa.list_(pa.float64()), 4, [None, offsets], children=[items])


def broken_dictionary() -> pa.Array:
    indices = pa.array([0, 1, 7, 1], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)


def broken_view() -> pa.Array:
    views = np.zeros((3, 4), np.int32)
    views[2] = (20, 0, 9, 0)  # twenty bytes of buffer number nine
    return pa.Array.from_buffers(pa.string_view(), 3, [None, pa.py_buffer(views)])


@pytest.mark.parametrize(
    "make", [broken_offsets, broken_list, broken_dictionary, broken_view], ids=lambda f: f.__name__
)
def test_18_09_damaged_buffers_refuse_the_column(make):
    with pytest.raises(InvalidDataError) as caught:
        checked(make())
    (violation,) = caught.value.violations
    assert (violation.rule, violation.property, violation.record) == ("damaged", "c", 2)


def test_18_23_a_column_that_occurs_twice_is_refused():
    rows = pa.table([pa.array(["a"]), pa.array(["b"])], names=["c", "c"])
    with pytest.raises(InvalidDataError, match="more than once"):
        sound_rows("T", rows, Origin(), Findings())


def test_18_09_sound_columns_come_back_as_they_are():
    rows = pa.table({"s": ["a", None], "n": [1, 2], "l": [["x"], []]})
    findings = Findings()
    found, good = sound_rows("T", rows, Origin(), findings)
    assert found is rows
    assert good.tolist() == [0, 1]
    assert not findings


def test_18_09_looking_costs_less_than_hashing_the_texts():
    """A ratio within one run: validation against the cheapest thing that a write does with text."""
    column = pa.array([f"a text with number {n}" for n in range(400_000)])
    rows = pa.table({"c": column})

    def measured(work) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    looking = measured(lambda: sound_rows("T", rows, Origin(), Findings()))
    assert looking < measured(column.dictionary_encode)
