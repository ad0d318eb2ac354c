"""Accepted schemas, kept under the hash of their canonical form.

A schema object never changes once written, so a catalog read once serves for ever.
Not included: compiling schemas (`lang.pg`) and deciding which one a branch uses (`commit`).
"""

from __future__ import annotations

import json
from functools import lru_cache

from omnigraph.errors import InvariantViolationError
from omnigraph.history.decoder import decoding
from omnigraph.model.catalog import Catalog
from omnigraph.model.schema_ir import from_json
from omnigraph.storage.root import GraphRoot

DIRECTORY = "__schema"


def schema_path(schema_hash: str) -> str:
    return f"{DIRECTORY}/{schema_hash}.json"


class _Key:
    """A cache key that compares by address and hash and carries the root along."""

    __slots__ = ("hash", "root")

    def __init__(self, root: GraphRoot, schema_hash: str) -> None:
        self.root = root
        self.hash = schema_hash

    def __hash__(self) -> int:
        return hash((self.root.key, self.hash))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key) and self.hash == other.hash and self.root.key == other.root.key
        )


def read_catalog(root: GraphRoot, schema_hash: str) -> Catalog:
    return _read(_Key(root, schema_hash))


@lru_cache(maxsize=128)
def _read(key: _Key) -> Catalog:
    stored = key.root.objects.get(schema_path(key.hash)).data
    name = f"The schema object {schema_path(key.hash)}"
    with decoding(name, hint="Restore it from a backup of the graph."):
        json.loads(stored)  # what is no JSON is damaged, and not of another format
        catalog = from_json(stored.decode())
    if catalog.hash != key.hash:
        raise InvariantViolationError(
            f"{name} does not hold the schema of that hash.",
            hint="Restore it from a backup of the graph.",
        )
    return catalog
