"""Creation of a graph: an empty main branch with a schema.

Of several concurrent callers at one address exactly one creates the graph. An interrupted creation
leaves no graph that can be opened, and does not prevent the next attempt.
"""

from __future__ import annotations

import time

from omnigraph import faults
from omnigraph.commit.salvage import clear_unmade, was_never_made
from omnigraph.errors import (
    AlreadyExistsError,
    GraphNotFoundError,
    InvalidArgumentError,
)
from omnigraph.history.catalogs import schema_path
from omnigraph.history.log import BranchLog
from omnigraph.history.manifestrows import BranchState, encode_state
from omnigraph.history.refs import MAIN
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.model.schema_ir import to_json
from omnigraph.model.ulid import new_ulid
from omnigraph.storage.incarnation import new_stamp
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.wholeness import DAMAGE, note_start

SCHEMA_SOURCE = "_schema.pg"


def create_graph(root: GraphRoot, catalog: Catalog, source: str, actor: str) -> Commit:
    """Make an empty graph at the root. Raises AlreadyExistsError when there is one."""
    if not catalog.hash:
        raise InvalidArgumentError("The catalog has no hash; compile it with lang.pg.")
    with writer_lock(root.objects, MAIN, owner=actor, operation="init"):
        if graph_exists(root):
            raise AlreadyExistsError(
                f"There is a graph at {root.uri} already.",
                hint="Choose another address, or open the graph that is there.",
            )
        store_schema(root, catalog)
        root.objects.put(SCHEMA_SOURCE, source.encode())
        first = _first_commit(catalog, actor)
        state = BranchState({}, (first,), (), None, 0)
        faults.hit("init.before_manifest")
        # The manifest comes last: a graph exists from this write on.
        root.manifest(MAIN).create(encode_state(state), new_stamp())
        # Whatever the durability: there is always a whole state to go back to.
        root.medium.force_all()
        note_start(root)
        faults.hit("init.after_manifest")
        return first


def graph_exists(root: GraphRoot) -> bool:
    try:
        BranchLog(root, MAIN)
    except GraphNotFoundError:
        return False
    except DAMAGE:
        if not was_never_made(root):
            raise
        clear_unmade(root)
        return False
    return True


def store_schema(root: GraphRoot, catalog: Catalog) -> None:
    """Keep a schema under its hash. Writing it twice is harmless."""
    root.objects.put(schema_path(catalog.hash), to_json(catalog).encode())


def _first_commit(catalog: Catalog, actor: str) -> Commit:
    return Commit(
        id=new_ulid(),
        sequence=1,
        parents=(),
        branch=MAIN,
        actor=actor,
        kind=CommitKind.INIT,
        message="",
        created_at_us=time.time_ns() // 1000,
        schema_hash=catalog.hash,
    )
