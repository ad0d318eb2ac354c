"""Requests that follow what commits changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.history.refs import MAIN
from omnigraph.model.change import EVERYTHING, ChangeFilter
from omnigraph.operations.requests.basis import Request

if TYPE_CHECKING:
    from omnigraph.history.ancestry import Place
    from omnigraph.history.images import TableDiff
    from omnigraph.model.change import Change
    from omnigraph.model.feed import Block, FeedPage
    from omnigraph.operations.changes import Baseline


PAGE_CHANGES = 1000


@dataclass(frozen=True)
class ReadCommitChanges(Request["Iterator[Change]"]):
    """What a commit changed relative to its first parent."""

    commit: str
    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING


@dataclass(frozen=True)
class ReadCommitChangesPage(Request["FeedPage"]):
    commit: str
    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING
    page_token: str | None = None
    limit: int = PAGE_CHANGES


@dataclass(frozen=True)
class PollChanges(Request["FeedPage"]):
    """One page of a branch's changes, from a start, a cursor or a page token on."""

    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING
    start: str = "now"
    cursor: str | None = None
    page_token: str | None = None
    limit: int = PAGE_CHANGES


@dataclass(frozen=True)
class FollowChanges(Request["Iterator[tuple[Block, str]]"]):
    """Whole blocks up to the branch's head, each with the cursor after it."""

    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING
    start: str = "now"
    cursor: str | None = None


@dataclass(frozen=True)
class CaptureBaseline(Request["Baseline"]):
    """The newest state and the cursor that belongs to it."""

    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING


@dataclass(frozen=True)
class StreamBaseline(Request["Iterator[dict[str, Any]]"]):
    """The newest state as records; the last one holds the cursor."""

    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING


@dataclass(frozen=True)
class InstallBaseline(Request["Baseline"]):
    """The newest state as a file."""

    path: Path
    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING


@dataclass(frozen=True)
class FindOffset(Request["int"]):
    """The sequence number of a place in a branch's history: `beginning`, `now` or a commit."""

    start: str
    branch: str = MAIN


@dataclass(frozen=True)
class ReadTableChanges(Request["Iterator[tuple[Place, Iterator[TableDiff]]]"]):
    """The changes of the commits from `first` to `last`, by commit and table."""

    first: int
    last: int
    branch: str = MAIN


@dataclass(frozen=True)
class ReadTypeChanges(Request["Iterator[tuple[Place, Iterator[Change]]]"]):
    """The changes of the commits from `first` to `last`, by commit and entity."""

    first: int
    last: int
    branch: str = MAIN
    filter: ChangeFilter = EVERYTHING
