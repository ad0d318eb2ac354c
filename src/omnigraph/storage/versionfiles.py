"""Files beside a version of a Lance dataset that reading it does not need: the records of
transactions and forks, and the note of the newest version.

    transaction_faults(root, folder, version)    the record of the transaction that made a version
    fork_fault(root, path, fork)                 Lance's record of a fork
    torn_forks(root)                             every fork whose record is missing or damaged
    hint_fault(root, folder)                     Lance's note of the newest version
    torn_indexes(root, folder, version)          files of indexes

Guarantees: reads only; local disks only.
Deliberately absent: files that a version needs (`wholeness`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnigraph.errors import OmniGraphError, StoragePermanentError
from omnigraph.storage import protobuf
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.wholeness import (
    dataset_versions,
    hint_file,
    homes,
    index_segments,
    is_whole,
    names_in,
    transaction_file,
)

_INDEX_FILES = (".lance", ".idx")


def transaction_faults(root: GraphRoot, folder: str, version: int) -> Iterator[tuple[str, str]]:
    """The path of a record that is missing or damaged, and what is wrong with it."""
    try:
        path = transaction_file(root, folder, version)
    except OmniGraphError:
        return  # the version itself cannot be read, which is reported
    if path is None:
        return
    try:
        for _ in protobuf.fields(Path(root.location.path, path).read_bytes()):
            pass
    except FileNotFoundError:
        yield path, "it is missing"
    except (OSError, StoragePermanentError) as error:
        yield path, f"it is damaged: {error}"


def fork_fault(root: GraphRoot, path: str, fork: str) -> tuple[str, str] | None:
    """The path of a fork's record and what is wrong with it, or None."""
    place = fork_record(path, fork)
    try:
        _whole(_read_json(root, place)["parentVersion"])
    except FileNotFoundError:
        return place, "it is missing"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return place, f"it is damaged: {error}"
    return None


def hint_fault(root: GraphRoot, folder: str) -> tuple[str, str] | None:
    """The path of the note and what is wrong with it, or None. A dataset may have no note."""
    place = hint_file(folder)
    if not os.path.lexists(f"{root.location.path}/{place}"):
        return None
    try:
        _whole(_read_json(root, place)["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return place, f"it is damaged: {error}"
    return None


def torn_indexes(root: GraphRoot, folder: str, version: int) -> list[str]:
    """The files of a version's indexes that are empty or cut. Those that are missing are found by
    reading the index."""
    try:
        segments = index_segments(root, folder, version)
    except OmniGraphError:
        return []
    places = [f"{home}/_indices/{each}" for home in homes(root, folder) for each in segments]
    files = [f"{place}/{name}" for place in places for name in names_in(root, place)]
    return [path for path in files if path.endswith(_INDEX_FILES) and not is_whole(root, path)]


def torn_forks(root: GraphRoot) -> Iterator[tuple[str, str]]:
    """Every fork whose record is damaged, or that has versions and no record: the path of its
    table, and its name."""
    for kind in ("nodes", "edges"):
        for table in names_in(root, kind):
            path = f"{kind}/{table}"
            names = names_in(root, f"{path}/_refs/branches")
            begun = {name.removesuffix(".json") for name in names}
            grown = {
                name
                for name in names_in(root, f"{path}/tree")
                if dataset_versions(root, f"{path}/tree/{name}")
            }
            for fork in sorted(begun | grown):
                if fork_fault(root, path, fork) is not None:
                    yield path, fork


def fork_record(path: str, fork: str) -> str:
    """Lance's record of a fork, relative to the root."""
    return f"{path}/_refs/branches/{fork}.json"


def _read_json(root: GraphRoot, place: str) -> Any:
    return json.loads(Path(root.location.path, place).read_bytes())


def _whole(value: object) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no version")
