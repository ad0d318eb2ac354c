"""Sources of neighbours: adjacency in memory, or the endpoint indexes of an edge table.

A `Leg` is one edge type walked in one direction; a traversal is a few legs. A leg answers "who are
the neighbours of these nodes" by adjacency if memory holds it or if it pays to build it, and by
index probes for a few nodes of a large table otherwise.

Guarantees: both ways give the same pairs; adjacency is cached by the versions of the edge table and
of both node tables and by their numberings, so branches that share those share it.
Deliberately absent: predicates, and more than one hop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.caches import AnyCache
from omnigraph.engines.embedded.adjacency import (
    Endpoints,
    Neighbours,
    build_by_edge,
    build_distinct,
)
from omnigraph.engines.embedded.adjacency_delta import (
    Ends,
    carry_endpoints,
    carry_neighbours,
    widened,
)
from omnigraph.engines.embedded.adjacency_store import Keeper, Labels, Numberings, Trio
from omnigraph.engines.embedded.arrays import Arrays
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.engines.embedded.catalog_view import TypeView
from omnigraph.engines.embedded.malloc import give_back
from omnigraph.engines.embedded.rownumbers import NOBODY, Array, Label
from omnigraph.errors import LimitExceededError
from omnigraph.model.catalog import DST_COLUMN, ID_COLUMN, SRC_COLUMN
from omnigraph.storage.table import ROW_ID

# What a probe costs, and each node in it, in edges of building adjacency.
_EDGES_PER_PROBE = 10_000
_EDGES_PER_NODE = 200
_MOST_PROBES = 256
_MOST_EDGES = 2**31 - 1
_RESOLVED_AT_ONCE = 200_000
_READ_AHEAD = 2 << 20
# From so many edges on, reading them leaves memory behind that is worth giving back.
_LARGE = 500_000


@dataclass(frozen=True, slots=True)
class Found:
    """Neighbours of a list of nodes: `rows` are places in that list, `edges` numbers of edges."""

    rows: Array
    targets: Array
    edges: Array | None


class Leg:
    """One edge type in one direction, from `near` to `far`."""

    def __init__(
        self,
        edge: TypeView,
        near: TypeView,
        far: TypeView,
        outwards: bool,
        cache: AnyCache,
        bounds: Bounds,
        keeper: Callable[[], Keeper] | None = None,
    ) -> None:
        self.edge = edge
        self.near = near
        self.far = far
        self.outwards = outwards
        self.cache = cache
        self.bounds = bounds
        self.keeper = keeper  # made when it is needed
        sources, targets = self._ends()
        self.trio = Trio(edge.resident, sources.resident, targets.resident)
        self._views = (edge, sources, targets)
        self._labels_taken: Labels | None = None

    def turned(self) -> Leg:
        """The same edges, walked the other way."""
        ends = (self.far, self.near, not self.outwards)
        return Leg(self.edge, *ends, self.cache, self.bounds, self.keeper)

    def neighbours(self, by_edge: bool = False) -> Neighbours:
        """Adjacency, built if need be."""
        return self.cache.get(
            self._key(by_edge), lambda: self._build(by_edge), lambda made: made.nbytes
        )

    @property
    def _labels(self) -> Labels:
        """The numberings that this query sees."""
        if self._labels_taken is None:
            edges, sources, targets = self._views
            self._labels_taken = edges.arrays.label, sources.arrays.label, targets.arrays.label
        return self._labels_taken

    def _numberings(self) -> Numberings:
        edges, sources, targets = self._views
        return edges.numbering, sources.numbering, targets.numbering

    def is_held(self, by_edge: bool = False) -> bool:
        return self.cache.peek(self._key(by_edge)) is not None

    @property
    def is_resolved(self) -> bool:
        """Whether the endpoints are held; does not number what is not numbered yet."""
        edges, sources, targets = self._views
        if not (edges.is_numbered and sources.is_numbered and targets.is_numbered):
            return False
        return self.cache.peek((self._labels, "endpoints")) is not None

    def endpoints(self) -> Endpoints:
        """Both ends of every edge as numbers."""
        return self.cache.get((self._labels, "endpoints"), self._resolve, lambda made: made.nbytes)

    def _key(self, by_edge: bool) -> tuple[object, ...]:
        return (self._labels, self._way, by_edge)

    @property
    def _way(self) -> str:
        return "out" if self.outwards else "in"

    def _build(self, by_edge: bool) -> Neighbours:
        size = self.near.numbering.size
        if by_edge:
            return build_by_edge(*self._oriented(self.endpoints()), size, self.bounds)
        kept = self._kept_neighbours(size)
        if kept is not None:
            return kept
        carried = self._carried_neighbours(size)
        if carried is not None:
            return carried
        made = build_distinct(*self._oriented(self.endpoints()), size, self.bounds)
        if self.keeper is not None:
            self.keeper().keep_lists(self.trio, self._numberings(), self._way, made)
        return made

    def _kept_neighbours(self, size: int) -> Neighbours | None:
        if self.keeper is None:
            return None
        return self.keeper().lists(self.trio, self._numberings(), self._way, size)

    def _oriented(self, ends: Endpoints) -> tuple[Array, Array]:
        pair = (ends.sources, ends.targets)
        return pair if self.outwards else (pair[1], pair[0])

    # From an earlier version

    def _earlier(self) -> Iterator[tuple[Labels, Endpoints]]:
        """Earlier states of edges and nodes whose numbers still hold, with their endpoints."""
        edges, sources, targets = (_lasting(view) for view in self._views)
        for labels in product(edges, sources, targets):
            held: Endpoints | None = self.cache.peek((labels, "endpoints"))
            if labels != self._labels and held is not None and not held.dangles:
                yield labels, held

    def _ends(self) -> tuple[TypeView, TypeView]:
        return (self.near, self.far) if self.outwards else (self.far, self.near)

    def _carried_endpoints(self) -> Endpoints | None:
        sources, targets = self._ends()
        ends = Ends(
            sources.arrays.find_all,
            targets.arrays.find_all,
        )
        numbering = self.edge.numbering
        for (edges, _, _), held in self._earlier():
            if numbering.origin is None or edges == self.edge.arrays.label:
                return held
            return carry_endpoints(held, numbering.origin.delta, numbering, ends)
        return None

    def _carried_neighbours(self, size: int) -> Neighbours | None:
        for labels, held in self._earlier():
            lists: Neighbours | None = self.cache.peek((labels, self._way, False))
            if lists is None:
                continue
            after = self._oriented(self.endpoints())  # carried over as well, for the next version
            if labels[0] == self.edge.arrays.label:
                return widened(lists, size)
            before = self._oriented(held)
            return carry_neighbours(lists, before, after, size)
        return None

    # From nothing

    def _resolve(self) -> Endpoints:
        resident = self.edge.resident
        if resident.rows == 0:
            return Endpoints(np.empty(0, np.int32), np.empty(0, np.int32))
        if resident.rows > _MOST_EDGES:
            raise LimitExceededError(
                f"The edge type {self.edge.name} has more edges than the embedded engine supports.",
                resource="edges",
                limit=_MOST_EDGES,
                actual=resident.rows,
                hint="Run this query on the Spark engine.",
            )
        known = self._kept_endpoints() or self._carried_endpoints()
        if known is not None:
            return known
        ends = self._resolved_anew()
        if self.keeper is not None:
            self.keeper().keep(self.trio, self._numberings(), ends)
        return ends

    def _kept_endpoints(self) -> Endpoints | None:
        if self.keeper is not None:
            self.keeper().adopt(self.trio)
        return self.cache.peek((self._labels, "endpoints"))

    def _resolved_anew(self) -> Endpoints:
        table = self.edge.resident.table
        assert table is not None
        sources, targets = self._ends()
        numbering = self.edge.numbering
        near = np.full(numbering.size, NOBODY, sources.numbering.dtype)
        far = np.full(numbering.size, NOBODY, targets.numbering.dtype)
        scan = table.scan([SRC_COLUMN, DST_COLUMN], with_row_id=True, read_ahead_bytes=_READ_AHEAD)
        # Texts are dropped as soon as their numbers are known; but each lookup hashes all node ids
        # anew, so there should be several edges for each of them.
        nodes = max(sources.numbering.size, targets.numbering.size)
        for rows in stretches(scan, max(_RESOLVED_AT_ONCE, 2 * nodes)):
            numbers = numbering.to_numbers(rows.column(ROW_ID).to_numpy())
            ids = rows.column(SRC_COLUMN), rows.column(DST_COLUMN)
            near[numbers], far[numbers] = self._found(sources.arrays, targets.arrays, *ids)
            del rows, numbers, ids
        if numbering.size >= _LARGE:
            give_back()
        return Endpoints(near, far)

    def _found(
        self, sources: Arrays, targets: Arrays, src: pa.ChunkedArray, dst: pa.ChunkedArray
    ) -> tuple[Array, Array]:
        """The numbers of both ends; of one table they are found together, by hashing it once."""
        if sources is targets:
            both = pa.chunked_array([*src.chunks, *dst.chunks], src.type)
            found = sources.find_all(both)
            return found[: len(src)], found[len(src) :]
        other = self.bounds.beside(lambda: targets.find_all(dst))
        return sources.find_all(src), other.result()

    # Neighbours of some nodes

    def expand(self, numbers: Array, *, by_edge: bool, probe: bool) -> Found:
        """The neighbours of these nodes, by the cheaper way. `probe`: the plan suggests indexes."""
        if probe and self._probes_pay(len(numbers), by_edge):
            return self._probe(numbers, by_edge)
        lists = self.neighbours(by_edge)
        counts = lists.counts(numbers)
        total = int(counts.sum())
        self.bounds.allocate(total * 32)
        self.bounds.scan(total)
        places = lists.places(numbers, counts)
        rows = np.zeros(total, np.int64) if len(numbers) == 1 else _repeated(counts)
        edges = lists.edges.take(places) if lists.edges is not None else None
        return Found(rows, lists.targets.take(places), edges)

    def _probes_pay(self, nodes: int, by_edge: bool) -> bool:
        table = self.edge.resident.table
        if table is None or nodes > _MOST_PROBES or self.is_held(by_edge):
            return False
        cost = _EDGES_PER_PROBE + nodes * _EDGES_PER_NODE
        if not table.covered(SRC_COLUMN if self.outwards else DST_COLUMN):
            return False
        return self.edge.resident.afford_probe(cost)

    def _probe(self, numbers: Array, by_edge: bool) -> Found:
        table = self.edge.resident.table
        assert table is not None
        here, there = (SRC_COLUMN, DST_COLUMN) if self.outwards else (DST_COLUMN, SRC_COLUMN)
        distinct, back = np.unique(numbers, return_inverse=True)
        ids = self.near.values(ID_COLUMN, distinct)
        found = table.read([here, there], filter=pc.field(here).isin(ids), with_row_id=True)
        self.bounds.scan(found.num_rows)
        near = pc.index_in(found.column(here).combine_chunks(), value_set=ids).to_numpy()
        far = self.far.find(found.column(there).to_pylist())
        kept = far >= 0
        edges = self.edge.numbering.to_numbers(found.column(ROW_ID).to_numpy())[kept]
        pairs = _Pairs(near[kept], far[kept], edges)
        return pairs.spread(back, len(distinct), by_edge)


def _lasting(view: TypeView) -> list[Label]:
    """The numbering of a table, and the one that it continues."""
    label, origin = view.arrays.label, view.numbering.origin
    return [label] if origin is None else [label, origin.label]


def stretches(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Batches put together until they have so many rows."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch)
        if sum(b.num_rows for b in kept) >= rows:
            yield pa.Table.from_batches(kept)
            kept = []
    if kept:
        yield pa.Table.from_batches(kept)


def _repeated(counts: Array) -> Array:
    """Places from 0 on, each as often as its count."""
    return np.repeat(np.arange(len(counts)), counts)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Edges between places in a list of distinct nodes and their neighbours."""

    near: Array
    far: Array
    edges: Array

    def spread(self, back: Array, size: int, by_edge: bool) -> Found:
        """To the rows that asked: `back` has the place of each row's node."""
        near, far, edges = self.near, self.far, self.edges
        if not by_edge:
            _, first = np.unique(np.stack([near, far]), axis=1, return_index=True)
            near, far = near[first], far[first]
        order = np.argsort(near, kind="stable")
        offsets = np.searchsorted(near[order], np.arange(size + 1))
        lists = Neighbours(offsets, far[order], edges[order] if by_edge else None)
        counts = lists.counts(back)
        places = lists.places(back, counts)
        rows = _repeated(counts)
        edge_numbers = lists.edges.take(places) if lists.edges is not None else None
        return Found(rows, lists.targets.take(places), edge_numbers)
