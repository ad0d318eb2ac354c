"""One running query: its snapshot, parameters, instant and bounds, and the views it has opened.

Guarantees: everything in one run sees one snapshot and one instant; a type has one view per run.
Deliberately absent: operators.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from omnigraph.caches import AnyCache
from omnigraph.engines.base import Options
from omnigraph.engines.embedded.adjacency_store import Keeper
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.catalog_view import Space, TypeView
from omnigraph.engines.embedded.lineage import Ancestor, Lineage
from omnigraph.engines.embedded.neighbours import Leg
from omnigraph.engines.embedded.tablecache import Resident
from omnigraph.engines.snapshotreader import SnapshotReader
from omnigraph.errors import TypeNotFoundError
from omnigraph.ir.query import Direction, EdgeStep
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot, TableVersion
from omnigraph.storage.table import IoCounters, open_table


class Run:
    """What operators ask for while a plan runs."""

    def __init__(
        self,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        cache: AnyCache,
        options: Options,
        lineage: Lineage | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.reader = SnapshotReader(snapshot)
        self.params = params
        self.cache = cache
        self.options = options
        self._lineage = lineage
        self._keeper: Keeper | None = None
        self.bounds = Bounds(options.limits, options.cancellation)
        self.now = _milliseconds(datetime.now(UTC))
        self.strict = False  # true for the values of a write
        self.notes: list[str] = []  # how the current operator went about it, for `explain`
        self._io_before = IoCounters()
        self._views: dict[tuple[bool, str], TypeView] = {}
        self._spaces: dict[tuple[bool, tuple[str, ...]], Space] = {}
        self._legs: dict[tuple[str, bool], Leg] = {}
        self.filtered_legs: dict[tuple[int, bool], Leg] = {}  # see `edgefilter`

    def node(self, name: str) -> TypeView:
        return self._view(self.snapshot.catalog.node(name), name)

    def edge(self, name: str) -> TypeView:
        return self._view(self.snapshot.catalog.edge(name), name)

    def _view(self, type_: NodeType | EdgeType | None, name: str) -> TypeView:
        if type_ is None:
            raise TypeNotFoundError(f"The graph has no type {name!r} at this commit.")
        key = (isinstance(type_, EdgeType), type_.name)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = TypeView(type_, self._resident(type_), self.bounds)
            if self.options.profile:
                self._io_before = self._io_before + found.resident.io
        return found

    def _resident(self, type_: NodeType | EdgeType) -> Resident:
        version = self.snapshot.table(type_.id)
        if version is None:
            return Resident(("unwritten", type_.id), None, self.cache)
        if not self.snapshot.visibility.is_everything and not self.reader.sees_all(type_):
            return self._restricted(version, type_)
        return self._opened(version)

    def _restricted(self, version: TableVersion, type_: NodeType | EdgeType) -> Resident:
        """A table of which something is hidden. What memory holds of it is kept apart, and does
        not continue what is known of earlier versions."""
        key = (*self._key(version), *self.reader.cache_key(type_))
        held: Resident | None = self.cache.peek(key)
        if held is None:
            held = Resident(key, self.reader.table(type_), self.cache)
            self.cache.put(key, held, 0)
        return held

    def _key(self, version: TableVersion) -> tuple[Hashable, ...]:
        label = version.incarnation or self.snapshot.incarnation
        return (self.snapshot.location.key, label, version.path, version.fork, version.version)

    def _opened(self, version: TableVersion) -> Resident:
        key = self._key(version)
        held: Resident | None = self.cache.peek(key)
        if held is None:
            table = open_table(self.snapshot.location, version)
            held = Resident(key, table, self.cache, self._ancestor)
            self.cache.put(key, held, 0)
            if self._lineage is not None:
                self._lineage.remember(self.snapshot.location, held)
        return held

    def _ancestor(self, resident: Resident) -> Ancestor | None:
        if self._lineage is None:
            return None
        return self._lineage.ancestor(self.snapshot.location, resident)

    def space(self, types: Iterable[str], *, edges: bool = False) -> Space:
        key = (edges, tuple(types))
        found = self._spaces.get(key)
        if found is None:
            open_type = self.edge if edges else self.node
            found = self._spaces[key] = Space.over(open_type(name) for name in key[1])
        return found

    def legs(self, steps: Iterable[EdgeStep], *, reverse: bool) -> list[Leg]:
        """The legs of a traversal's steps, walked from its src or, in reverse, from its dst."""
        found: dict[tuple[str, bool], Leg] = {}
        for step in steps:
            ways = {Direction.OUT: (True,), Direction.IN: (False,), Direction.BOTH: (True, False)}
            for outwards in ways[step.direction]:
                leg = self._leg(step.edge, outwards is not reverse)
                found.setdefault((leg.edge.name, leg.outwards), leg)
        return list(found.values())

    def _leg(self, edge_name: str, outwards: bool) -> Leg:
        key = (edge_name, outwards)
        found = self._legs.get(key)
        if found is None:
            edge = self.edge(edge_name)
            assert isinstance(edge.type, EdgeType)
            near, far = self.node(edge.type.src_type), self.node(edge.type.dst_type)
            if not outwards:
                near, far = far, near
            is_shared = self._lineage is not None and self.snapshot.visibility.is_everything
            keeper = self._keep if is_shared else None
            found = Leg(edge, near, far, outwards, self.cache, self.bounds, keeper)
            self._legs[key] = found
        return found

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def adopt(self, edges: Iterable[str]) -> None:
        """Look for kept ends of edges, before anything else numbers the rows of these tables."""
        for name in edges:
            leg = self._leg(name, outwards=True)
            if not leg.is_resolved and leg.keeper is not None:
                leg.keeper().adopt(leg.trio)

    def keeps(self, edge_name: str) -> bool:
        """Whether the neighbour lists of an edge type are worth keeping."""
        return self._keep().keeps(self._leg(edge_name, outwards=True).trio)

    def keep(self, edge_name: str) -> None:
        """Have the neighbour lists of an edge type kept, both ways."""
        for outwards in (True, False):
            self._leg(edge_name, outwards).neighbours()
        self._keep().settle()

    def _keep(self) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper(self.snapshot.location, self.cache, self.bounds, self._opened)
        return self._keeper

    def io(self) -> IoCounters:
        """What reads through this run's tables have cost, other queries' reads included."""
        total = IoCounters()
        for view in self._views.values():
            total = total + view.resident.io
        return total - self._io_before


def _milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
