"""Columns of the graph as Spark knows them, and back.

Spark has no unsigned numbers and no vectors of fixed length: `U32` is read as bigint, `U64` as
decimal(20, 0), `Vector(n)` as array<float>. Times are microseconds there and milliseconds here.

Guarantees: batches have exactly the Arrow schema that Spark expects for `spark_schema`; what was
read can be written back and is the same.
Deliberately absent: PySpark itself, so that this can run in any process.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.types import STRING, Kind, ValueType
from omnigraph.rows.checks import TableType, system_columns

_SPARK: dict[Kind, str] = {
    Kind.STRING: "string",
    Kind.BLOB: "binary",
    Kind.BOOL: "boolean",
    Kind.I32: "int",
    Kind.I64: "bigint",
    Kind.U32: "bigint",
    Kind.U64: "decimal(20,0)",
    Kind.F32: "float",
    Kind.F64: "double",
    Kind.DATE: "date",
    Kind.DATETIME: "timestamp",
}
_ARROW: dict[Kind, pa.DataType] = {
    Kind.BLOB: pa.binary(),
    Kind.U32: pa.int64(),
    Kind.U64: pa.decimal128(20, 0),
    Kind.DATETIME: pa.timestamp("us", tz="UTC"),
}


def spark_type(type_: ValueType) -> str:
    """A type as Spark's SQL spells it."""
    if type_.kind is Kind.VECTOR:
        return "array<float>"
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return f"array<{_SPARK[type_.item]}>"
    return _SPARK[type_.kind]


def arrow_type(type_: ValueType) -> pa.DataType:
    """The Arrow type in which Spark hands such a column over."""
    if type_.kind is Kind.VECTOR:
        return pa.list_(pa.field("element", pa.float32()))
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return pa.list_(pa.field("element", arrow_type(ValueType(type_.item))))
    return _ARROW.get(type_.kind) or type_.to_arrow()


def column_types(table: TableType) -> dict[str, ValueType]:
    """The columns of a type by the names that people use."""
    found = dict.fromkeys(system_columns(table), STRING)
    return {**found, **{item.name: item.type for item in table.properties}}


def spark_schema(table: TableType, columns: Sequence[str] | None = None) -> str:
    """The columns of a type as Spark's SQL declares them."""
    types = column_types(table)
    chosen = types if columns is None else {name: types[name] for name in columns}
    return ", ".join(f"`{name}` {spark_type(type_)}" for name, type_ in chosen.items())


def physical_names(table: TableType, columns: Sequence[str]) -> list[str]:
    by_name = {item.name: item.column for item in table.properties}
    return [by_name.get(name, name) for name in columns]


def to_spark(table: TableType, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """A batch of physical columns under their names, in the Arrow types of Spark."""
    types = column_types(table)
    fields = [pa.field(name, arrow_type(types[name])) for name in columns]
    arrays = [
        to_spark_type(array, field.type) for array, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def to_spark_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values in the Arrow type that Spark hands over and takes back."""
    if array.type == wanted:
        return array
    if pa.types.is_list(wanted):
        lists = array
        if pa.types.is_fixed_size_list(array.type):
            lists = array.cast(pa.list_(array.type.value_type))
        lists = _whole(lists)
        items = to_spark_type(lists.values, wanted.value_type)
        return pa.ListArray.from_arrays(lists.offsets, items, wanted, mask=_mask(lists))
    return array.cast(wanted)


def from_spark(array: pa.Array, type_: ValueType) -> pa.Array:
    """Values that Spark hands over, in the Arrow type of the graph."""
    wanted = type_.to_arrow()
    if array.type == wanted:
        return array
    if type_.kind is Kind.VECTOR:
        return _to_vectors(_whole(array), wanted)
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        lists = _whole(array)
        items = from_spark(lists.values, ValueType(type_.item))
        return pa.ListArray.from_arrays(lists.offsets, items, wanted, mask=_mask(lists))
    return array.cast(wanted)


def _to_vectors(lists: pa.Array, wanted: pa.DataType) -> pa.Array:
    known = lists.is_valid()
    vectors = pa.FixedSizeListArray.from_arrays(lists.flatten(), type=wanted)
    if not lists.null_count:
        return vectors
    places = pc.subtract(pc.cumulative_sum(known.cast(pa.int64())), 1)
    return vectors.take(pc.if_else(known, places, pa.scalar(None, pa.int64())))


def _whole(lists: pa.Array) -> pa.Array:
    """Arrow cannot mask the lists of a slice."""
    return lists.take(pa.array(range(len(lists)), pa.int64())) if lists.offset else lists


def _mask(lists: pa.Array) -> pa.Array | None:
    return lists.is_null() if lists.null_count else None
