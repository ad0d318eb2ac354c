"""Compile query texts: parse, check, describe, and remember what was compiled.

What it does: `compile_query` compiles one query of a text, `compile_file` all of them.
Guarantees: pure but for the cache, which is bounded, safe to use from several threads, and keyed
by everything that the result depends on; the only exception is `QueryError`, with every finding.
Deliberately absent: files. Callers read them.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.caches import Cache
from omnigraph.errors import QueryError
from omnigraph.ir.query import Query
from omnigraph.lang.diagnostics import NOWHERE, Report, Source, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import check_query
from omnigraph.lang.gq.description import Description, describe_query
from omnigraph.lang.gq.syntax.parser import read
from omnigraph.model.catalog import Catalog

CACHE_SIZE = 512
_COMPILED_BYTES = 32 << 10  # of one compiled query, about

_Key = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query's typed IR, and what can be said about it without running it."""

    query: Query
    description: Description


cache: Cache[_Key, CompiledQuery] = Cache(entries=CACHE_SIZE, nominal_bytes=_COMPILED_BYTES)


def parse(text: str, file: str | None = None) -> ast.File:
    """The tree of a text. Raises `QueryError` with every mistake that was found."""
    return _parse(text, file)[0]


def _parse(text: str, file: str | None) -> tuple[ast.File, Report]:
    report = Report(Source(text, file))
    tree = read(report).file
    report.raise_if_errors(QueryError)
    return tree, report


def compile_query(
    text: str, catalog: Catalog, name: str | None = None, file: str | None = None
) -> CompiledQuery:
    """Compile one query of a text; `name` may be left out where the text holds only one."""
    key = (text, name, catalog.hash)
    found = cache.peek(key) if catalog.hash else None
    if found is not None:
        return found
    tree, report = _parse(text, file)
    compiled = _compile(_choose(tree, name, report), catalog, report)
    if catalog.hash:  # without a hash, two catalogs cannot be distinguished
        cache.put(key, compiled)
    return compiled


def compile_file(text: str, catalog: Catalog, file: str | None = None) -> dict[str, CompiledQuery]:
    """Compile every query of a text, by name. Of two with the same name, the first counts."""
    tree, report = _parse(text, file)
    checked = [(node, check_query(node, catalog, report)) for node in tree.queries]
    report.raise_if_errors(QueryError)
    compiled: dict[str, CompiledQuery] = {}
    for node, query in checked:
        assert query is not None  # nothing was reported, so everything was checked
        described = CompiledQuery(query, describe_query(query, catalog, node))
        compiled.setdefault(node.name.text, described)
    return compiled


def describe(
    text: str, catalog: Catalog, name: str | None = None, file: str | None = None
) -> Description:
    """What can be said about one query of a text without running it."""
    return compile_query(text, catalog, name, file).description


def _compile(node: ast.Query, catalog: Catalog, report: Report) -> CompiledQuery:
    query = check_query(node, catalog, report)
    report.raise_if_errors(QueryError)
    assert query is not None  # nothing was reported, so everything was checked
    return CompiledQuery(query, describe_query(query, catalog, node))


def _choose(tree: ast.File, name: str | None, report: Report) -> ast.Query:
    names = [query.name.text for query in tree.queries]
    found = [query for query in tree.queries if name is None or query.name.text == name]
    if found and (name is not None or len(found) == 1):
        return found[0]
    if not names:
        report.add("Q006", "the text holds no query", NOWHERE)
    elif name is None:
        listed = ", ".join(f"`{each}`" for each in names[:10])
        message = f"the text holds {len(names)} queries"
        report.add("Q006", message, tree.queries[1].name.span, hint=f"choose one: {listed}")
    else:
        hint = offer(name, names)
        report.add("Q006", f"the text holds no query named `{name}`", NOWHERE, hint=hint)
    report.raise_if_errors(QueryError)
    raise AssertionError("a finding was added above")
