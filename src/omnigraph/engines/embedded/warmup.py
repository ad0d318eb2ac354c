"""Making what queries would make first: neighbour lists, kept beside the tables.

Each edge type by itself, so that no more memory is used than a query over it would; nothing is made
twice for the same versions, nor for tables that are not kept (`adjacency_store`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from omnigraph.caches import Cache
from omnigraph.engines.base import Limits, Options
from omnigraph.engines.embedded.lineage import Lineage
from omnigraph.engines.embedded.malloc import give_back
from omnigraph.engines.embedded.run import Run
from omnigraph.model.snapshot import Snapshot

_UNBOUNDED = Options(Limits(None, None, None, None))


def keep_adjacency(
    snapshot: Snapshot, types: Collection[str] | None, tell: Callable[[str], None]
) -> None:
    """Keep the neighbour lists of those edge types that are worth it."""
    for edge in snapshot.catalog.edges:
        if types is not None and edge.name not in types:
            continue
        # Numbers given from nothing, as every process would give them: only such are kept.
        run = Run(snapshot, {}, Cache(), _UNBOUNDED, Lineage())
        if run.keeps(edge.name):
            tell(f"{edge.name}: neighbour lists")
            run.keep(edge.name)
            give_back()
