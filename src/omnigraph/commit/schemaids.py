"""Ids of types and properties, assigned for the whole graph.

A catalog counts its own ids, and each branch has a catalog of its own; so two branches that add
different things would give them the same ids, and could never be merged. A schema change therefore
reserves its ids first. Two branches that make the same change of the same schema are given the same
ids, so that the change is the same.

    __schema/ids.json                       the next id that was never given out
    __schema/changes/<from>-<to>.json       the first id that a change of schema was given

An id is given to one change only; a graph without branches counts without gaps.
"""

from __future__ import annotations

import json
from dataclasses import replace

from omnigraph.history.decoder import decoding, read_fields, whole
from omnigraph.model.catalog import Catalog
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot

_COUNTER = "__schema/ids.json"
_CHANGES = "__schema/changes"
_LOCK = "schema ids"


def reserve_ids(root: GraphRoot, accepted: Catalog, desired: Catalog, actor: str) -> Catalog:
    """The accepted catalog, counting from ids that `desired` may have for what it adds."""
    count = desired.next_id - accepted.next_id
    if count <= 0:
        return accepted
    change = f"{_CHANGES}/{accepted.hash}-{desired.hash}.json"
    with writer_lock(root.objects, _LOCK, owner=actor, operation="schema"):
        known = root.objects.get_or_none(change)
        if known is not None:
            return replace(accepted, next_id=_number(known.data, "first", change))
        counter = root.objects.get_or_none(_COUNTER)
        unused = _number(counter.data, "next", _COUNTER) if counter else 0
        first = max(accepted.next_id, unused)
        root.objects.put(_COUNTER, json.dumps({"next": first + count}).encode())
        root.objects.put(change, json.dumps({"first": first}).encode())
        return replace(accepted, next_id=first)


def _number(data: bytes, field: str, path: str) -> int:
    with decoding(f"The object {path}", hint="Restore it from a backup of the graph."):
        return whole(read_fields(data)[field])
