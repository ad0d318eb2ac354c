"""What differs between two states of a graph.

Guarantees: any two of branch, commit, version, moment and tag; streamed, in a fixed order.
Deliberately absent: changes of the schema; they are planned with `schema plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from omnigraph import progress
from omnigraph.engines.registry import EMBEDDED
from omnigraph.errors import BranchNotFoundError, InvalidArgumentError, TagNotFoundError
from omnigraph.history.entitydiff import diff_snapshots
from omnigraph.history.refs import read_branch, read_tag
from omnigraph.history.resolve import Target, resolve
from omnigraph.merges.comparers import differ_for
from omnigraph.merges.resolutions import plain
from omnigraph.model.catalog import DST_COLUMN, SRC_COLUMN, TableKind
from omnigraph.model.change import Change, ChangeFilter, ChangeOp
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Diff

_TOLD_EVERY = 4096


def diff(context: Context, request: Diff) -> Iterator[Change]:
    """Every entity that is in only one of the states, or not the same in both. With the engine
    `spark`, tables are compared there; here they are compared piece by piece."""
    old = resolve(context.root, _state(context, request.before))
    new = resolve(context.root, _state(context, request.after))
    differ = None if request.engine == EMBEDDED else differ_for(request.engine, request.spark)
    shown = context.shown()
    return _told(diff_snapshots(context.root, old, new, request.filter, differ, shown))


def _told(changes: Iterator[Change]) -> Iterator[Change]:
    """The changes. What is read for the first of them is counted, and then they themselves."""
    with progress.tallying("compare"):
        first = next(changes, None)
    if first is None:
        return
    for number, change in enumerate(chain([first], changes)):
        if number % _TOLD_EVERY == 0:
            progress.report("diff", rows=number)
        yield change


def _state(context: Context, text: str | Target) -> Target:
    """The state that a word means: a branch, `branch@version`, a tag, or else a commit."""
    if isinstance(text, Target):
        return text
    name, at, version = text.rpartition("@")
    if at and version.isdigit():
        return Target(name, version=int(version))
    try:
        read_branch(context.root, text)
        return Target(text)
    except (BranchNotFoundError, InvalidArgumentError):
        pass
    try:
        read_tag(context.root, text)
        return Target(tag=text)
    except (TagNotFoundError, InvalidArgumentError):
        return Target(commit=text)


def filter_of(kinds: list[str], types: list[str], ops: list[str]) -> ChangeFilter:
    """A filter from words; an unknown word is refused."""
    try:
        return ChangeFilter(
            frozenset(map(TableKind, kinds)), frozenset(types), frozenset(map(ChangeOp, ops))
        )
    except ValueError as error:
        raise InvalidArgumentError(
            f"{error}.", hint="Kinds are node and edge; operations insert, update and delete."
        ) from error


def change_to_dict(change: Change) -> dict[str, Any]:
    """A change in values that JSON has."""
    return {
        "kind": str(change.kind),
        "type": {"id": change.type_id, "name": change.type_name},
        "id": change.id,
        "op": str(change.op),
        "before": _image(change, change.before),
        "after": _image(change, change.after),
    }


def _image(change: Change, image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if image is None:
        return None
    found = {name: plain(value) for name, value in image.items()}
    if change.kind is TableKind.EDGE:
        ends = {"from": found.pop(SRC_COLUMN), "to": found.pop(DST_COLUMN)}
        return {"endpoints": ends, "properties": found}
    return {"properties": found}
