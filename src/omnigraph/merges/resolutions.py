"""Conflict files, which users edit and pass back as resolutions.

    {"kind": "DivergentUpdate", "type": "Person", "id": "anna", …, "resolution": null}

One JSON object per line. `resolution` becomes "ours", "theirs", "delete", or an object with the
values that the entity shall have; null leaves the conflict as it is.

Guarantees: what is written can be read back; a line that cannot be understood is refused with its
number.
Deliberately absent: deciding.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN, Catalog, EdgeType, NodeType
from omnigraph.model.conflict import MergeConflict, Side
from omnigraph.model.references import as_given
from omnigraph.model.strictjson import read_json
from omnigraph.model.types import STRING, Kind, ValueType
from omnigraph.rows.propertyvalues import read_value
from omnigraph.rows.threeway import Resolution

DELETE = "delete"


def conflict_to_dict(conflict: MergeConflict) -> dict[str, Any]:
    return {
        "kind": str(conflict.kind),
        "entity_kind": str(conflict.entity_kind),
        "type": conflict.type_name,
        "id": conflict.entity_id,
        "message": conflict.message,
        "properties": list(conflict.properties),
        "base": plain_image(conflict.base),
        "ours": plain_image(conflict.ours),
        "theirs": plain_image(conflict.theirs),
    }


def write_conflicts(conflicts: Iterable[MergeConflict], decided: str = "") -> str:
    """The file to edit. It begins with what a file that was edited before decides, so that it can
    be given back instead of that one."""
    left = [{**conflict_to_dict(conflict), "resolution": None} for conflict in conflicts]
    open_ones = {(entry["type"], entry["id"]) for entry in left}
    before = [_entry(line, n) for n, line in enumerate(decided.splitlines(), 1) if line.strip()]
    kept = [
        entry
        for entry in before
        if entry.get("resolution") is not None
        and (entry.get("type"), entry.get("id")) not in open_ones
    ]
    return "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in (*kept, *left))


def read_resolutions(text: str, catalog: Catalog) -> dict[tuple[str, str], Resolution]:
    """What the edited file decides, by type name and entity id."""
    found: dict[tuple[str, str], Resolution] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        entry = _entry(line, number)
        decision = entry.get("resolution")
        if decision is None:
            continue
        name, entity_id = entry.get("type"), entry.get("id")
        if not isinstance(name, str) or not isinstance(entity_id, str):
            raise _refused(number, "it names no entity that could be decided about")
        table = catalog.node(name) or catalog.edge(name)
        if table is None:
            raise _refused(number, f"there is no type {name!r}")
        found[(table.name, entity_id)] = _resolution(decision, table, number)
    return found


def plain_image(image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An image in values that JSON has."""
    return None if image is None else {name: plain(value) for name, value in image.items()}


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return [plain(item) for item in value] if isinstance(value, list) else value


def _entry(line: str, number: int) -> dict[str, Any]:
    try:
        entry = read_json(line)
    except ValueError as error:
        raise _refused(number, f"it is not JSON ({error})") from error
    if not isinstance(entry, dict):
        raise _refused(number, "it is not a JSON object")
    return entry


def _resolution(decision: Any, table: NodeType | EdgeType, number: int) -> Resolution:
    if decision == DELETE:
        return Resolution()
    if decision in tuple(Side):
        return Resolution(side=Side(decision))
    if isinstance(decision, dict):
        return Resolution(row={n: _value(table, n, v, number) for n, v in decision.items()})
    raise _refused(number, f"a resolution is ours, theirs, {DELETE} or an object of values")


def _value(table: NodeType | EdgeType, name: str, value: Any, number: int) -> Any:
    if isinstance(table, EdgeType) and name in (SRC_COLUMN, DST_COLUMN) and isinstance(value, str):
        return _typed(STRING, name, value, number)
    item = table.get(name)
    if item is None:
        raise _refused(number, f"{table.name} has no property {name!r}")
    if item.type.kind is Kind.BLOB and isinstance(value, str):
        try:
            # From outside: a reference in it was not admitted by anybody, whatever its mark says.
            return as_given(base64.b64decode(value, validate=True))
        except ValueError:
            raise _refused(number, f"{name}: it is not base64") from None
    return _typed(item.type, name, value, number)


def _typed(type_: ValueType, name: str, value: Any, number: int) -> Any:
    try:
        return None if value is None else read_value(type_, value)
    except ValueError as error:
        raise _refused(number, f"{name}: {error}") from None


def _refused(number: int, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Line {number} of the resolutions cannot be used: {why}.")
