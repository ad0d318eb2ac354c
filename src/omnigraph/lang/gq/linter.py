"""Lint a query text: its errors, its warnings, and what each query does.

What it does: `lint` compiles every query against a catalog, applies the lint rules and gathers
everything in one `LintReport`.
Guarantees: never raises for anything that is in the text; findings come in order of position.
Deliberately absent: printing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import Diagnostic
from omnigraph.ir import query as irq
from omnigraph.lang.diagnostics import Report, Source, Span
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import check_query
from omnigraph.lang.gq.description import Description, describe_query
from omnigraph.lang.gq.habits import check_habits
from omnigraph.lang.gq.syntax.parser import read
from omnigraph.model.catalog import Catalog, NodeType

Status = Literal["ok", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, and what of the graph or the text it is about."""

    diagnostic: Diagnostic
    query_names: tuple[str, ...] = ()
    type_name: str | None = None
    property: str | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.diagnostic
        shown = {
            "severity": found.severity,
            "code": found.code,
            "message": found.message,
            "line": found.line,
            "column": found.column,
            "end_line": found.end_line,
            "end_column": found.end_column,
            "hint": found.hint,
            "type_name": self.type_name,
            "property": self.property,
            "query_names": list(self.query_names),
        }
        return {name: value for name, value in shown.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """How one query fared. `description` is missing where the query does not compile."""

    name: str
    is_write: bool
    description: Description | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def status(self) -> Status:
        return "error" if any(d.severity == "error" for d in self.diagnostics) else "ok"

    def to_dict(self) -> dict[str, Any]:
        errors = [d.message for d in self.diagnostics if d.severity == "error"]
        shown: dict[str, Any] = {
            "name": self.name,
            "kind": "mutation" if self.is_write else "read",
            "status": self.status,
            "warnings": [d.message for d in self.diagnostics if d.severity == "warning"],
        }
        if errors:
            shown["error"] = errors[0]
        if self.description is not None:
            shown["operation"] = self.description.operation()
        return shown


@dataclass(frozen=True, slots=True)
class LintReport:
    """Everything that was found in one text."""

    file: str | None
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        return "error" if self.count("error") else "ok"

    def count(self, severity: str) -> int:
        return sum(each.diagnostic.severity == severity for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "status": self.status,
            "query_path": self.file,
            "queries_processed": len(self.results),
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "infos": self.count("info"),
            "results": [each.to_dict() for each in self.results],
            "findings": [each.to_dict() for each in self.findings],
        }


def lint(
    text: str, catalog: Catalog, file: str | None = None, *, can_embed: bool = True
) -> LintReport:
    """Everything that is wrong, or probably not meant, in a text. `can_embed`: whether there is a
    provider of embeddings where the queries will run."""
    source = Source(text, file)
    report = Report(source)
    tree = read(report).file
    if report.has_errors:
        return LintReport(file, (), tuple(Finding(each) for each in report.diagnostics))
    results: list[QueryResult] = []
    writes: list[tuple[ast.Query, irq.WriteQuery]] = []
    for node in tree.queries:
        own = Report(source)
        query = check_query(node, catalog, own)
        description = None
        if query is not None:
            description = describe_query(query, catalog, node)
            check_habits(node, query, own)
            if isinstance(query, irq.WriteQuery):
                writes.append((node, query))
        is_write = isinstance(node.body, ast.Write)
        results.append(QueryResult(node.name.text, is_write, description, own.diagnostics))
    findings = [Finding(each, (result.name,)) for result in results for each in result.diagnostics]
    findings += _repeated_names(tree, source)
    findings += _unset_properties(writes, catalog, source)
    if not can_embed:
        findings += _missing_vectors(writes, catalog, source)
    findings.sort(key=lambda each: (each.diagnostic.line or 0, each.diagnostic.column or 0))
    return LintReport(file, tuple(results), tuple(findings))


def _repeated_names(tree: ast.File, source: Source) -> list[Finding]:
    seen: set[str] = set()
    findings: list[Finding] = []
    for node in tree.queries:
        name = node.name.text
        if name in seen:
            message = f"there is another query `{name}` above, and only that one can be called"
            span = node.name.span
            hint = "rename one of them"
            found = source.diagnostic("L207", message, span, severity="warning", hint=hint)
            findings.append(Finding(found, (name,)))
        seen.add(name)
    return findings


def _unset_properties(
    writes: list[tuple[ast.Query, irq.WriteQuery]], catalog: Catalog, source: Source
) -> list[Finding]:
    """Optional properties that an application can never change, although it updates the type."""
    updaters: dict[str, set[str]] = {}
    places: dict[str, Span] = {}
    covered: dict[str, set[str]] = {}
    for node, query in writes:
        assert isinstance(node.body, ast.Write)
        for written, statement in zip(node.body.statements, query.statements, strict=True):
            name = statement.type_name
            if isinstance(statement, irq.Update):
                updaters.setdefault(name, set()).add(query.name)
                places.setdefault(name, written.type.span)
                given = statement.assignments
            elif isinstance(statement, irq.UpsertNode):
                given = statement.updates or statement.assignments
            else:
                continue
            covered.setdefault(name, set()).update(each.property for each in given)
    findings: list[Finding] = []
    for table in sorted(catalog.nodes, key=lambda each: each.name):
        if table.name in updaters:
            names = tuple(sorted(updaters[table.name]))
            for declared in _unset(table, covered[table.name]):
                message = f"`{table.name}.{declared}` is optional, and no update sets it"
                place = places[table.name]
                found = source.diagnostic("L201", message, place, severity="warning")
                findings.append(Finding(found, names, table.name, declared))
    return findings


def _missing_vectors(
    writes: list[tuple[ast.Query, irq.WriteQuery]], catalog: Catalog, source: Source
) -> list[Finding]:
    """Inserts that would have to embed a text, where nothing can."""
    findings: list[Finding] = []
    for node, query in writes:
        assert isinstance(node.body, ast.Write)
        for written, statement in zip(node.body.statements, query.statements, strict=True):
            if not isinstance(statement, irq.InsertNode | irq.InsertEdge | irq.UpsertNode):
                continue
            name = statement.type_name
            table = catalog.node(name) or catalog.edge(name)
            given = {each.property for each in statement.assignments}
            for item in table.properties if table is not None else ():
                if item.embed is None or item.type.nullable or item.name in given:
                    continue
                message = (
                    f"`{name}.{item.name}` is required, and no embedding provider is configured"
                )
                hint = (
                    f"set OMNIGRAPH_EMBED_PROVIDER, give `{item.name}: …`, or make it optional: "
                    f"`{item.name}: {item.type.spelling()}?`"
                )
                found = source.diagnostic("L210", message, written.type.span, hint=hint)
                findings.append(Finding(found, (query.name,), name, item.name))
    return findings


def _unset(table: NodeType, covered: set[str]) -> list[str]:
    return sorted(
        declared.name
        for declared in table.properties
        if declared.type.nullable
        and declared.embed is None
        and declared.name not in covered
        and declared.name not in table.key
    )
