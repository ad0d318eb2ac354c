"""Value types: spelling, equality, Arrow shapes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.model.types import Kind, ValueType, enum_of, list_of, scalar, vector


@pytest.mark.parametrize(
    ("type_", "spelling", "arrow"),
    [
        (scalar(Kind.STRING), "String", pa.string()),
        (scalar(Kind.BLOB, nullable=True), "Blob?", pa.large_binary()),
        (scalar(Kind.DATETIME), "DateTime", pa.timestamp("ms", tz="UTC")),
        (scalar(Kind.DATE), "Date", pa.date32()),
        (scalar(Kind.U64), "U64", pa.uint64()),
        (list_of(Kind.I32, nullable=True), "[I32]?", pa.list_(pa.int32())),
        (vector(3), "Vector(3)", pa.list_(pa.float32(), 3)),
        (enum_of(("b", "a", "b")), "enum(a, b)", pa.string()),
    ],
)
def test_spelling_and_arrow(type_: ValueType, spelling: str, arrow: pa.DataType) -> None:
    assert str(type_) == spelling
    assert type_.to_arrow() == arrow


def test_nullability_is_part_of_a_type() -> None:
    assert scalar(Kind.I32) != scalar(Kind.I32, nullable=True)
    assert scalar(Kind.I32, nullable=True).as_nullable(False) == scalar(Kind.I32)


def test_what_can_be_counted_and_ordered() -> None:
    assert scalar(Kind.F32).is_numeric
    assert not scalar(Kind.DATE).is_numeric
    assert scalar(Kind.DATE).is_orderable
    assert not list_of(Kind.I32).is_orderable
