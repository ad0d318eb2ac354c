"""The messages of violated set constraints: one for each kind, shared by all engines.

Pure; the same facts give the same violation on every engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors import KeyConflictError, Violation
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.rows.checks import TableType
from omnigraph.rows.findings import shown
from omnigraph.rows.identities import ENDS
from omnigraph.rows.setchecks import (
    CARDINALITY,
    ENDPOINT,
    KEY,
    UNIQUE,
    Attached,
    Count,
    Endpoint,
    Unique,
)

END_OF = {column: end for end, column in ENDS.items()}


def repeated_id(table: TableType, id_: str, first_record: int) -> Violation:
    message = f"the id {shown(id_)!r} is that of record {first_record} too"
    return Violation(KEY, message, table.name, ID_COLUMN, shown(id_))


def taken_ids(table: TableType, ids: Sequence[str], total: int) -> KeyConflictError:
    more = f" and {total - 3} more" if total > 3 else ""
    return KeyConflictError(
        f"{table.name} has nodes or edges with these ids already: "
        f"{', '.join(repr(shown(id_)) for id_ in ids[:3])}{more}.",
        type_name=table.name,
        ids=ids,
        total=total,
    )


def not_unique(check: Unique, values: Sequence[Any], holder: str) -> Violation:
    value = shown(values[0]) if len(values) == 1 else [shown(v) for v in values]
    names = ", ".join(check.properties)
    message = f"{names} must be unique, and {holder} has {_quoted(value)} too"
    return Violation(UNIQUE, message, check.table.name, names, value)


def _quoted(value: Any) -> str:
    """One value, or several in parentheses."""
    return f"({', '.join(map(repr, value))})" if isinstance(value, list) else repr(value)


def no_such_node(check: Endpoint, id_: str) -> Violation:
    return Violation(
        ENDPOINT,
        f"there is no {check.node.name} {shown(id_)!r}",
        check.edge.name,
        END_OF[check.column],
        shown(id_),
    )


def left_pointing(check: Attached, edge_id: str, node_id: str) -> Violation:
    return Violation(
        ENDPOINT,
        f"{check.edge.name} {shown(edge_id)!r} would be left pointing to "
        f"{check.node.name} {shown(node_id)!r}, which goes",
        check.edge.name,
        END_OF[check.column],
        shown(node_id),
    )


def miscounted(check: Count, source: str, count: int) -> Violation:
    rule = check.edge.cardinality
    most = "*" if rule.maximum is None else rule.maximum
    message = (
        f"{check.node.name} {shown(source)!r} would have {count} {check.edge.name} edges; "
        f"@card({rule.minimum}..{most}) allows no such number"
    )
    return Violation(CARDINALITY, message, check.edge.name, "from", shown(source))
