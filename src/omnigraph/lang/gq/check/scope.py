"""What the names of a query mean at one place in it.

What it does: `Context` holds what a whole query shares, `Scope` what one pattern or stage sees.
Guarantees: a variable is a node, an edge or a number of hops; what could not be resolved is
`Unknown`, so that one mistake is reported once and not at every later use.
Deliberately absent: the rules by which names come to be bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from omnigraph.lang.diagnostics import Report, Span, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import rules
from omnigraph.lang.gq.variables import names_in
from omnigraph.model.catalog import Catalog, EdgeType, NodeType, TableType
from omnigraph.model.types import STRING, Kind, ValueType


class NodeVar(NamedTuple):
    """A bound node. `fixed`: bound outside the pattern at hand, so its types cannot narrow."""

    types: tuple[str, ...]
    nullable: bool = False
    fixed: bool = False


class EdgeVar(NamedTuple):
    types: tuple[str, ...]
    nullable: bool = False


class ValueVar(NamedTuple):
    """A number of hops."""

    type: ValueType


class Unknown(NamedTuple):
    """A variable that a faulty clause was meant to bind."""


Var: TypeAlias = NodeVar | EdgeVar | ValueVar | Unknown


class Scope:
    """Names that can be used, and names that exist elsewhere (with the reason)."""

    def __init__(
        self,
        vars: dict[str, Var] | None = None,
        values: dict[str, ValueType] | None = None,
        hidden: dict[str, str] | None = None,
    ) -> None:
        self.vars = vars if vars is not None else {}
        self.values = values if values is not None else {}
        self.hidden = hidden if hidden is not None else {}

    def inner(self) -> Scope:
        """A scope for a nested pattern: it sees everything here and can narrow none of it."""
        fixed = {
            name: var._replace(fixed=True) if isinstance(var, NodeVar) else var
            for name, var in self.vars.items()
        }
        return Scope(fixed, dict(self.values), dict(self.hidden))


class Context:
    """What a whole query shares: the catalog, the parameters and the report."""

    def __init__(self, catalog: Catalog, report: Report, node: ast.Query) -> None:
        self.catalog = catalog
        self.report = report
        self.node = node
        self.params: dict[str, ValueType] = {}
        self._anonymous = 0

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> Any | None:
        """Report a mistake. Returns None, which stands for whatever has it."""
        self.report.add(code, message, span, hint=hint)
        return None

    @cached_property
    def _taken(self) -> set[str]:
        return names_in(self.node.body)

    def anonymous(self) -> str:
        """A new name for a node that the query does not name."""
        while True:
            self._anonymous += 1
            name = f"__any{self._anonymous}"
            if name not in self._taken:
                return name

    def nodes_of(self, name: str) -> tuple[str, ...] | None:
        """The node types that a type or interface name stands for, or nothing."""
        if self.catalog.node(name) is not None:
            return (name,)
        if self.catalog.interface(name) is not None:
            return tuple(t.name for t in self.catalog.implementers(name))
        return None

    def tables(self, var: NodeVar | EdgeVar) -> list[TableType]:
        found: list[NodeType | EdgeType | None]
        if isinstance(var, NodeVar):
            found = [self.catalog.node(name) for name in var.types]
        else:
            found = [self.catalog.edge(name) for name in var.types]
        return [table for table in found if table is not None]


# The ends of an edge, under the words that writes use and under their column names.
EDGE_ENDS = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}


class Found(NamedTuple):
    """A property under the name that the IR uses for it."""

    name: str
    type: ValueType


class Missing(NamedTuple):
    """Why a property cannot be used."""

    code: str
    message: str
    hint: str | None


def find_property(ctx: Context, var: NodeVar | EdgeVar, name: str) -> Found | Missing:
    """A property that every possible type of a variable has."""
    tables = ctx.tables(var)
    builtin = _builtin(var, name)
    declared = [table.get(name) for table in tables]
    if builtin is not None and not any(declared):
        return builtin
    types = [each.type for each in declared if each is not None]
    if len(types) < len(tables):
        return _missing(var, name, tables, any_has=bool(types))
    merged = rules.shared(types) if types else None
    if merged is None:
        where = _join(table.name for table in tables)
        return Missing("T35", f"`{name}` does not have the same type in {where}", None)
    return Found(name, merged.as_nullable(merged.nullable or var.nullable))


def _builtin(var: NodeVar | EdgeVar, name: str) -> Found | None:
    text = STRING.as_nullable(var.nullable)
    if name == "id":
        return Found("id", text)
    if isinstance(var, EdgeVar) and name in EDGE_ENDS:
        return Found(EDGE_ENDS[name], text)
    return None


def _missing(
    var: NodeVar | EdgeVar, name: str, tables: list[TableType], *, any_has: bool
) -> Missing:
    if any_has:
        without = [table.name for table in tables if table.get(name) is None]
        verb = "has" if len(without) == 1 else "have"
        message = f"{_join(without)} {verb} no property `{name}`"
        return Missing("T35", message, "bind the narrower type")
    word = "type" if isinstance(var, NodeVar) else "edge"
    known = {"id", *(p.name for table in tables for p in table.properties)}
    owners = _join(table.name for table in tables)
    return Missing("T6", f"{word} {owners} has no property `{name}`", offer(name, known))


def _join(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def show_type(type_: ValueType) -> str:
    """A type as findings name it."""
    if type_.kind is Kind.NODE:
        return "a node"
    if type_.kind is Kind.EDGE:
        return "an edge"
    return str(type_)
