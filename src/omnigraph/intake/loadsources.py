"""Conversion of the inputs of `load` to sources.

    "people.jsonl", ["a/*.parquet", "s3://b/c/"]      addresses
    "table:sales.people"                              a table that Spark knows
    a DataFrame, an Arrow table, pandas, polars       with `type`
    {"Person": frame, "Knows": frame}                 frames by type

Guarantees: what cannot be understood is refused before anything is read.
Deliberately absent: reading.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.errors import InvalidArgumentError
from omnigraph.intake.sources import Assigned, Rule, Source, SourceFormat, parse_mapping
from omnigraph.intake.typedrows import find_type
from omnigraph.model.catalog import Catalog

_TABLE = "table:"


def to_sources(
    given: Any, type_name: str | None, mapping: Any, format_: str | None
) -> tuple[Source, ...]:
    rules = parse_mapping(mapping) if mapping is not None else ()
    if type_name is not None:
        rules = (Rule("*", type_name, is_edge=False), *rules)
    form = _format(format_)
    if isinstance(given, Source):
        return (given,)
    if isinstance(given, Mapping):
        if not all(isinstance(name, str) for name in given):
            raise InvalidArgumentError("Frames by type are named by texts.")
        return tuple(
            Source(frame=frame, rules=(Rule("*", name, is_edge=False),))
            for name, frame in given.items()
        )
    if isinstance(given, str | os.PathLike):
        given = [given]
    if isinstance(given, list | tuple) and all(isinstance(p, str | os.PathLike) for p in given):
        return tuple(_path_source(os.fspath(path), form, rules) for path in given)
    return (Source(frame=given, rules=rules),)


def _path_source(path: str, form: SourceFormat | None, rules: tuple[Rule, ...]) -> Source:
    if path.startswith(_TABLE):
        return Source(frame=path.removeprefix(_TABLE), rules=rules, label=path)
    return Source((path,), format=form, rules=rules)


def _format(name: str | None) -> SourceFormat | None:
    if name is None:
        return None
    try:
        return SourceFormat(name)
    except ValueError:
        raise InvalidArgumentError(
            f"There is no format {name!r}.", hint=f"Use one of {', '.join(SourceFormat)}."
        ) from None


def with_kinds(source: Source, catalog: Catalog) -> Source:
    """The same source; where a rule just names a type, whether it is an edge's is looked up."""
    return replace(source, rules=tuple(_with_kind(rule, catalog) for rule in source.rules))


def _with_kind(rule: Rule, catalog: Catalog) -> Rule:
    is_edge = catalog.node(rule.table) is None and catalog.edge(rule.table) is not None
    return replace(rule, is_edge=True) if is_edge else rule


def assign_frame(source: Source, catalog: Catalog) -> Assigned:
    """How to read a frame: by its rule, or by the name of its table."""
    if source.rules:
        rule = source.rules[0]
        table = find_type(catalog, rule.table)
        return Assigned(SourceFormat.ARROW, table_id=table.id, columns=rule.columns)
    if not isinstance(source.frame, str):
        raise InvalidArgumentError(
            "The type of the rows is not given.", hint="Name the type: type='Person'."
        )
    table = find_type(catalog, source.frame.rsplit(".", 1)[-1])
    return Assigned(SourceFormat.ARROW, table_id=table.id)


def refuse_nothing(size: int, types: Sequence[object]) -> None:
    """An overwrite by nothing has to say of what."""
    if not types and not size:
        raise InvalidArgumentError(
            "The input is empty, and no type to replace is given.",
            hint="Name the types whose rows are to be deleted: types=['Person', …].",
        )
