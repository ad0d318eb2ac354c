"""A temporary branch for a `with` block.

If the block succeeds, its branch is merged and deleted, or only deleted if requested. If the block
fails, its branch is deleted. If the merge has a conflict, the branch is kept, nothing is merged,
and the error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import MergeConflictError
from omnigraph.history.resolve import Target
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.merge import MergeOptions
from omnigraph.operations.requests import CreateBranch, DeleteBranch, Merge, Request


@contextmanager
def scratch(
    run: Callable[[Request[Any]], Any],
    name: str | None,
    start: Target,
    *,
    merges: bool = True,
    message: str = "",
) -> Iterator[str]:
    """Create a branch, and merge or delete it at the end. `run` carries out requests. Without a
    name the branch gets one that starts with `scratch/`."""
    # Wrong options are refused before the branch is created.
    options = MergeOptions(message=message, delete_source=True)
    chosen = name or f"scratch/{new_ulid().lower()}"
    run(CreateBranch(chosen, start))
    try:
        yield chosen
    except BaseException:
        run(DeleteBranch(chosen))
        raise
    if not merges:
        run(DeleteBranch(chosen))
        return
    try:
        run(Merge(chosen, start.branch, options))
    except MergeConflictError as error:
        error.add_note(f"The branch {chosen!r} is kept.")
        raise
