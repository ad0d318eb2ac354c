"""Net changes of a change stream: the final state of each entity.

The order of rows does not matter, only `_sequence`; equal rows give equal changes, so that a
repeated batch is recognised. Not included: carrying them out (`operations.replay`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidDataError
from omnigraph.intake.inputforms import Columns, Lines, Part
from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.change import ChangeOp
from omnigraph.operations.replay import Changes
from omnigraph.rows.columns import combined
from omnigraph.spark.changestream import OP, OWN, ROW, SEQUENCE, TYPE

_NEEDED = (OP, SEQUENCE, ID_COLUMN)


def net_changes(rows: pa.Table, type_name: str | None) -> Changes:
    """What a batch of changes comes to. `type_name`: the rows are of this type, with its columns;
    None: they say their types, and hold envelopes."""
    wanted = _NEEDED if type_name is not None else (*_NEEDED, TYPE, ROW)
    missing = [name for name in wanted if name not in rows.column_names]
    if missing:
        raise InvalidDataError(
            f"Rows of changes need the column {missing[0]!r}.",
            hint="Write what a stream of the data source gives, with all of its own columns.",
        )
    last = _last_of_each(rows, [ID_COLUMN] if type_name is not None else [TYPE, ID_COLUMN])
    leaves = pc.equal(last.column(OP), str(ChangeOp.DELETE))
    gone, put = last.filter(leaves), last.filter(pc.invert(leaves))
    return Changes(_put(put, type_name), _removed(gone, type_name))


def _last_of_each(rows: pa.Table, key: list[str]) -> pa.Table:
    """The last row of each entity, in order of their keys."""
    rows = rows.combine_chunks()
    order = pc.sort_indices(rows, [(SEQUENCE, "ascending")])
    ordered = rows.take(order)
    numbered = ordered.select(key).append_column("place", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(key).aggregate([("place", "max")])
    last = last.sort_by([(name, "ascending") for name in key])
    return ordered.take(combined(last.column("place_max")))


def _put(rows: pa.Table, type_name: str | None) -> tuple[Part, ...]:
    if not rows.num_rows:
        return ()
    if type_name is not None:
        return (Columns(rows.drop_columns([c for c in OWN if c in rows.column_names]), type_name),)
    return (Lines("\n".join(rows.column(ROW).to_pylist()).encode()),)


def _removed(rows: pa.Table, type_name: str | None) -> dict[str, list[str]]:
    if type_name is not None:
        return {type_name: rows.column(ID_COLUMN).to_pylist()} if rows.num_rows else {}
    found: dict[str, list[str]] = {}
    pairs = zip(rows.column(TYPE).to_pylist(), rows.column(ID_COLUMN).to_pylist(), strict=True)
    for name, id_ in pairs:
        found.setdefault(name, []).append(id_)
    return found
