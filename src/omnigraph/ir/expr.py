"""Expressions of the typed graph IR.

Guarantees: closed set of node kinds (`Expr`), each carrying its result type.
Deliberately absent: evaluation. Engines fold over these.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from omnigraph.model.types import BOOL, F64, I64, Kind, ValueType


class CompareOp(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class StringOp(StrEnum):
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    EQUALS = "equals"  # only ever case-insensitive; exact equality is Compare
    MATCHES = "matches"  # regular expression, found anywhere unless anchored


class ArithmeticOp(StrEnum):
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"


class AggregateFn(StrEnum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"


class TextMode(StrEnum):
    SEARCH = "search"  # any token matches
    FUZZY = "fuzzy"  # tokens within an edit distance
    MATCH_TEXT = "match_text"  # all tokens, as a phrase
    BM25 = "bm25"  # relevance; as a predicate: has a score


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: str, int, float, bool, None, date, datetime or a list of those."""

    value: Any
    type: ValueType


@dataclass(frozen=True, slots=True)
class Param:
    name: str  # without the dollar sign
    type: ValueType


@dataclass(frozen=True, slots=True)
class Now:
    """One instant per query, fixed before the first row is read."""

    type: ValueType


@dataclass(frozen=True, slots=True)
class Property:
    """`$var.name`. `name` may also be `id`, and for edges `src` and `dst`."""

    var: str
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Entity:
    """A bound node or edge itself. `types` are its possible type names."""

    var: str
    types: tuple[str, ...]
    type: ValueType  # Kind.NODE or Kind.EDGE


@dataclass(frozen=True, slots=True)
class ValueRef:
    """A named value: an alias of this stage, a column of an earlier one, or a hop count."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Compare:
    op: CompareOp
    left: Expr
    right: Expr
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Expr, ...]
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Expr, ...]
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class Not:
    item: Expr
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    item: Expr
    negated: bool = False
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class In:
    """`item in options`; options is a list literal, a list parameter or a list property."""

    item: Expr
    options: Expr
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class StringTest:
    """A predicate on strings; null on either side is never a match."""

    op: StringOp
    left: Expr
    right: Expr
    ignore_case: bool = False
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class ListContains:
    """`list contains item`."""

    list: Expr
    item: Expr
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Integers give U64 or I64 (`lang.gq.check.rules`), except that `/` always gives F64; `/` and
    `%` by zero give null, and so does an integer outside its type."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function; null in gives null out, except for coalesce.

    lower, upper, trim, length (characters, or items of a list), coalesce, abs, round, floor,
    ceil, year, month, day, hour, minute, second (of the instant in UTC), to_string.
    """

    name: str
    args: tuple[Expr, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over a group; `arg` is None for `count(*)`. Counting an entity counts rows."""

    fn: AggregateFn
    arg: Expr | None
    distinct: bool
    type: ValueType


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text clause in `match`: keeps the rows whose property matches."""

    mode: TextMode
    property: Property
    query: Expr
    max_edits: Expr | None = None
    type: ValueType = BOOL


@dataclass(frozen=True, slots=True)
class VectorScore:
    """`nearest($x.vec, q)`: cosine distance, smaller is nearer. `query` is a vector or a string
    to embed with the model of the property's `@embed`."""

    property: Property
    query: Expr
    type: ValueType = ValueType(Kind.F32, nullable=True)


@dataclass(frozen=True, slots=True)
class TextScore:
    """`bm25`, `search`, `fuzzy` or `match_text` as a value: relevance, larger is better."""

    mode: TextMode
    property: Property
    query: Expr
    max_edits: Expr | None = None
    type: ValueType = ValueType(Kind.F32, nullable=True)


@dataclass(frozen=True, slots=True)
class Fuse:
    """`rrf(a, b, …, k)`: reciprocal rank fusion; larger is better."""

    rankings: tuple[VectorScore | TextScore, ...]
    k: Expr
    type: ValueType = F64


@dataclass(frozen=True, slots=True)
class RankOf:
    """`rank(score)`: 1 for the best row of that ranking, null for rows that it does not hold."""

    of: VectorScore | TextScore | Fuse
    type: ValueType = I64.as_nullable()


Score: TypeAlias = VectorScore | TextScore | Fuse | RankOf

Expr: TypeAlias = (
    Literal
    | Param
    | Now
    | Property
    | Entity
    | ValueRef
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | In
    | StringTest
    | ListContains
    | Arithmetic
    | Function
    | Aggregate
    | TextMatch
    | VectorScore
    | TextScore
    | Fuse
    | RankOf
)
