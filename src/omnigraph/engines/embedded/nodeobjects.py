"""Properties of bound nodes and edges, and nodes as whole objects.

`NOBODY` has null properties and is a null object.
Not included: what an object looks like (`expressions.shapes`), and blobs, which are read through an
API of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engines.embedded.arrays import indices
from omnigraph.engines.embedded.frame import Entities
from omnigraph.engines.embedded.rownumbers import NOBODY
from omnigraph.engines.embedded.run import Run
from omnigraph.engines.expressions.shapes import (
    TYPE_FIELD,
    ObjectField,
    object_fields,
    tables_of,
)
from omnigraph.ir.expr import Entity


def property_values(entities: Entities, name: str, wanted: Any) -> pa.Array:
    """One property of every row's node or edge."""
    space = entities.space
    if space.is_single:
        view = space.views[0]
        found = view.column(name) if entities.whole else None
        if found is None:
            found = view.values(name, entities.numbers)
    else:
        found = _of_many(entities, name, wanted)
    return found if found.type == wanted else found.cast(wanted)


def _of_many(entities: Entities, name: str, wanted: Any) -> pa.Array:
    """Fetch per type, lay end to end, and put back in row order."""
    space, numbers = entities.space, entities.numbers
    kinds = space.places(numbers)
    parts: list[pa.Array] = []
    order = np.full(len(numbers), NOBODY, np.int64)
    done = 0
    for place, (view, base) in enumerate(zip(space.views, space.bases, strict=True)):
        rows = np.flatnonzero(kinds == place)
        if len(rows):
            values = view.values(name, numbers[rows] - base)
            parts.append(values if values.type == wanted else values.cast(wanted))
            order[rows] = np.arange(done, done + len(rows))
            done += len(rows)
    if not parts:
        return pa.nulls(len(numbers), wanted)
    return pa.concat_arrays(parts).take(indices(order))


def object_values(entities: Entities, expr: Entity, run: Run) -> pa.Array:
    """Every row's node or edge as a struct, shaped by the types that the query gave it."""
    fields = object_fields(tables_of(expr, run.snapshot.catalog))
    arrays = [_field_values(entities, field) for field in fields]
    absent = entities.numbers < 0
    mask = pa.array(absent) if bool(absent.any()) else None
    return pa.StructArray.from_arrays(arrays, fields=[f.field for f in fields], mask=mask)


def _field_values(entities: Entities, field: ObjectField) -> pa.Array:
    if field.source == TYPE_FIELD:
        return _type_names(entities)
    if field.only is not None:
        entities = _only(entities, field.only)
    return property_values(entities, field.source, field.field.type)


def _type_names(entities: Entities) -> pa.Array:
    names = pa.array(entities.space.types, pa.string())
    return names.take(indices(entities.space.places(entities.numbers)))


def _only(entities: Entities, type_name: str) -> Entities:
    """The same rows, with `NOBODY` for entities of other types."""
    space = entities.space
    place = space.types.index(type_name) if type_name in space.types else len(space.types)
    kept = space.places(entities.numbers) == place
    return Entities(space, np.where(kept, entities.numbers, NOBODY))
