"""A temporary branch for a `with` block.

If the block succeeds, its branch is merged and deleted, or only deleted if requested. If the block
fails, its branch is deleted. If the merge has a conflict, the branch is kept, nothing is merged,
and the error is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import MergeConflictError
from omnigraph.history.resolve import Target
from omnigraph.model.ulid import new_ulid
from omnigraph.operations import branch, merge
from omnigraph.operations.context import Context


@contextmanager
def scratch(
    context: Context, name: str | None, start: Target, *, merges: bool = True, message: str = ""
) -> Iterator[str]:
    """Begin a branch, and merge or drop it at the end. Without a name it gets one of ours."""
    options = merge.options(None, {}, "property", None, message, True)  # refused before anything
    chosen = name or f"scratch/{new_ulid().lower()}"
    branch.create_branch(context, chosen, start)
    try:
        yield chosen
    except BaseException:
        branch.delete_branch(context, chosen)
        raise
    if not merges:
        branch.delete_branch(context, chosen)
        return
    try:
        merge.merge(context, chosen, start.branch, options)
    except MergeConflictError as error:
        error.add_note(f"The branch {chosen!r} is kept.")
        raise
