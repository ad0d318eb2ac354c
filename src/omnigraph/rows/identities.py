"""Assignment of row ids.

Guarantees: a node with a key gets the id that its key spells, and an id that came along must be
that one; other nodes and edges keep the id that came along or get a new one, edges that one which
their edge key spells if the caller named one. Every edge names both of its ends.
Deliberately absent: whether an id is taken, or an end exists (`setchecks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError, Violation
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN, EdgeType, NodeType
from omnigraph.model.keys import canonical_column, node_ids
from omnigraph.model.ulid import ulid_array
from omnigraph.rows.checks import REQUIRED, TableType
from omnigraph.rows.columns import combined, is_text
from omnigraph.rows.findings import Findings, Origin, shown

ID = "id"
# How callers name the ends of an edge, and the columns that hold them.
ENDS = {"from": SRC_COLUMN, "to": DST_COLUMN}


def identify(
    table: TableType,
    rows: pa.Table,
    origin: Origin,
    findings: Findings,
    edge_key: Sequence[str] = (),
) -> pa.Table:
    """The rows with an id each. They have passed `check_rows` without findings. `edge_key`: what
    tells an edge without an id from others of its type, `src`, `dst` and properties."""
    if isinstance(table, EdgeType):
        _require_ends(table, rows, origin, findings)
    given = combined(rows.column(ID_COLUMN))
    if isinstance(table, NodeType) and table.key:
        ids = key_ids(table, rows)
        _compare(table, given, ids, origin, findings)
    elif isinstance(table, EdgeType) and edge_key and given.null_count:
        spelled = _edge_ids(table, rows, edge_key, origin, findings)
        ids = pc.if_else(pc.is_valid(given), given, spelled)
    else:
        ids = _completed(given)
    return rows.set_column(0, ID_COLUMN, ids)


def _edge_ids(
    table: EdgeType, rows: pa.Table, names: Sequence[str], origin: Origin, findings: Findings
) -> pa.Array:
    """The ids that an edge key spells. The same edge has the same id whenever it is loaded."""
    columns = edge_key_columns(table, names)
    for name, column in zip(names, columns, strict=True):
        if column not in ENDS.values():
            missing = combined(pc.is_null(rows.column(column))).to_numpy(zero_copy_only=False)
            violation = Violation(
                REQUIRED, f"{name} is part of the edge key and is missing", table.name, name
            )
            findings.add_each(np.flatnonzero(missing), origin, violation)
    return node_ids(rows, columns)


def edge_key_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """The names of an edge key: `("src", "dst")`, or `src,dst` as text."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(name.strip() for name in names if name.strip())


def edge_key_columns(table: EdgeType, names: Sequence[str]) -> list[str]:
    """The columns of an edge key; refused unless the type has them all."""
    found = []
    for name in names:
        item = table.by_name.get(name)
        column = item.column if item is not None else ENDS.get(name, name)
        if item is None and column not in ENDS.values():
            raise InvalidArgumentError(
                f"{table.name} has no property {name!r}, which the edge key names.",
                hint="An edge key is made of src, dst and properties of the edge, such as src,dst.",
            )
        found.append(column)
    return found


def is_made(table: TableType, rows: pa.Table, edge_key: Sequence[str]) -> bool:
    """Whether none of these rows brought an id, and each gets a new unique one."""
    keyed = getattr(table, "key", ()) or (isinstance(table, EdgeType) and edge_key)
    return not keyed and rows.column(ID_COLUMN).null_count == rows.num_rows


def count_unnamed(table: TableType, rows: pa.Table, edge_key: Sequence[str]) -> int:
    """How many edges get an id that loading them again will not find."""
    if not isinstance(table, EdgeType) or edge_key:
        return 0
    return int(rows.column(ID_COLUMN).null_count)


def unnamed_notice(table: EdgeType, count: int) -> str:
    edges = "1 edge" if count == 1 else f"{count:,} edges"
    return (
        f"{edges} of {table.name} came without an id and were added as new: loading them again "
        "adds them again. Name what tells edges apart (edge_key, --edge-key src,dst), or give ids."
    )


def key_ids(table: NodeType, rows: pa.Table) -> pa.Array:
    """The ids that the key spells, row by row."""
    return node_ids(rows, [table.by_name[name].column for name in table.key])


def with_named_ends(table: TableType, data: pa.Table) -> pa.Table:
    """Ends given as `from` and `to` under the names of their columns, and spelled as ids."""
    if not isinstance(table, EdgeType):
        return data
    names = [ENDS.get(n, n) if n not in table.by_name else n for n in data.column_names]
    if len(set(names)) == len(names):
        data = data.rename_columns(names)
    for name in ENDS.values():
        if name in data.column_names:
            place = data.column_names.index(name)
            data = data.set_column(place, name, _spelled(data.column(name)))
    return data


def _spelled(column: pa.ChunkedArray) -> pa.Array:
    """Ends may be given as typed keys; an id is the spelling of one."""
    array = combined(column)
    spellable = not (pa.types.is_nested(array.type) or pa.types.is_binary(array.type))
    if is_text(array.type) or not spellable:
        return array
    try:
        return canonical_column(array)
    except pa.ArrowException:  # no type of a key: the row checks say so
        return array


def _completed(given: pa.Array) -> pa.Array:
    if given.null_count == len(given):
        return ulid_array(len(given))
    if not given.null_count:
        return given
    return pc.replace_with_mask(given, pc.is_null(given), ulid_array(given.null_count))


def _compare(
    table: NodeType, given: pa.Array, ids: pa.Array, origin: Origin, findings: Findings
) -> None:
    if given.null_count == len(given):
        return
    differ = pc.fill_null(pc.not_equal(given, ids), False)
    findings.add_rows(
        np.flatnonzero(differ.to_numpy(zero_copy_only=False)),
        origin,
        lambda row: Violation(
            ID,
            f"the key spells the id {shown(ids[row].as_py())!r}, not the one given",
            table.name,
            ID_COLUMN,
            shown(given[row].as_py()),
        ),
    )


def _require_ends(table: EdgeType, rows: pa.Table, origin: Origin, findings: Findings) -> None:
    for end, column in ENDS.items():
        values = rows.column(column)
        if values.null_count:
            missing = np.flatnonzero(combined(pc.is_null(values)).to_numpy(zero_copy_only=False))
            violation = Violation(REQUIRED, f"{end} is required", table.name, end)
            findings.add_each(missing, origin, violation)
