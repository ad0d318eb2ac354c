"""Check that names in a schema are free, allowed and known.

Deliberately absent: the spelling of names, which the parser checks while reading.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.diagnostics import Report, offer
from omnigraph.lang.pg import ast

# Columns that Lance makes up itself.
_VIRTUAL = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
# Columns of search results, and the field that names the type of a returned node.
_RESULTS = frozenset({"_score", "_distance", "__type"})
_ENDPOINTS = frozenset({"src", "dst"})
# What queries call the ends.
_HIDDEN = frozenset({"from", "to"})


def check_names(schema: ast.Schema, report: Report) -> None:
    """Report clashing types, clashing or reserved properties, and unknown references."""
    _check_types(schema, report)
    for declaration in schema.declarations:
        _check_properties(declaration, report)
    _check_references(schema, report)


def _check_types(schema: ast.Schema, report: Report) -> None:
    # Queries bind nodes and interfaces by the same syntax, so the two share their names.
    bound: dict[str, ast.Declaration] = {}
    edges: dict[str, ast.Declaration] = {}
    for declaration in schema.declarations:
        name = declaration.name.text
        if not name:
            continue
        if not isinstance(declaration, ast.Edge):
            if bound.setdefault(name, declaration) is not declaration:
                report.add("S103", f"the name `{name}` is taken already", declaration.name.span)
            continue
        first = edges.setdefault(name.lower(), declaration)
        if first is declaration:
            continue
        if first.name.text == name:
            report.add("S103", f"edge `{name}` is declared already", declaration.name.span)
        else:
            message = f"edge `{name}` differs from `{first.name.text}` only in case"
            hint = "edge names are matched without regard to case; choose another name"
            report.add("S106", message, declaration.name.span, hint=hint)


def _check_properties(declaration: ast.Declaration, report: Report) -> None:
    seen: set[str] = set()
    owner = declaration.name.text
    for prop in declaration.properties:
        name = prop.name.text
        if name in seen:
            message = f"`{owner}` declares the property `{name}` twice"
            report.add("S104", message, prop.name.span)
        seen.add(name)
        if name in _HIDDEN and isinstance(declaration, ast.Edge):
            message = f"in queries that write, `{name}` means an end of `{owner}`"
            hint = f"choose another name, such as `{name}_`"
            report.add("S904", message, prop.name.span, severity="warning", hint=hint)
        if reason := _reserved(name, declaration):
            message = f"the property name `{name}` is reserved: {reason}"
            report.add("S105", message, prop.name.span, hint=f"choose another, such as `{name}_`")


def _reserved(name: str, declaration: ast.Declaration) -> str | None:
    if name == "id":
        return "every node and edge has an `id` of its own"
    if name in _ENDPOINTS and isinstance(declaration, ast.Edge):
        return "every edge has `src` and `dst` of its own"
    if name in _VIRTUAL:
        return "the storage uses it for a virtual column"
    if name in _RESULTS:
        return "results use it for a column of their own"
    return None


def _check_references(schema: ast.Schema, report: Report) -> None:
    interfaces = {i.name.text for i in schema.interfaces}
    nodes = {n.name.text for n in schema.nodes}
    # With unreadable parts around, a missing type may well be among them.
    unsure = schema.broken or any(not d.name.text for d in schema.declarations)
    if unsure:
        return
    for node in schema.nodes:
        for name in node.implements:
            if name.text and name.text not in interfaces:
                _unknown(report, "S107", "interface", name, interfaces, nodes)
    for edge in schema.edges:
        for end in (edge.source, edge.target):
            if end.text and end.text not in nodes:
                _unknown(report, "S108", "node type", end, nodes, interfaces)


def _unknown(
    report: Report,
    code: str,
    what: str,
    name: ast.Name,
    candidates: Iterable[str],
    others: Iterable[str],
) -> None:
    hint = offer(name.text, candidates)
    if name.text in others:
        other = "a node type" if what == "interface" else "an interface"
        hint = f"`{name.text}` is {other}"
    report.add(code, f"there is no {what} `{name.text}`", name.span, hint=hint)
