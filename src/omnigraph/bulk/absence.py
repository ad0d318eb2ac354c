"""Anti-join of ids: the ids of one set that another set lacks.

The same answer by either way: comparing at once for a few, and a join by DataFusion for many, which
puts the others into a table of hashes once and lets the ids run past it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

# Below, a comparison is done before DataFusion is imported.
_MANY = 500_000


def without(ids: pa.Array, others: Iterable[pa.Array]) -> pa.Array:
    """Those of the ids that none of the others is, repeats included and in no particular order.
    The others come in pieces; no further piece is asked for once nothing is left."""
    left = ids
    for piece in others:
        left = _joined(left, piece) if len(left) >= _MANY else _compared(left, piece)
        if not len(left):
            break
    return left


def _compared(ids: pa.Array, others: pa.Array) -> pa.Array:
    distinct = ids.unique()
    return distinct.filter(pc.invert(pc.is_in(distinct, value_set=others)))


def _joined(ids: pa.Array, others: pa.Array) -> pa.Array:
    from datafusion import SessionConfig, SessionContext

    # One partition: each task has one core.
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches("ids", [[pa.record_batch([ids], names=["id"])]])
    context.register_record_batches("others", [[pa.record_batch([others], names=["id"])]])
    found = context.sql("SELECT ids.id FROM ids LEFT ANTI JOIN others ON ids.id = others.id")
    batches = found.collect()
    chunks = [batch.column(0).cast(ids.type) for batch in batches]
    return pa.concat_arrays(chunks) if chunks else ids[:0]
