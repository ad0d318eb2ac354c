"""Which graph an address holds: detects that the graph at an address was replaced.

A graph gets a random *stamp* when it is made or copied; every manifest carries it. A graph that is
restored by other means (a copied folder, a restored volume) keeps its stamp but falls back to an
earlier state, and may then reach the same version numbers with other content. On a disk, a folder
that took the place of another is recognised even if both hold the same bytes: a write that was
prepared in the old folder left its files there.

    known.admit(uri, branch_id, image, reread)    the image, labelled with its incarnation

The label is the stamp, plus a counter once this process has seen the same stamp fall back. Version
numbers, and everything cached under them, mean the same only under the same label.

Guarantees: an image whose label equals an earlier one's continues the same history; no I/O unless
more commits were published since the last look than a manifest's tail holds, or something looks
wrong. Deliberately absent: looking by itself. What is known is what the last read found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import uuid4

from omnigraph.errors import GraphReplacedError
from omnigraph.model.location import Location

# What is remembered per graph. Forgetting is harmless unless the graph is replaced just then.
_MOST_BRANCHES = 10_000


class Image(Protocol):
    """A manifest at one version."""

    @property
    def version(self) -> int: ...

    @property
    def stamp(self) -> str: ...

    @property
    def transaction(self) -> bytes:
        """A random id that tells two manifests of one version apart."""
        ...

    def newest_commit(self) -> tuple[int, str] | None:
        """The sequence and the id of its newest commit."""
        ...

    def has_commit(self, sequence: int, id: str) -> bool: ...


I = TypeVar("I", bound=Image)  # noqa: E741


@dataclass(frozen=True, slots=True)
class _Sight:
    """What was last seen of a branch."""

    version: int
    transaction: bytes
    newest: tuple[int, str] | None
    place: tuple[int, int] | None


@dataclass
class _Graph:
    """What is known about the graph at one address."""

    stamp: str
    label: str
    seen: dict[str, _Sight] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)


class Known:
    """The graphs that this process has looked at, by address."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._graphs: dict[str, _Graph] = {}
        self._replaced = 0

    def label(self, uri: str) -> str:
        """The label of the graph at an address; empty if this process has not looked at it."""
        graph = self._graphs.get(uri)
        return graph.label if graph is not None else ""

    def stamp(self, uri: str) -> str:
        """The stamp of the graph at an address; empty if this process has not looked at it."""
        graph = self._graphs.get(uri)
        return graph.stamp if graph is not None else ""

    def newest_commit(self, uri: str, branch_id: str) -> tuple[int, str] | None:
        """The sequence and the id of the newest commit that was seen on a branch."""
        graph = self._graphs.get(uri)
        sight = graph.seen.get(branch_id) if graph is not None else None
        return sight.newest if sight is not None else None

    def is_newest(
        self,
        uri: str,
        branch_id: str,
        version: int,
        transaction: bytes,
        place: tuple[int, int] | None = None,
    ) -> bool:
        """Whether this version of a branch's manifest is the one that was last seen."""
        graph = self._graphs.get(uri)
        sight = graph.seen.get(branch_id) if graph is not None else None
        looked_for = (version, transaction, place)
        return sight is not None and looked_for == (sight.version, sight.transaction, sight.place)

    def admit(
        self,
        uri: str,
        branch_id: str,
        image: I,
        reread: Callable[[], I],
        place: tuple[int, int] | None = None,
    ) -> tuple[I, str]:
        """The newest image and its label. `reread` reads the manifest again: an image that does
        not continue what was seen may only be older than what another thread has seen. `place`
        identifies the folder of the manifest before it was read, on a disk."""
        with self._guard:
            graph = self._graphs.setdefault(uri, _Graph(image.stamp, image.stamp))
        with graph.guard:
            if not _continues(graph, branch_id, image, place):
                image = reread()
                if not _continues(graph, branch_id, image, place):
                    self._replace(graph, image.stamp)
            if len(graph.seen) >= _MOST_BRANCHES:
                graph.seen.clear()
            newest = image.newest_commit()
            graph.seen[branch_id] = _Sight(image.version, image.transaction, newest, place)
            return image, graph.label

    def forget(self, uri: str, branch_id: str) -> None:
        """Of a branch that was removed."""
        graph = self._graphs.get(uri)
        if graph is not None:
            with graph.guard:
                graph.seen.pop(branch_id, None)

    def _replace(self, graph: _Graph, stamp: str) -> None:
        with self._guard:
            self._replaced += 1
            number = self._replaced
        graph.seen.clear()
        graph.stamp, graph.label = stamp, f"{stamp}#{number}"


def _continues(graph: _Graph, branch_id: str, image: Image, place: tuple[int, int] | None) -> bool:
    """Whether an image may be a later state of what was seen."""
    if image.stamp != graph.stamp:
        return False
    last = graph.seen.get(branch_id)
    if last is None:
        return True
    if place != last.place:
        return False
    if image.version == last.version:
        return image.transaction == last.transaction
    if image.version < last.version:
        return False
    return last.newest is None or image.has_commit(*last.newest)


def new_stamp() -> str:
    return uuid4().hex


known = Known()


def refuse_replaced(location: Location, incarnation: str) -> None:
    """Raise if the graph of this label is known to be replaced by another."""
    label = known.label(location.key)
    if incarnation and label and incarnation != label:
        raise GraphReplacedError(f"The graph at {location.uri} was replaced by another one.")
