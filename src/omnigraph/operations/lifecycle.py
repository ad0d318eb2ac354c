"""Making a graph and opening one.

Guarantees: opening read-write first brings an older format up to date and recovers whatever an
interrupted writer left; opening read-only changes nothing, not even that.
Deliberately absent: keeping anything open. A context is a value.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.errors import GraphMovedError, GraphNotFoundError, InvalidArgumentError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, read_branch
from omnigraph.history.tornheads import has_torn_head
from omnigraph.operations.context import Context, principal_of
from omnigraph.operations.requests import Recover, Refresh, SetDurability
from omnigraph.storage.durability import VARIABLE as DURABILITY_VARIABLE
from omnigraph.storage.durability import check_durability
from omnigraph.storage.graphsettings import read_durability, write_durability
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot

if TYPE_CHECKING:
    from omnigraph.commit.damage import Loss
    from omnigraph.model.location import Location
    from omnigraph.model.principal import Principal

# Places that new blobs may refer to, separated by spaces.
EXTERNAL_VARIABLE = "OMNIGRAPH_EXTERNAL_BLOBS"
log = logging.getLogger(__name__)


def init_graph(
    uri: str,
    schema: str,
    *,
    actor: str | Principal | None = None,
    file: str | None = None,
    external_blobs: Iterable[str] | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Context:
    """Make an empty graph with this schema. `external_blobs`: see `open_graph`. A `durability`
    that is given becomes the graph's own, for everybody who opens it."""
    from omnigraph.commit.genesis import create_graph
    from omnigraph.lang import pg

    catalog = pg.compile_schema(schema, file=file)
    root = _root(uri, external_blobs, storage_options)
    context = _context(root, actor, read_only=False).with_durability(durability)
    if _is_in_a_file(context.root):
        raise InvalidArgumentError(f"A graph is a folder, and {uri} is a file or below one.")
    create_graph(context.root, catalog, schema, context.actor)
    if durability is not None:
        write_durability(context.root.objects, context.root.durability)
    return context


def open_graph(
    uri: str,
    *,
    actor: str | Principal | None = None,
    read_only: bool = False,
    external_blobs: Iterable[str] | None = None,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Context:
    """Open an existing graph. `external_blobs` are the places below which new blobs may refer to
    files outside of the graph; None: those that the environment names, or none. `durability` is
    what writes of this handle promise; None: what the environment says, else the graph.
    `storage_options` override the `AWS_*` variables for this graph."""
    root = _root(uri, external_blobs, storage_options)
    context = _context(root, actor, read_only=read_only)
    if not read_only:
        context = context.with_durability(durability or _usual_durability(context.root))
    if _is_in_a_file(context.root):
        raise GraphNotFoundError(f"A graph is a folder, and {uri} is a file or below one.")
    if read_only:
        context = replace(context, losses=_look_past_damage(context.root))
        BranchLog(context.root, MAIN)  # says clearly that there is no graph
        return context
    return _prepare_writing(context)


def attach(location: Location, actor: str | Principal | None = None) -> Context:
    """A read-only context for a graph that exists, without looking at it: for a task of a job whose
    driver opened the graph."""
    return _context(GraphRoot(location), actor, read_only=True)


def _look_past_damage(root: GraphRoot) -> tuple[Loss, ...]:
    """Let a reader see the newest whole state of each branch, without changing anything."""
    if not graph_folder_exists(root) or not has_torn_head(root):
        return ()
    from omnigraph.commit.damage import survey
    from omnigraph.commit.salvage import refuse_hopeless, was_never_made

    losses = survey(root).losses
    refuse_hopeless(root, losses)
    if was_never_made(root):
        raise GraphNotFoundError(f"No graph was found at {root.uri}: its creation was interrupted.")
    for loss in losses:
        if loss.kept is not None and loss.versions:
            root.manifest(loss.branch_id).pin(loss.kept)
        log.warning("damage in %s: %s", root.uri, loss.message)
    return tuple(losses)


def _prepare_writing(context: Context) -> Context:
    from omnigraph.commit.recovery import sweep
    from omnigraph.commit.salvage import salvage_if_needed
    from omnigraph.commit.upgrade import bring_up_to_date  # readers start faster without these

    losses = salvage_if_needed(context.root) if graph_folder_exists(context.root) else []
    bring_up_to_date(context.root, context.actor)
    BranchLog(context.root, MAIN)  # says clearly that there is no graph, before anything is written
    try:
        sweep(context.root)
    except GraphMovedError as error:
        # Every use of the branch says so too; `repair` must be able to open the graph.
        log.warning("recovery has to wait: %s", error)
    return replace(context, losses=tuple(losses))


def _context(root: GraphRoot, actor: str | Principal | None, *, read_only: bool) -> Context:
    return Context(root, principal_of(actor), read_only)


def _root(
    uri: str, external_blobs: Iterable[str] | None, storage_options: Mapping[str, str] | None
) -> GraphRoot:
    if external_blobs is None:
        external_blobs = os.environ.get(EXTERNAL_VARIABLE, "").split()
    return GraphRoot.at(uri, external_blobs, storage_options)


def graph_folder_exists(root: GraphRoot) -> bool:
    """Whether there may be a graph, on a disk."""
    return root.location.scheme == "file" and os.path.isdir(f"{root.location.path}/__manifest")


def _usual_durability(root: GraphRoot) -> str:
    return os.environ.get(DURABILITY_VARIABLE) or read_durability(root.objects)


def set_durability(context: Context, request: SetDurability) -> None:
    """Make it the graph's own, for everybody who opens it from now on."""
    write_durability(context.root.objects, check_durability(request.durability))


def _is_in_a_file(root: GraphRoot) -> bool:
    """Whether there is a file where the folder should be, or on the way to it."""
    if root.location.scheme != "file":
        return False
    try:
        return not stat.S_ISDIR(os.stat(root.location.path).st_mode)
    except NotADirectoryError:
        return True
    except OSError:
        return False  # the caller that uses the folder reports the error


def recover(context: Context, request: Recover) -> None:
    """Finish or undo what interrupted writers left, on every branch."""
    from omnigraph.commit.recovery import sweep

    sweep(context.root)


def refresh(context: Context, request: Refresh) -> None:
    """Finish what an interrupted writer left on a branch, as far as that goes forward."""
    from omnigraph.commit.recovery import heal

    branch_id = read_branch(context.root, request.branch).id
    with writer_lock(
        context.root.objects, branch_id, owner=context.actor, operation="refresh"
    ) as token:
        heal(context.root, BranchLog(context.root, branch_id), token)
