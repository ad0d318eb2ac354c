"""Random schemas: node types with properties of every kind, one interface, several edge types.

Types and properties are called by their first names everywhere in this package. `Names` maps a
first name (`Alpha`, `Alpha.p2`) to the name that a branch gives it now, so that a program of
operations stays valid when a rename is removed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

Names = Mapping[str, str]

SCALARS = ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "enum")
INTEGERS = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}
NUMBERS = (*INTEGERS, "F32", "F64")
ENUM = ("red", "on-leave", "3c")
DIMENSION = 3
INTERFACE = "Named"


@dataclass(frozen=True)
class Prop:
    """`kind` is a scalar, `text` (a String for search) or `vector`; `many` makes it a list."""

    name: str
    kind: str
    many: bool = False
    optional: bool = True
    index: bool = False
    unique: bool = False
    bounds: tuple[int, int] | None = None
    default: int | str | None = None

    @property
    def spelled(self) -> str:
        word = {"text": "String", "enum": f"enum({', '.join(ENUM)})"}.get(self.kind, self.kind)
        if self.kind == "vector":
            word = f"Vector({DIMENSION})"
        word = f"[{word}]" if self.many else word
        return word + ("?" if self.optional else "")

    @property
    def annotations(self) -> str:
        parts = ["@index"] if self.index else []
        parts += ["@unique"] if self.unique else []
        if self.bounds:
            parts.append(f"@range({self.bounds[0]}..{self.bounds[1]})")
        if self.default is not None:
            parts.append(f"@default({self.default})")
        return " ".join(parts)


@dataclass(frozen=True)
class Node:
    name: str
    props: tuple[Prop, ...]
    key: str | None
    named: bool

    def prop(self, name: str) -> Prop:
        return next(p for p in self.props if p.name == name)


@dataclass(frozen=True)
class Edge:
    name: str
    src: str
    dst: str
    props: tuple[Prop, ...]
    most: int | None = None

    def prop(self, name: str) -> Prop:
        return next(p for p in self.props if p.name == name)


@dataclass(frozen=True)
class Blueprint:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def node(self, name: str) -> Node:
        return next(n for n in self.nodes if n.name == name)

    def edge(self, name: str) -> Edge:
        return next(e for e in self.edges if e.name == name)

    @property
    def types(self) -> list[Node | Edge]:
        return [*self.nodes, *self.edges]

    def type(self, name: str) -> Node | Edge:
        return next(t for t in self.types if t.name == name)

    @property
    def named(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if n.named)

    def renameable(self) -> list[str]:
        """First names of what a rename can take: types, and properties that no interface has."""
        found = [t.name for t in self.types]
        for node in self.nodes:
            found += [f"{node.name}.{p.name}" for p in node.props if p.name not in SHARED]
        return found

    def text(self, names: Names, renamed: Names | None = None) -> str:
        """The schema's text; `renamed` are first names with the name to rename from."""
        hints = renamed or {}
        lines = [f"interface {INTERFACE} {{"]
        lines += [f"    {p.name}: {p.spelled} {p.annotations}".rstrip() for p in SHARED.values()]
        lines.append("}")
        for node in self.nodes:
            implements = f" implements {INTERFACE}" if node.named else ""
            lines.append(
                f"node {names.get(node.name, node.name)}{_hint(hints, node.name)}{implements} {{"
            )
            lines += [_property(node.name, p, names, hints, p.name == node.key) for p in node.props]
            lines.append("}")
        for edge in self.edges:
            ends = f"{names.get(edge.src, edge.src)} -> {names.get(edge.dst, edge.dst)}"
            card = "" if edge.most is None else f" @card(0..{edge.most})"
            lines.append(
                f"edge {names.get(edge.name, edge.name)}: {ends}{card}{_hint(hints, edge.name)} {{"
            )
            lines += [_property(edge.name, p, names, hints, False) for p in edge.props]
            lines.append("}")
        return "\n".join(lines) + "\n"


SHARED = {
    "name": Prop("name", "text", optional=False, index=True),
    "rank": Prop("rank", "I32"),
}


def _hint(hints: Names, name: str) -> str:
    return f' @rename_from("{hints[name]}")' if name in hints else ""


def _property(owner: str, prop: Prop, names: Names, hints: Names, key: bool) -> str:
    first = f"{owner}.{prop.name}"
    mark = " @key" if key else ""
    line = f"    {names.get(first, prop.name)}: {prop.spelled}{mark} {prop.annotations}".rstrip()
    return line + _hint(hints, first)


def spelled(names: Names, owner: str, prop: str | None = None) -> str:
    """The name that something has now."""
    if prop is None:
        return names.get(owner, owner)
    return names.get(f"{owner}.{prop}", prop)


def blueprint(random: Random) -> Blueprint:
    nodes = tuple(_node(random, name, i) for i, name in enumerate(("Alpha", "Beta", "Gamma")))
    # The interface means something only if several types implement it.
    nodes = (replace(nodes[0], named=True), *nodes[1:])
    nodes = tuple(_with_shared(n) if n.named else n for n in nodes)
    return Blueprint(nodes, tuple(_edges(random)))


def _with_shared(node: Node) -> Node:
    kept = tuple(p for p in node.props if p.name not in SHARED)
    return replace(node, props=(*kept, *SHARED.values()))


def _node(random: Random, name: str, place: int) -> Node:
    key_kind = random.choice(("String", "String", "I64", "U64", "I32", "Date", "none"))
    props = []
    if key_kind != "none":
        props.append(Prop("key", key_kind, optional=False))
    for n in range(random.randint(3, 5)):
        props.append(_prop(random, f"p{n}", random.choice((*SCALARS, "U64", "Date"))))
    if random.random() < 0.6:
        props.append(Prop("body", "text", index=random.random() < 0.7))
    if random.random() < 0.4:
        props.append(Prop("spot", "vector", index=random.random() < 0.5))
    named = place == 1 or random.random() < 0.5
    return Node(name, tuple(props), None if key_kind == "none" else "key", named)


def _prop(random: Random, name: str, kind: str) -> Prop:
    if random.random() < 0.15:
        return Prop(name, "String" if kind == "enum" else kind, many=True)
    prop = Prop(name, kind, index=random.random() < 0.3)
    chance = random.random()
    if chance < 0.12 and kind in ("I32", "I64", "U32", "String"):
        return replace(prop, unique=True)
    if chance < 0.22 and kind in ("I32", "U32", "U64"):
        return replace(prop, bounds=(0, 1000))
    if chance < 0.32 and kind in ("I32", "enum"):
        return replace(prop, default=7 if kind == "I32" else "red", optional=False)
    return prop


def _edges(random: Random) -> list[Edge]:
    names = ["Alpha", "Beta", "Gamma"]
    ends = [("Alpha", "Alpha"), ("Alpha", "Beta")]
    ends += [(random.choice(names), random.choice(names)) for _ in range(random.randint(1, 3))]
    titles = ("Knows", "Holds", "Likes", "Joins", "Meets")
    found = []
    for title, (src, dst) in zip(titles, ends, strict=False):
        kinds = random.sample(SCALARS, random.randint(0, 2))
        props = tuple(Prop(f"q{n}", kind) for n, kind in enumerate(kinds))
        found.append(Edge(title, src, dst, props, 2 if random.random() < 0.1 else None))
    return found
