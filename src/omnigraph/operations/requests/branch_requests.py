"""Requests about branches and tags, and those that carry commits from one branch to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.history.refs import MAIN
from omnigraph.history.resolve import Target
from omnigraph.operations.requests.basis import Request

if TYPE_CHECKING:
    from omnigraph.history.branchlist import BranchInfo
    from omnigraph.history.refs import Branch, Tag
    from omnigraph.operations.merge import MergeOptions, MergePreview, MergeResult
    from omnigraph.operations.rebase import Rebased
    from omnigraph.operations.revert import Applied


@dataclass(frozen=True)
class ListBranches(Request["list[BranchInfo]"]):
    pass


@dataclass(frozen=True)
class CreateBranch(Request["Branch"]):
    name: str
    start: Target | None = None


@dataclass(frozen=True)
class DeleteBranch(Request["Branch"]):
    name: str
    with_children: bool = False


@dataclass(frozen=True)
class RenameBranch(Request["Branch"]):
    old: str
    new: str


@dataclass(frozen=True)
class ListTags(Request["list[Tag]"]):
    pass


@dataclass(frozen=True)
class CreateTag(Request["Tag"]):
    name: str
    start: Target | None = None
    message: str = ""


@dataclass(frozen=True)
class DeleteTag(Request["Tag"]):
    name: str


@dataclass(frozen=True)
class Merge(Request["MergeResult"]):
    source: str
    into: str = MAIN
    options: MergeOptions | None = None


@dataclass(frozen=True)
class PreviewMerge(Request["MergePreview"]):
    source: str
    into: str = MAIN
    options: MergeOptions | None = None


@dataclass(frozen=True)
class Revert(Request["Applied"]):
    """Undo what a commit of the branch did."""

    commit: str
    branch: str = MAIN
    options: MergeOptions | None = None


@dataclass(frozen=True)
class CherryPick(Request["Applied"]):
    """Do on the branch what a commit of another branch did there."""

    commit: str
    branch: str = MAIN
    options: MergeOptions | None = None


@dataclass(frozen=True)
class Rebase(Request["Rebased"]):
    """Put the branch's own commits on top of `onto`."""

    branch: str
    onto: str = MAIN
    options: MergeOptions | None = None
