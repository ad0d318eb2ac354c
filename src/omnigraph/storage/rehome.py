"""Graphs that were copied or moved: rewrites the absolute addresses of their forks.

A fork shares files with the table that it grew from, and Lance notes where that table lies by its
whole address. In a copy of the graph, or after it was moved, the note leads to the original: to
files that may be deleted, or that the other graph may delete.

    check_home(location, path, fork, dataset)    raises GraphMovedError for such a fork
    brought_home(location, path, manifest)       the manifest as it should be here

Guarantees: a graph never reads files of another graph unnoticed; bringing a fork home changes the
notes in its manifests and nothing else, one object at a time, and can be repeated.
Deliberately absent: moving files. Copy them first.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from typing import Any

from omnigraph.errors import GraphMovedError, InvariantViolationError
from omnigraph.model.location import Location
from omnigraph.storage import protobuf
from omnigraph.storage.failures import translated
from omnigraph.storage.incarnation import known

# Where a manifest keeps the tables that it shares files with, and each its address.
_BASES, _ADDRESS = 18, 4
_MAGIC = b"LANC"
_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")


class _Checked:
    """Lines that were found at home. Where a line lies does not change while it is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: set[tuple[str, ...]] = set()

    def has(self, line: tuple[str, ...]) -> bool:
        with self._lock:
            return line in self._lines

    def add(self, line: tuple[str, ...]) -> None:
        with self._lock:
            self._lines.add(line)

    def clear(self) -> None:
        with self._lock:
            self._lines.clear()


_checked = _Checked()


def check_home(location: Location, path: str, fork: str | None, dataset: Any) -> None:
    """Refuse a fork whose files are looked for in another place than this graph's."""
    if fork is None or location.scheme == "memory":
        return
    line = (location.key, known.label(location.key), path, fork)
    if _checked.has(line):
        return
    for address in _addresses(dataset._ds.serialized_manifest()):
        home = _home(location, path, address)
        if home is None or not _same(location, address, home):
            raise GraphMovedError(
                f"The graph at {location.uri} was copied or moved: a branch of it looks for its "
                f"files at {address}.",
                table=path,
                address=address,
            )
    _checked.add(line)


def forget_homes() -> None:
    """For tests that move a graph under a running process."""
    _checked.clear()


def brought_home(location: Location, path: str, data: bytes) -> bytes:
    """A manifest of a fork of `path` whose shared files are looked for in this graph."""

    def at_home(base: bytes) -> bytes:
        return protobuf.with_bytes(base, _ADDRESS, lambda value: _moved(location, path, value))

    with translated("read", path):
        start, major, minor, magic = _FOOTER.unpack(data[-_FOOTER.size :])
        (size,) = _LENGTH.unpack(data[start : start + _LENGTH.size])
        body = data[start + _LENGTH.size : -_FOOTER.size]
        if magic != _MAGIC or size != len(body):
            raise InvariantViolationError(f"A manifest of {path} does not look like one.")
        changed = protobuf.with_bytes(body, _BASES, at_home)
    footer = _FOOTER.pack(start, major, minor, magic)
    return data[:start] + _LENGTH.pack(len(changed)) + changed + footer


def _moved(location: Location, path: str, value: bytes) -> bytes:
    home = _home(location, path, value.decode())
    if home is None:
        raise InvariantViolationError(
            f"A fork of {path} shares files with {value.decode()!r}, which is no part of a graph."
        )
    return home.encode()


def _addresses(manifest: bytes) -> Iterator[str]:
    for number, base, _ in protobuf.fields(manifest):
        if number == _BASES and isinstance(base, bytes):
            for inner, value, _ in protobuf.fields(base):
                if inner == _ADDRESS and isinstance(value, bytes):
                    yield value.decode()


def _home(location: Location, path: str, address: str) -> str | None:
    """Where something that lies at `address` in another copy lies in this graph. The path of a
    table is used once, so it says where the graph's own part begins."""
    at = address.rfind(f"/{path}")
    return None if at < 0 else location.lance_uri(address[at + 1 :].rstrip("/"))


def _same(location: Location, one: str, other: str) -> bool:
    if one.rstrip("/") == other:
        return True
    return location.scheme == "file" and os.path.realpath(one) == os.path.realpath(other)
