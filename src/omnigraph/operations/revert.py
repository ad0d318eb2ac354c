"""Undoing a commit, and doing one again on another branch.

Both are three-way merges with one commit as the change: a revert goes from the commit back to its
parent, a cherry-pick from the parent to the commit.

Guarantees: one commit, or none when there is nothing to do; later changes of the same entities are
conflicts unless they touch other properties.
Deliberately absent: undoing a change of the schema; apply the schema that is wanted instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.commit.genesis import store_schema
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.ancestry import Bases, Place, head_of, is_first_parent_ancestor
from omnigraph.history.groups import Ids, change_of
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import read_branch
from omnigraph.history.resolve import find_commit
from omnigraph.merges.bases import common_state
from omnigraph.merges.mergeplan import MergePlan, plan_merge
from omnigraph.merges.mergewrites import dropped_tables, fences, stage_plan
from omnigraph.merges.overlays import State
from omnigraph.merges.sides import Sides
from omnigraph.model.commit import Commit, CommitKind, Proposal
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.merge import (
    DEFAULT,
    MergeOptions,
    refuse_conflicts,
    with_resolutions,
)
from omnigraph.operations.requests import CherryPick, Revert
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Attempts, Conditions, LoneRequest

_VERBS = {CommitKind.REVERT: "Revert", CommitKind.CHERRY_PICK: "Cherry-pick"}


@dataclass(frozen=True)
class Change:
    """What to apply: the way from one state to another, and which rows of it count. It begins at
    one commit, or at what several have in common (`merging.bases`)."""

    of: Commit
    start: Bases
    end: Place
    only: Ids | None = None

    def reversed(self) -> Change:
        (start,) = self.start.places
        return Change(self.of, Bases((self.end,)), start, self.only)


@dataclass(frozen=True)
class Applied:
    """What applying a commit's change did. No commit: there was nothing to change."""

    of: Commit
    commit: Commit | None


def revert(context: Context, request: Revert) -> Applied:
    """Undo what a commit of the branch did."""
    commit, branch, options = request.commit, request.branch, request.options or DEFAULT
    change = _change(context, commit, branch)
    head = head_of(BranchLog(context.root, read_branch(context.root, branch).id))
    if not is_first_parent_ancestor(context.root, change.of, head):
        raise InvalidArgumentError(
            f"Commit {change.of.id} is not part of the branch {branch!r}.",
            hint="Name a commit that `omnigraph commit list` shows for the branch.",
        )
    if change.start.newest.commit.schema_hash != change.end.commit.schema_hash:
        raise InvalidArgumentError(
            f"Commit {change.of.id} changed the schema, which a revert cannot undo.",
            hint="Apply the schema that you want with `omnigraph schema apply`.",
        )
    return apply_change(context, branch, change.reversed(), CommitKind.REVERT, options)


def cherry_pick(context: Context, request: CherryPick) -> Applied:
    """Apply the changes of a commit of another branch."""
    commit, branch, options = request.commit, request.branch, request.options or DEFAULT
    change = _change(context, commit, branch)
    return apply_change(context, branch, change, CommitKind.CHERRY_PICK, options)


def apply_change(
    context: Context, branch: str, change: Change, kind: CommitKind, options: MergeOptions
) -> Applied:
    """Merge a change into a branch, as an ordinary commit."""
    own = change.of.message if kind is CommitKind.CHERRY_PICK else ""
    message = options.message or own or f"{_VERBS[kind]} {change.of.id}"
    conditions = Conditions(context.actor, message)
    request = _ApplyRequest(context.root, branch, change, options, kind, conditions)
    return Applied(change.of, write_alone(context.root, branch, request).commit)


@dataclass
class _ApplyRequest(LoneRequest):
    """A revert, a cherry-pick, or one step of a rebase."""

    attempts = Attempts(unlocked=5)

    root: GraphRoot
    branch: str
    change: Change
    options: MergeOptions
    kind: CommitKind
    conditions: Conditions

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Proposal | WriteResult:
        plan = self._plan(line.branch_id, snapshot)
        refuse_conflicts(plan, f"{_VERBS[self.kind]} {self.change.of.id}")
        if is_nothing(plan):
            return WriteResult(None, {})
        catalog = plan.sides.schema.catalog
        if catalog.hash != plan.sides.ours.catalog.hash:
            store_schema(self.root, catalog)
        done = "reverts" if self.kind is CommitKind.REVERT else "picked"
        return Proposal(
            base=plan.sides.ours,
            staged=stage_plan(plan),
            actor=self.conditions.actor,
            kind=self.kind,
            message=self.conditions.message,
            requires=fences(plan),
            schema_hash=catalog.hash,
            dropped=dropped_tables(plan),
            details={done: self.change.of.id},
        )

    def _plan(self, branch_id: str, snapshot: Snapshot) -> MergePlan:
        root, change = self.root, self.change
        sides = Sides.of(
            root,
            common_state(root, change.start, self.branch),
            State(snapshot),
            State(change.end.snapshot(root, self.branch)),
            branch_id,
            may_adopt=False,
            only=change.only,
        )
        return plan_merge(sides, with_resolutions(self.options, sides))


def is_nothing(plan: MergePlan) -> bool:
    """Whether the branch already is what the plan would make of it."""
    same_schema = plan.sides.schema.catalog.hash == plan.sides.ours.catalog.hash
    return same_schema and all(step.is_kept for step in plan.steps.values())


def change_at(root: GraphRoot, place: Place) -> Change:
    """What a commit did."""
    found = change_of(root, place)
    if found.before is None:
        raise InvalidArgumentError("The first commit of a graph has no change to apply.")
    return Change(place.commit, Bases((found.before,)), found.after, found.only)


def _change(context: Context, commit: str, branch: str) -> Change:
    line, found = find_commit(context.root, commit, branch)
    return change_at(context.root, Place(found, line))
