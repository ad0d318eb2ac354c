"""Whether the graph at an address is still the one whose table was just opened.

A read resolves its tables first and opens them one by one. If the graph is replaced in between, a
table of the new graph may have the path and the version of one of the old: after a restore, both
have the same past. So after a table is opened for the first time, the manifest of the branch that
wrote it is looked at: 20 microseconds on a disk if nothing was published since the last look.

Guarantees, on a disk: a table that was opened after the graph was replaced is not read.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from omnigraph.errors import FormatError, InvariantViolationError, StorageError
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.incarnation import known, refuse_replaced
from omnigraph.storage.manifest import ManifestFile


def confirm(location: Location, version: TableVersion) -> None:
    """Raise GraphReplacedError if the graph that the version belongs to is not there any more."""
    if not version.incarnation or not known.label(location.key):
        return
    # A manifest that cannot be read is reported where it is needed.
    with suppress(StorageError, FormatError, InvariantViolationError):
        _manifest(location, _owner(version)).confirm()
    refuse_replaced(location, version.incarnation)


def confirm_on_disk(location: Location, version: TableVersion) -> None:
    """The same where it costs no request."""
    if location.scheme == "file":
        confirm(location, version)


@lru_cache(maxsize=256)
def _manifest(location: Location, branch_id: str) -> ManifestFile:
    return ManifestFile(location, branch_id)


def _owner(version: TableVersion) -> str:
    from omnigraph.storage.tableforks import owner_of  # which opens tables itself

    return owner_of(version)
