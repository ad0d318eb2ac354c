"""Property types, as the schema language spells them, and their Arrow shapes.

Guarantees: one `ValueType` per spelling, so that equality is type equality; the Arrow type is
a function of the value type alone.
Deliberately absent: Lance's physical blob encoding, which only `storage` knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Kind(StrEnum):
    """The shape of a value. The spelling is the schema language's own."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"
    LIST = "List"
    NODE = "Node"  # a bound node, in queries only
    EDGE = "Edge"  # a bound edge, in queries only


SCALAR_KINDS = frozenset(
    {
        Kind.STRING,
        Kind.BLOB,
        Kind.BOOL,
        Kind.I32,
        Kind.I64,
        Kind.U32,
        Kind.U64,
        Kind.F32,
        Kind.F64,
        Kind.DATE,
        Kind.DATETIME,
    }
)
INTEGER_KINDS = frozenset({Kind.I32, Kind.I64, Kind.U32, Kind.U64})
FLOAT_KINDS = frozenset({Kind.F32, Kind.F64})
NUMERIC_KINDS = INTEGER_KINDS | FLOAT_KINDS
ORDERABLE_KINDS = NUMERIC_KINDS | {Kind.STRING, Kind.BOOL, Kind.DATE, Kind.DATETIME}


@dataclass(frozen=True, slots=True)
class ValueType:
    """A property, parameter or expression type.

    `item` is set for lists, `dim` for vectors, `enum` (sorted, without repeats) for strings
    limited to a set of values.
    """

    kind: Kind
    nullable: bool = False
    item: Kind | None = None
    dim: int | None = None
    enum: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.spelling() + ("?" if self.nullable else "")

    def spelling(self) -> str:
        """The type as `.pg` writes it, without the question mark."""
        if self.kind is Kind.LIST:
            return f"[{self.item}]"
        if self.kind is Kind.VECTOR:
            return f"Vector({self.dim})"
        if self.enum:
            return f"enum({', '.join(self.enum)})"
        return str(self.kind)

    def as_nullable(self, nullable: bool = True) -> ValueType:
        return replace(self, nullable=nullable)

    @property
    def is_numeric(self) -> bool:
        return self.kind in NUMERIC_KINDS

    @property
    def is_orderable(self) -> bool:
        return self.kind in ORDERABLE_KINDS

    def to_arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        return _arrow_type(self.kind, self.item, self.dim)


@lru_cache(maxsize=1024)
def _arrow_type(kind: Kind, item: Kind | None, dim: int | None) -> pa.DataType:
    # pyarrow is imported here so that naming a type costs nothing at start-up.
    import pyarrow as pa

    if kind is Kind.LIST:
        assert item is not None
        return pa.list_(_arrow_type(item, None, None))
    if kind is Kind.VECTOR:
        assert dim is not None
        return pa.list_(pa.float32(), dim)
    scalars: dict[Kind, pa.DataType] = {
        Kind.STRING: pa.string(),
        Kind.BLOB: pa.large_binary(),
        Kind.BOOL: pa.bool_(),
        Kind.I32: pa.int32(),
        Kind.I64: pa.int64(),
        Kind.U32: pa.uint32(),
        Kind.U64: pa.uint64(),
        Kind.F32: pa.float32(),
        Kind.F64: pa.float64(),
        Kind.DATE: pa.date32(),
        Kind.DATETIME: pa.timestamp("ms", tz="UTC"),
    }
    return scalars[kind]


def scalar(kind: Kind, *, nullable: bool = False) -> ValueType:
    return ValueType(kind, nullable)


def list_of(item: Kind, *, nullable: bool = False) -> ValueType:
    return ValueType(Kind.LIST, nullable, item=item)


def vector(dim: int, *, nullable: bool = False) -> ValueType:
    return ValueType(Kind.VECTOR, nullable, dim=dim)


def enum_of(values: tuple[str, ...], *, nullable: bool = False) -> ValueType:
    return ValueType(Kind.STRING, nullable, enum=tuple(sorted(set(values))))


BOOL = scalar(Kind.BOOL)
STRING = scalar(Kind.STRING)
I64 = scalar(Kind.I64)
F64 = scalar(Kind.F64)
