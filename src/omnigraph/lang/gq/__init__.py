"""The query language `.gq`: text in, typed IR, findings or formatted text out.

    parse(text)                          the tree
    compile_query(text, catalog, name)   typed IR and description of one query, cached
    compile_file(text, catalog)          the same for every query of a text, by name
    describe(text, catalog, name)        parameters, result fields, types read and written
    bind_params(query, given)            values for a run, checked against the declaration
    lint(text, catalog)                  what compiles but is probably not meant
    format_queries(text)                 the one canonical layout

Pure; text that does not compile raises `QueryError` with every finding and nothing else; importing
this package costs nothing, because each part is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.lang.gq.compile import (
        CompiledQuery,
        compile_file,
        compile_query,
        describe,
        parse,
    )
    from omnigraph.lang.gq.description import Description
    from omnigraph.lang.gq.format import format_queries
    from omnigraph.lang.gq.linter import lint
    from omnigraph.lang.gq.params import bind_params

__all__ = [
    "CompiledQuery",
    "Description",
    "bind_params",
    "compile_file",
    "compile_query",
    "describe",
    "format_queries",
    "lint",
    "parse",
]

_HOMES = {
    "CompiledQuery": "compile",
    "Description": "description",
    "bind_params": "params",
    "compile_file": "compile",
    "compile_query": "compile",
    "describe": "compile",
    "format_queries": "format",
    "lint": "linter",
    "parse": "compile",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
