"""Derived state beside the tables: arrays that could be made again, kept because that takes long.

    save_array(root, "adjacency/edges-5/7-ab/sources", numbers)

An array is one file of plain numbers, mapped rather than read: what a query does not look at costs
neither time nor memory, and the system may take the rest back.

Guarantees: an array is there whole or not at all; what cannot be mapped, for whichever reason, is
absent. Names are the caller's, and should name immutable things; so is knowing how long an array
must be. Deliberately absent: other places than local disk, where nothing can be mapped, and any
promise that an array stays. Deleting the folder is always safe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.errors import StorageError
from omnigraph.storage.root import GraphRoot

FOLDER = "__derived"

Array = np.ndarray[Any, Any]


def save_array(root: GraphRoot, name: str, array: Array) -> None:
    """Keep an array of one dimension under a name, in the place of what was there."""
    root.objects.put(_path(name, array.dtype), np.ascontiguousarray(array).view(np.uint8).data)


def map_array(root: GraphRoot, name: str, dtype: np.dtype[Any] | type[Any]) -> Array | None:
    """The array under a name, or None."""
    if root.location.scheme != "file":
        return None
    try:
        file = root.location.child(_path(name, np.dtype(dtype))).path
        return np.asarray(np.memmap(file, dtype, mode="r"))
    except (OSError, ValueError):  # there is none, or it is empty or cut off within a number
        return None


def saved_names(root: GraphRoot, folder: str) -> list[str]:
    """The names below a folder, sorted."""
    prefix = f"{FOLDER}/{folder}/"
    try:
        paths = list(root.objects.list(prefix))
    except StorageError:
        return []
    return [path.removeprefix(f"{FOLDER}/").rpartition(".")[0] for path in paths]


def drop_arrays(root: GraphRoot, folder: str) -> None:
    """Remove every array below a folder."""
    root.objects.delete_prefix(f"{FOLDER}/{folder}")


def _path(name: str, dtype: np.dtype[Any]) -> str:
    return f"{FOLDER}/{name}.{dtype.name}"
