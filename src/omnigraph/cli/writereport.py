"""What the program prints about a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.cli.commands.commit import record
from omnigraph.cli.display import print_json
from omnigraph.cli.terminal import echo, note

if TYPE_CHECKING:
    from omnigraph.model.commit import Commit
    from omnigraph.model.write import WriteResult

    class Loaded(Protocol):
        """What a load or an embedding gives back."""

        @property
        def commit(self) -> Commit | None: ...
        def to_json(self) -> dict[str, Any]: ...


def load_record(result: Loaded) -> dict[str, Any]:
    """A load as the program prints it, with the commit that it made as for any other write."""
    return {**result.to_json(), "commit": record(result.commit) if result.commit else None}


def print_write(
    result: WriteResult, elder: Mapping[str, Any] | None = None, *, as_json: bool
) -> None:
    """What a write changed, and the commit that it made. `elder`: more fields of the JSON."""
    if as_json:
        affected = {name: counts.to_json() for name, counts in result.affected.items()}
        commit = record(result.commit) if result.commit else None
        notices = list(result.notices)
        print_json({**(elder or {}), "affected": affected, "commit": commit, "notices": notices})
        return
    for notice in result.notices:
        note(f"Notice: {notice}")
    for name, counts in result.affected.items():
        told = [
            f"{count} {verb}"
            for count, verb in (
                (counts.inserted, "inserted"),
                (counts.updated, "updated"),
                (counts.deleted, "deleted"),
            )
            if count
        ]
        echo(f"{name}: {', '.join(told)}")
    echo(f"commit {result.commit.id}" if result.commit else "nothing to change; no commit")
