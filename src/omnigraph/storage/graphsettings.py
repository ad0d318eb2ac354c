"""Settings that are stored in a graph.

    _settings.json     {"durability": "process"}

A setting that cannot be read, or that another release wrote and this one does not know, counts as
not made, so that it never keeps a graph from being opened.
Not included: settings of a person (`config`).
"""

from __future__ import annotations

import json
import logging

from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore

FILE = "_settings.json"
_WRONG = (ValueError, KeyError, TypeError, RecursionError)
log = logging.getLogger(__name__)


def read_durability(objects: ObjectStore) -> Durability:
    """What the graph's writes promise unless the writer says otherwise."""
    if objects.location.scheme != "file":
        return Durability.POWER  # an object store knows nothing else
    found = objects.get_or_none(FILE)
    if found is None:
        return Durability.POWER
    try:
        return _decode(found.data)
    except _WRONG as error:
        log.warning("%s of %s is ignored: %s", FILE, objects.location.uri, error)
        return Durability.POWER


def settings_fault(objects: ObjectStore) -> str | None:
    """Why the settings are ignored, or None."""
    found = objects.get_or_none(FILE)
    try:
        if found is not None:
            _decode(found.data)
    except _WRONG as error:
        return f"it cannot be read and is ignored: {error}"
    return None


def _decode(data: bytes) -> Durability:
    return Durability(json.loads(data)["durability"])


def write_durability(objects: ObjectStore, durability: Durability) -> None:
    data = json.dumps({"durability": str(durability)}, sort_keys=True).encode()
    objects.put(FILE, data)
