"""`omnigraph lint`: errors and probable mistakes in schemas and queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from omnigraph.cli.apps import new_app
from omnigraph.cli.options import AsJson, BranchOption
from omnigraph.cli.targets import open_graph
from omnigraph.cli.terminal import echo
from omnigraph.cli.textfiles import Language, find_sources, language_of
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.errors import Diagnostic
    from omnigraph.model.catalog import Catalog

app = new_app()
NOT_VALID = 8


class Checked(NamedTuple):
    """One file: its findings, and what they and its queries are as JSON."""

    diagnostics: list[Diagnostic]
    findings: list[dict[str, Any]]
    results: list[dict[str, Any]]


class Origin(NamedTuple):
    """The schema against which queries are checked, and where it came from."""

    catalog: Catalog
    source: dict[str, str]


@app.command()
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files (.pg, .gq) or directories; - for stdin."),
    ] = None,
    query: Annotated[
        list[Path] | None,
        typer.Option("--query", "-q", metavar="FILE", help="A file of queries; may be repeated."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="Schema to check queries against."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="GRAPH", help="Graph whose schema queries are checked against."
        ),
    ] = None,
    branch: BranchOption = "main",
    language: Annotated[Language | None, typer.Option(help="Language of standard input.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check schemas and queries for errors and probable mistakes."""
    sources = find_sources([*(files or []), *(query or [])])
    languages = {path: language_of(path, language) for path in sources}
    schemas = [path for path in sources if languages[path] is Language.SCHEMA]
    queries = [path for path in sources if languages[path] is Language.QUERY]
    checked = [_check_schema(path) for path in schemas]
    origin: Origin | None = None
    if queries and not _errors(checked):
        origin = _find_schema(schema, store, branch, schemas)
        checked += [_check_queries(path, origin.catalog) for path in queries]
    if as_json:
        _print_json(checked, queries, origin)
    else:
        _print_text(checked)
    if _errors(checked) or (strict and _count(checked, "warning")):
        raise typer.Exit(NOT_VALID)


def _check_schema(path: Path) -> Checked:
    from omnigraph.cli.files import read_text
    from omnigraph.lang.gq.linter import Finding
    from omnigraph.lang.pg import diagnose

    found = list(diagnose(read_text(path), str(path)))
    return Checked(found, [_in_file(Finding(each).to_dict(), path) for each in found], [])


def _check_queries(path: Path, catalog: Catalog) -> Checked:
    from omnigraph.cli.files import read_text
    from omnigraph.lang import gq

    report = gq.lint(read_text(path), catalog, str(path), can_embed=_can_embed(catalog))
    return Checked(
        [each.diagnostic for each in report.findings],
        [_in_file(each.to_dict(), path) for each in report.findings],
        [_in_file(each.to_dict(), path) for each in report.results],
    )


def _can_embed(catalog: Catalog) -> bool:
    """Whether required vectors can be made here. Types without any need no answer."""
    items = (item for table in catalog.tables() for item in table.properties)
    if not any(item.embed is not None and not item.type.nullable for item in items):
        return True
    from omnigraph.writes.requiredvectors import configured

    return configured() is not None


def _in_file(shown: dict[str, Any], path: Path) -> dict[str, Any]:
    return {**shown, "file": str(path)}


def _find_schema(
    schema: Path | None, store: str | None, branch: str, schemas: Sequence[Path]
) -> Origin:
    """The one schema that queries are checked against."""
    if schema is None and store is None and len(schemas) == 1:
        schema = schemas[0]
    if (schema is None) == (store is None):
        raise InvalidArgumentError(
            "Queries are checked against one schema.",
            hint="Give --schema FILE, or --store GRAPH for the schema that a graph has accepted.",
        )
    if store is not None:
        catalog = open_graph(store, branch, read_only=True).snapshot().catalog
        return Origin(catalog, {"kind": "graph", "uri": store})
    from omnigraph.cli.files import read_text
    from omnigraph.lang.pg import compile_schema

    assert schema is not None
    compiled = compile_schema(read_text(schema), str(schema))
    return Origin(compiled, {"kind": "file", "path": str(schema)})


def _count(checked: Sequence[Checked], severity: str) -> int:
    return sum(d.severity == severity for each in checked for d in each.diagnostics)


def _errors(checked: Sequence[Checked]) -> int:
    return _count(checked, "error")


def _print_text(checked: Sequence[Checked]) -> None:
    from omnigraph.lang.diagnostics import render

    for each in checked:
        for found in each.diagnostics:
            echo(render(found) + "\n")
    errors, warnings = _errors(checked), _count(checked, "warning")
    files = "1 file" if len(checked) == 1 else f"{len(checked)} files"
    echo(f"{files} checked, errors: {errors}, warnings: {warnings}")


def _print_json(checked: Sequence[Checked], queries: Sequence[Path], origin: Origin | None) -> None:
    from omnigraph.cli.display import print_json

    results = [result for each in checked for result in each.results]
    print_json(
        {
            "status": "error" if _errors(checked) else "ok",
            "schema_source": origin.source if origin is not None else None,
            "query_path": str(queries[0]) if len(queries) == 1 else None,
            "queries_processed": len(results),
            "errors": _errors(checked),
            "warnings": _count(checked, "warning"),
            "infos": _count(checked, "info"),
            "results": results,
            "findings": [finding for each in checked for finding in each.findings],
        }
    )
