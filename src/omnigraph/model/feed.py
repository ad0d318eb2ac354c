"""The change feed's values: blocks of changes, pages of blocks, cursors and page tokens.

Guarantees: a cursor stands after whole commits only; a token continues one response only; both
are opaque text that binds graph, branch and filters, and neither can be taken for the other.
Deliberately absent: reading changes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.errors import ChangeCursorError
from omnigraph.model.change import Change, ChangeFilter
from omnigraph.model.commit import Commit

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cause:
    """The commit that a block of changes came with. `authored_at_us` is when it was made."""

    commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    authored_branch: str
    actor: str
    kind: str
    message: str
    authored_at_us: int
    schema_changed: bool

    @staticmethod
    def of(commit: Commit, schema_changed: bool) -> Cause:
        parents = (*commit.parents, None, None)
        return Cause(
            commit.id,
            parents[0],
            parents[1],
            commit.branch,
            commit.actor,
            str(commit.kind),
            commit.message,
            commit.created_at_us,
            schema_changed,
        )


@dataclass(frozen=True)
class Block:
    """Changes of one commit; all of them, unless the page is incomplete."""

    cause: Cause
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class FeedPage:
    """A bounded piece of the feed. It ends inside a commit (`next_page_token`) or after one
    (`cursor`); `caught_up`: there was no further commit."""

    blocks: tuple[Block, ...]
    cursor: str | None
    next_page_token: str | None
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader of a feed stands: after `commit_id`, or, with `after`, inside the commit
    that follows it, behind the entity (is it an edge, type id, entity id). `cut` bounds the
    response that a token continues."""

    graph: str
    branch: str
    scope: str
    sequence: int
    commit_id: str
    cut: int | None = None
    after: tuple[bool, int, str] | None = None

    @property
    def is_token(self) -> bool:
        return self.cut is not None

    def encode(self) -> str:
        value = {"v": _VERSION, **asdict(self)}
        text = json.dumps(value, separators=(",", ":"), sort_keys=True)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_position(text: str, *, token: bool) -> Position:
    """What a cursor (or page token) says."""
    try:
        padded = text + "=" * (-len(text) % 4)
        value = json.loads(base64.urlsafe_b64decode(padded.encode()))
        version = value.pop("v")
        after = value.pop("after")
        position = Position(**value, after=tuple(after) if after else None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise rejected("it was not given out by the change feed") from error
    if version != _VERSION:
        raise rejected(f"it has version {version}")
    if position.is_token != token:
        raise rejected("it is a page token" if position.is_token else "it is a cursor")
    return position


def rejected(why: str) -> ChangeCursorError:
    return ChangeCursorError(f"change cursor rejected: {why}.")


def scope_of(wanted: ChangeFilter) -> str:
    """What a filter selects, in a few characters."""
    value: Mapping[str, Any] = {
        "kinds": sorted(map(str, wanted.kinds)),
        "types": sorted(wanted.types),
        "ops": sorted(map(str, wanted.ops)),
    }
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
