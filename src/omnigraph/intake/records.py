"""Parses one line of an input: a record or a violation.

    {"type": "Person", "data": {"name": "Ada"}}
    {"edge": "Knows", "from": "Ada", "to": "Grace", "data": {"since": "2024-01-31"}}

The slow and exact way to read envelopes. `envelopes` comes here for lines that the fast way
refused, to learn the field and the reason.

Guarantees: strict JSON in UTF-8: repeated members, NaN, trailing text and a second value on the
line are refused at any depth; integers are exact.
Deliberately absent: constraints, and properties that are missing (`rows.checks` sees those).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from omnigraph.errors import InvalidArgumentError, Violation
from omnigraph.model.catalog import ID_COLUMN, Catalog, EdgeType
from omnigraph.model.keys import canonical_scalar
from omnigraph.model.strictjson import read_json
from omnigraph.model.types import STRING
from omnigraph.rows.checks import TYPE, UNKNOWN, TableType
from omnigraph.rows.findings import shown
from omnigraph.rows.identities import ENDS
from omnigraph.rows.propertyvalues import read_value

JSON = "json"
ENVELOPE = "envelope"

_NODE_FIELDS = frozenset({"type", "data"})
_EDGE_FIELDS = frozenset({"edge", "from", "to", "data"})


@dataclass(frozen=True)
class Record:
    """A row of a type: `id`, `src`, `dst` and properties by name, in the types of their columns."""

    table: TableType
    values: Mapping[str, Any]


def read_line(catalog: Catalog, line: bytes) -> Record | list[Violation]:
    """The record on a line, or everything that is wrong with it."""
    try:
        value = read_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return [Violation(JSON, f"byte {error.start + 1} of the line is not valid UTF-8")]
    except ValueError as error:
        return [Violation(JSON, str(error))]
    return read_envelope(catalog, value)


def read_envelope(catalog: Catalog, value: Any) -> Record | list[Violation]:
    if not isinstance(value, dict):
        return [Violation(ENVELOPE, "a record is one JSON object")]
    if ("type" in value) == ("edge" in value):
        return [Violation(ENVELOPE, "a record has either `type` or `edge`")]
    allowed = _NODE_FIELDS if "type" in value else _EDGE_FIELDS
    unknown = [name for name in value if name not in allowed]
    if unknown:
        message = f"unknown field {unknown[0]!r}; a record has {', '.join(sorted(allowed))}"
        return [Violation(ENVELOPE, message, property=unknown[0])]
    table = find_table(catalog, value)
    if isinstance(table, Violation):
        return [table]
    data = value.get("data", {})
    if not isinstance(data, dict):
        return [Violation(ENVELOPE, "`data` must be an object", table.name, "data", shown(data))]
    return _read_row(catalog, table, value, data)


def find_table(catalog: Catalog, envelope: Mapping[str, Any]) -> TableType | Violation:
    """The type that an envelope names."""
    key = "type" if "type" in envelope else "edge"
    name = envelope[key]
    if not isinstance(name, str):
        return Violation(ENVELOPE, f"`{key}` must be a text", property=key, value=shown(name))
    table = catalog.node(name) if key == "type" else catalog.edge(name)
    return unknown_type(catalog, key, name) if table is None else table


def unknown_type(catalog: Catalog, key: str, name: str) -> Violation:
    known = [t.name for t in (catalog.nodes if key == "type" else catalog.edges)]
    near = get_close_matches(name, known, n=1)
    what = "node" if key == "type" else "edge"
    hint = f"; did you mean {near[0]}?" if near else ""
    return Violation(ENVELOPE, f"there is no {what} type {shown(name)!r}{hint}", property=key)


def _read_row(
    catalog: Catalog, table: TableType, envelope: Mapping[str, Any], data: Mapping[str, Any]
) -> Record | list[Violation]:
    values: dict[str, Any] = {}
    wrong: list[Violation] = []
    for name, value in data.items():
        item = table.by_name.get(name)
        if item is None and name != ID_COLUMN:
            message = f"{table.name} has no property {shown(name)!r}"
            wrong.append(Violation(UNKNOWN, message, table.name, shown(name), shown(value)))
        elif value is not None:
            _read_into(values, wrong, table, name, STRING if item is None else item.type, value)
    if isinstance(table, EdgeType):
        _read_ends(catalog, table, envelope, values, wrong)
    return wrong or Record(table, values)


def _read_into(
    values: dict[str, Any],
    wrong: list[Violation],
    table: TableType,
    name: str,
    type_: Any,
    value: Any,
) -> None:
    try:
        values[name] = read_value(type_, value)
    except ValueError as error:
        wrong.append(Violation(TYPE, str(error), table.name, name, shown(value)))


def _read_ends(
    catalog: Catalog,
    table: EdgeType,
    envelope: Mapping[str, Any],
    values: dict[str, Any],
    wrong: list[Violation],
) -> None:
    for end, column in ENDS.items():
        value = envelope.get(end)
        if value is None:
            continue
        try:
            values[column] = read_end(catalog, table, column, value)
        except ValueError as error:
            wrong.append(Violation(TYPE, str(error), table.name, end, shown(value)))


def read_end(catalog: Catalog, edge: EdgeType, column: str, value: Any) -> str:
    """The node id that an end names: the id itself, or the typed key of a node with one."""
    if not isinstance(value, str):
        node = catalog.node(edge.src_type if column == ENDS["from"] else edge.dst_type)
        if node is not None and len(node.key) == 1:
            type_ = node.by_name[node.key[0]].type
            try:
                return str(canonical_scalar(read_value(type_, value), type_.kind))
            except InvalidArgumentError as error:
                raise ValueError(error.message) from None
    return str(read_value(STRING, value))
