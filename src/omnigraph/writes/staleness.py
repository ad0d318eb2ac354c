"""Which vectors are older than the texts that they were computed from, according to the history.

Rows do not store the origin of their vectors. A vector is stale if a commit changed its text and
not the vector, until a later commit changes the vector.

Guarantees: exact as far as history reaches back, or to the last commit that made vectors of the
property; older vectors are assumed to be current. Missing vectors are not reported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ChangeFeedGapError
from omnigraph.history.commitfeed import commit_diffs, commits_between
from omnigraph.history.images import TableDiff
from omnigraph.history.log import lines
from omnigraph.history.refs import read_branch
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.model.change import ChangeFilter
from omnigraph.model.commit import Commit
from omnigraph.model.equality import same_columns
from omnigraph.model.snapshot import Snapshot
from omnigraph.rows.checks import TableType
from omnigraph.rows.columns import combined
from omnigraph.storage.root import GraphRoot

# In a commit's details: model, provider, and the properties whose vectors were brought up to date.
RECORD = "embedding"


@dataclass
class Standing:
    """The state of the vectors of one property: the last model, and the ids of stale vectors."""

    model: str | None = None
    since: int = 0
    stale: set[str] = field(default_factory=set)


def record(model: str, provider: str, properties: list[Property]) -> dict[str, Any]:
    """The details that the commit of a run stores."""
    names = {str(item.id): item.name for item in properties}
    return {RECORD: {"model": model, "provider": provider, "properties": names}}


def standings(root: GraphRoot, snapshot: Snapshot, table: TableType) -> dict[str, Standing]:
    """Of each property of a type with `@embed`, by name."""
    items = [item for item in table.properties if item.embed is not None]
    branch_id, head = read_branch(root, snapshot.branch).id, snapshot.sequence
    found = {item.name: _last_run(root, branch_id, head, item) for item in items}
    since = min((standing.since for standing in found.values()), default=head)
    wanted = ChangeFilter(types=frozenset({table.name}))
    for place in commits_between(root, branch_id, since + 1, head):
        try:
            for diff in commit_diffs(root, place, wanted):
                _judge(diff, place.commit.sequence, items, found)
        except ChangeFeedGapError:
            continue  # removed by cleanup: older changes are unknown
    return found


def _last_run(root: GraphRoot, branch_id: str, head: int, item: Property) -> Standing:
    """The last commit that recorded new vectors of a property."""
    for commit in _newest_first(root, branch_id, head):
        said = commit.details.get(RECORD)
        if said is not None and str(item.id) in said.get("properties", {}):
            return Standing(said.get("model"), commit.sequence)
    return Standing()


def _newest_first(root: GraphRoot, branch_id: str, head: int) -> Iterator[Commit]:
    for line, newest in lines(root, branch_id):
        yield from line.own_commits(min(newest, head))


def _judge(
    diff: TableDiff, sequence: int, items: list[Property], found: dict[str, Standing]
) -> None:
    """Update the state by one batch of changes of one commit."""
    old, new = _updated(diff)
    if old is None or new is None:
        return
    ids = combined(new.column(ID_COLUMN))
    by_name = diff.types.newer.by_name if diff.types.newer else {}
    for item in items:
        standing = found[item.name]
        assert item.embed is not None
        source = by_name.get(item.embed.source)
        if sequence <= standing.since or source is None or item.column not in new.column_names:
            continue
        same_text = same_columns(old.column(source.column), new.column(source.column))
        same_vector = same_columns(old.column(item.column), new.column(item.column))
        standing.stale.difference_update(_chosen(ids, ~same_vector))
        standing.stale.update(_chosen(ids, same_vector & ~same_text))


def _updated(diff: TableDiff) -> tuple[pa.Table | None, pa.Table | None]:
    """The rows that both sides have, side by side."""
    if not diff.before.num_rows or not diff.after.num_rows:
        return None, None
    places = pc.index_in(
        combined(diff.after.column(ID_COLUMN)), value_set=combined(diff.before.column(ID_COLUMN))
    )
    here = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    return diff.before.take(places.drop_null()), diff.after.take(pa.array(here))


def _chosen(ids: pa.Array, mask: Any) -> list[str]:
    found: list[str] = ids.filter(pa.array(mask)).to_pylist()
    return found
