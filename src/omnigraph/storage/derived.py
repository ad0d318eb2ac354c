"""Derived state beside the tables: arrays that could be made again, kept because that takes long.

    save_arrays(root, "adjacency/follows/7", {"sources": …, "targets": …})

Guarantees: an entry is there whole or not at all; whatever cannot be read back, for whichever
reason, reads as absent. Names are the caller's, and should name immutable things.
Deliberately absent: any promise that an entry stays. Deleting the folder is always safe.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from omnigraph.errors import StorageError
from omnigraph.storage.root import GraphRoot

FOLDER = "__derived"
_SUFFIX = ".npz"

Arrays = Mapping[str, np.ndarray[Any, Any]]


def save_arrays(root: GraphRoot, name: str, arrays: Arrays) -> None:
    """Keep arrays under a name, in the place of what was there."""
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **dict(arrays))
    root.objects.put(_path(name), data.getvalue())


def load_arrays(root: GraphRoot, name: str) -> Arrays | None:
    """The arrays under a name, or None."""
    try:
        found = root.objects.get_or_none(_path(name))
        if found is None:
            return None
        with np.load(io.BytesIO(found.data), allow_pickle=False) as entry:
            return {key: entry[key] for key in entry.files}
    except (StorageError, ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return None


def saved_names(root: GraphRoot, folder: str) -> list[str]:
    """The names below a folder, sorted."""
    prefix = f"{FOLDER}/{folder}/"
    try:
        return [
            path.removeprefix(f"{FOLDER}/").removesuffix(_SUFFIX)
            for path in root.objects.list(prefix)
            if path.endswith(_SUFFIX)
        ]
    except StorageError:
        return []


def drop_arrays(root: GraphRoot, name: str) -> None:
    root.objects.delete(_path(name))


def _path(name: str) -> str:
    return f"{FOLDER}/{name}{_SUFFIX}"
