"""What a schema text says, before anyone asks whether it makes sense.

Guarantees: equality looks at content alone, never at places, so two texts that differ only in
layout and comments have equal trees; members of a body keep the order in which they are written.
Deliberately absent: ids, interface expansion, resolved types; and dataclasses, because making a
dozen of them costs more at start-up than reading a schema does.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from omnigraph.lang.diagnostics import NOWHERE, Span


class Tree:
    """A node of the tree. `CONTENT` names the attributes that make it what it is."""

    __slots__ = ("span",)
    __hash__ = None  # type: ignore[assignment]  # the parser fills nodes in as it reads
    CONTENT: ClassVar[tuple[str, ...]] = ()
    span: Span

    def content(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.CONTENT)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.content() == other.content()

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.CONTENT)
        return f"{type(self).__name__}({inside})"


class Name(Tree):
    __slots__ = ("text",)
    CONTENT = ("text",)

    def __init__(self, text: str, span: Span = NOWHERE) -> None:
        self.text = text
        self.span = span


class Word(Tree):
    """A bare word as an argument: a property name, or a text without quotes."""

    __slots__ = ("text",)
    CONTENT = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
        self.span = NOWHERE


class Bounds(Tree):
    """`min..max`, either end may be open."""

    __slots__ = ("maximum", "minimum")
    CONTENT = ("minimum", "maximum")

    def __init__(self, minimum: int | float | None, maximum: int | float | None) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.span = NOWHERE


Value: TypeAlias = str | int | float | bool | Word | Bounds


class Argument(Tree):
    """`value`, or `name=value`."""

    __slots__ = ("name", "value")
    CONTENT = ("value", "name")

    def __init__(self, value: Value, name: str | None = None, span: Span = NOWHERE) -> None:
        self.value = value
        self.name = name
        self.span = span


class Annotation(Tree):
    """`@name` or `@name(…)`. Constraints are annotations too; their place gives the meaning."""

    __slots__ = ("arguments", "name")
    CONTENT = ("name", "arguments")

    def __init__(
        self, name: str, arguments: tuple[Argument, ...] = (), span: Span = NOWHERE
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.span = span


class TypeRef(Tree):
    """A type as written. `name` is a scalar's name, `enum`, or `Vector`."""

    __slots__ = ("dim", "is_list", "name", "nullable", "values")
    CONTENT = ("name", "nullable", "is_list", "dim", "values")

    def __init__(
        self,
        name: str,
        nullable: bool = False,
        is_list: bool = False,
        dim: int | None = None,
        values: tuple[Name, ...] = (),
    ) -> None:
        self.name = name
        self.nullable = nullable
        self.is_list = is_list
        self.dim = dim
        self.values = values
        self.span = NOWHERE


class Property(Tree):
    __slots__ = ("annotations", "name", "type")
    CONTENT = ("name", "type", "annotations")

    def __init__(
        self,
        name: Name,
        type_: TypeRef,
        annotations: tuple[Annotation, ...] = (),
        span: Span = NOWHERE,
    ) -> None:
        self.name = name
        self.type = type_
        self.annotations = annotations
        self.span = span


Member: TypeAlias = Property | Annotation  # an annotation in a body is a constraint


class Declaration(Tree):
    """What the three kinds of declaration share."""

    __slots__ = ("annotations", "broken", "members", "name")
    CONTENT: ClassVar[tuple[str, ...]] = ("name", "annotations", "members")

    def __init__(
        self,
        name: Name,
        annotations: tuple[Annotation, ...] = (),
        members: tuple[Member, ...] = (),
    ) -> None:
        self.name = name
        self.annotations = annotations
        self.members = members
        self.span = NOWHERE
        # A part could not be read, so what seems to be missing may be there.
        self.broken = False

    @property
    def properties(self) -> tuple[Property, ...]:
        return tuple(m for m in self.members if isinstance(m, Property))

    @property
    def constraints(self) -> tuple[Annotation, ...]:
        return tuple(m for m in self.members if isinstance(m, Annotation))


class Interface(Declaration):
    __slots__ = ()


class Node(Declaration):
    __slots__ = ("implements",)
    CONTENT = (*Declaration.CONTENT, "implements")

    def __init__(
        self,
        name: Name,
        annotations: tuple[Annotation, ...] = (),
        members: tuple[Member, ...] = (),
        implements: tuple[Name, ...] = (),
    ) -> None:
        super().__init__(name, annotations, members)
        self.implements = implements


class Edge(Declaration):
    __slots__ = ("source", "target")
    CONTENT = (*Declaration.CONTENT, "source", "target")

    def __init__(
        self,
        name: Name,
        annotations: tuple[Annotation, ...] = (),
        members: tuple[Member, ...] = (),
        source: Name | None = None,
        target: Name | None = None,
    ) -> None:
        super().__init__(name, annotations, members)
        self.source = source or Name("")
        self.target = target or Name("")


class Schema(Tree):
    __slots__ = ("broken", "declarations")
    CONTENT = ("declarations",)

    def __init__(self, declarations: tuple[Declaration, ...] = (), broken: bool = False) -> None:
        self.declarations = declarations
        # Some text between declarations could not be read.
        self.broken = broken
        self.span = NOWHERE

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        return tuple(d for d in self.declarations if isinstance(d, Interface))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(d for d in self.declarations if isinstance(d, Node))

    @property
    def edges(self) -> tuple[Edge, ...]:
        return tuple(d for d in self.declarations if isinstance(d, Edge))
