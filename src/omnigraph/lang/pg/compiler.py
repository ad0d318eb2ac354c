"""The stages of the schema compiler, one pure function each."""

from __future__ import annotations

from omnigraph.errors import Diagnostic, SchemaError
from omnigraph.lang.diagnostics import Report, Source
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.lexer import tokenize
from omnigraph.lang.pg.parser import parse_tokens
from omnigraph.model.catalog import Catalog


def parse(text: str, file: str | None = None) -> ast.Schema:
    """The tree of a schema that holds together; else `SchemaError` with everything found."""
    from omnigraph.lang.pg.checker import resolve

    report = Report(Source(text, file))
    schema = parse_tokens(tokenize(report)[0], report)
    resolve(schema, report)
    report.raise_if_errors(SchemaError)
    return schema


def compile_schema(text: str, file: str | None = None, accepted: Catalog | None = None) -> Catalog:
    """The catalog that a schema text asks for, with identities taken over from `accepted`."""
    report = Report(Source(text, file))
    catalog = _compile(report, accepted)
    report.raise_if_errors(SchemaError)
    assert catalog is not None
    return catalog


def diagnose(
    text: str, file: str | None = None, accepted: Catalog | None = None
) -> tuple[Diagnostic, ...]:
    """Everything there is to say about a schema text, warnings included; never raises."""
    report = Report(Source(text, file))
    _compile(report, accepted)
    return report.diagnostics


def _compile(report: Report, accepted: Catalog | None) -> Catalog | None:
    from omnigraph.lang.pg.build import build
    from omnigraph.lang.pg.checker import resolve
    from omnigraph.lang.pg.identity import identify

    schema = parse_tokens(tokenize(report)[0], report)
    shape = resolve(schema, report)
    if report.has_errors:
        return None  # identities of broken declarations would only add noise
    ids = identify(shape, accepted, report)
    return build(shape, ids, accepted)
