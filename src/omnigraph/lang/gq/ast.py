"""What a query text says, before anyone asks whether it makes sense.

Guarantees: equality looks at content alone, never at places, so two texts that differ only in
layout and comments have equal trees; lists keep the order in which they are written.
Deliberately absent: types, resolved names, parentheses (the shape of the tree says it).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform
from typing import Literal as OneOf

from omnigraph.lang.diagnostics import NOWHERE, Span

N = TypeVar("N", bound="Node")

LiteralKind: TypeAlias = OneOf["string", "int", "float", "bool", "null", "date", "datetime"]
LogicOp: TypeAlias = OneOf["and", "or"]
EdgeDirection: TypeAlias = OneOf["derived", "reverse", "both"]
SortDirection: TypeAlias = OneOf["asc", "desc"]
SelectKeyword: TypeAlias = OneOf["return", "with"]
BoundKeyword: TypeAlias = OneOf["limit", "offset"]


@dataclass_transform(frozen_default=True)
class Node:
    """A place in the tree. Subclasses list their fields as annotations, as a dataclass would.

    They are not dataclasses because making thirty of those costs more than compiling a query:
    each one runs the Python compiler several times over.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ()
    span: Span = NOWHERE

    def __init_subclass__(cls) -> None:
        cls.FIELDS = tuple(cls.__annotations__)

    def __init__(self, *values: Any) -> None:
        fields = self.FIELDS
        if len(values) != len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} values: {fields}")
        self.__dict__.update(zip(fields, values, strict=True))

    def at(self: N, span: Span) -> N:
        """This node, placed. Called once, where the node is made."""
        self.__dict__["span"] = span
        return self

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.__dict__, other.__dict__
        return all(mine[name] == theirs[name] for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # trees are compared, never looked up

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({shown})"


class Name(Node):
    """A name as written; a variable's comes without its dollar sign."""

    text: str


# Expressions ------------------------------------------------------------------------------


class Literal(Node):
    """A constant. Dates keep their text; the checker turns them into values."""

    kind: LiteralKind
    value: str | int | float | bool | None


class ListOf(Node):
    items: tuple[Expr, ...]


class Variable(Node):
    """`$x`: a parameter, a bound node, or a bound hop count."""

    name: str


class Property(Node):
    """`$x.name`."""

    var: Name
    name: Name


class Word(Node):
    """A bare name: an alias in a read, a property of the row at hand in a write."""

    name: str


class Call(Node):
    """`name(…)`. `distinct` and `star` are set for `count(distinct …)` and `count(*)`."""

    name: Name
    args: tuple[Expr, ...]
    distinct: bool
    star: bool


class Negative(Node):
    item: Expr


class Binary(Node):
    """Arithmetic, comparison and string operators; `op` is the operator as written."""

    op: str
    left: Expr
    right: Expr


class Logic(Node):
    """`and` or `or` over two or more items."""

    op: LogicOp
    items: tuple[Expr, ...]


class Inverse(Node):
    """`not item`."""

    item: Expr


class IsNull(Node):
    item: Expr
    negated: bool


class Member(Node):
    """`item in options`, `item not in options`."""

    item: Expr
    options: Expr
    negated: bool


Expr: TypeAlias = (
    Literal
    | ListOf
    | Variable
    | Property
    | Word
    | Call
    | Negative
    | Binary
    | Logic
    | Inverse
    | IsNull
    | Member
)

# Patterns ---------------------------------------------------------------------------------


class Field(Node):
    """`name: value`, in a property map or among assignments."""

    name: Name
    value: Expr


class Binding(Node):
    """`$x: Type { name: value, … }`."""

    var: Name
    type: Name
    fields: tuple[Field, ...]


class Traversal(Node):
    """`$src [$w:] [shortest] edge|edge{min,max} [as $h] $dst`.

    `edges` holds the one name `_` for any edge. `bounds` is None when none are written; a
    missing upper bound is None in its place.
    """

    src: Name
    dst: Name
    edges: tuple[Name, ...]
    direction: EdgeDirection
    bounds: tuple[int, int | None] | None
    edge_var: Name | None
    hops_var: Name | None
    shortest: bool


class Filter(Node):
    expr: Expr


class Negation(Node):
    """`not { … }`."""

    clauses: tuple[Clause, ...]


class Optional(Node):
    """`optional { … }`."""

    clauses: tuple[Clause, ...]


Clause: TypeAlias = Binding | Traversal | Filter | Negation | Optional

# Reads ------------------------------------------------------------------------------------


class Projection(Node):
    expr: Expr
    alias: Name | None


class OrderKey(Node):
    expr: Expr
    direction: SortDirection | None


class Match(Node):
    clauses: tuple[Clause, ...]


class Select(Node):
    """`return [distinct] { … }` or `with [distinct] { … }`."""

    keyword: SelectKeyword
    distinct: bool
    items: tuple[Projection, ...]


class Having(Node):
    expr: Expr


class Order(Node):
    keys: tuple[OrderKey, ...]


class Bound(Node):
    """`limit n` or `offset n`, where n is an integer or a parameter."""

    keyword: BoundKeyword
    value: Expr


class Stage(Node):
    """A pattern, and what it hands on. The last stage of a query returns."""

    match: Match | None
    select: Select
    having: Having | None
    order: Order | None
    offset: Bound | None
    limit: Bound | None


class Read(Node):
    stages: tuple[Stage, ...]


# Writes -----------------------------------------------------------------------------------


class Insert(Node):
    type: Name
    fields: tuple[Field, ...]


class Update(Node):
    type: Name
    fields: tuple[Field, ...]
    where: Expr


class Delete(Node):
    type: Name
    where: Expr


class Upsert(Node):
    """`upsert Type { … } on conflict policy [set { … }]`."""

    type: Name
    fields: tuple[Field, ...]
    policy: Name
    updates: tuple[Field, ...]


Statement: TypeAlias = Insert | Update | Delete | Upsert


class Write(Node):
    statements: tuple[Statement, ...]


# Files ------------------------------------------------------------------------------------


class TypeRef(Node):
    """A parameter's type as written. `name` is a scalar's name or `Vector`."""

    name: str
    is_list: bool
    dim: int | None
    nullable: bool


class Param(Node):
    name: Name
    type: TypeRef


class Annotation(Node):
    """`@description("…")` or `@instruction("…")`."""

    name: Name
    value: Literal


class Query(Node):
    name: Name
    params: tuple[Param, ...]
    annotations: tuple[Annotation, ...]
    body: Read | Write

    def annotation(self, name: str) -> str | None:
        """The text of an annotation, or nothing where it is not written."""
        found = (a.value.value for a in self.annotations if a.name.text == name)
        return next((value for value in found if isinstance(value, str)), None)


class File(Node):
    queries: tuple[Query, ...]


def dump(value: object, indent: int = 0) -> str:
    """The tree as indented text, without places."""
    pad = "  " * indent
    if isinstance(value, Name):
        return f"{pad}{value.text}"
    if isinstance(value, Node):
        lines = [pad + type(value).__name__]
        for name in value.FIELDS:
            lines.append(_dump_field(name, getattr(value, name), indent + 1))
        return "\n".join(lines)
    return f"{pad}{value!r}"


def _dump_field(name: str, value: object, indent: int) -> str:
    pad = "  " * indent
    if isinstance(value, Name):
        return f"{pad}{name}: {value.text}"
    if isinstance(value, Node):
        return f"{pad}{name}:\n{dump(value, indent + 1)}"
    if isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
        return "\n".join([f"{pad}{name}:", *(dump(item, indent + 1) for item in value)])
    return f"{pad}{name}: {value!r}"
