"""Merges one branch into another.

    up to date     the target contains all commits of the source; nothing is done
    fast-forward   the target adopts the commits of the source; no data is copied
    merged         one commit with two parents and the changes of both sides

Guarantees: atomic; with an unresolved conflict nothing is written; a preview never writes. After a
concurrent commit the merge is prepared again, a limited number of times.
Deliberately absent: how tables are combined (`merges`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from omnigraph.commit.genesis import store_schema
from omnigraph.commit.mergerecord import remember
from omnigraph.errors import (
    InvalidArgumentError,
    MergeConflictError,
    OmniGraphError,
)
from omnigraph.history.ancestry import (
    Bases,
    Place,
    head_of,
    is_first_parent_ancestor,
    merge_bases,
    own_chain,
    parent_of,
)
from omnigraph.history.log import BranchLog, walk
from omnigraph.history.mergelog import RECORD, MergedRecord
from omnigraph.history.places import MERGED_BRANCH, MERGED_SEQUENCE
from omnigraph.history.refs import Branch, read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.merges.bases import common_state
from omnigraph.merges.comparers import differ_for, passer_for
from omnigraph.merges.mergeplan import Counts, MergePlan, plan_merge
from omnigraph.merges.mergewrites import (
    adopted_versions,
    dropped_tables,
    fences,
    stage_plan,
)
from omnigraph.merges.overlays import State
from omnigraph.merges.resolutions import conflict_to_dict, read_resolutions
from omnigraph.merges.sides import Sides
from omnigraph.merges.tablemerge import Choices
from omnigraph.model.commit import Commit, CommitKind, FastForward, Offer, Proposal
from omnigraph.model.conflict import MergeConflict, Side
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.texts import check_text
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import DeleteBranch, Merge, PreviewMerge
from omnigraph.operations.verbs import run
from omnigraph.rows.threeway import Granularity
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Attempts, Conditions, LoneRequest

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings

FAIL = "fail"
_LISTED = 100
_Word = TypeVar("_Word", bound=StrEnum)


class Outcome(StrEnum):
    UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True)
class MergeOptions:
    """Options of a merge. `resolutions` is the text of an edited conflicts file; `engine` selects
    where tables are compared, by default depending on their size; `spark` are settings for
    Spark."""

    choices: Choices = field(default_factory=Choices)
    resolutions: str | None = None
    message: str = ""
    delete_source: bool = False
    engine: str | None = None
    spark: SparkSettings | None = None

    def __post_init__(self) -> None:
        check_text(self.message, "message")


@dataclass(frozen=True)
class MergeResult:
    """The result of a merge. `commit` is the head of the target afterwards. The source is deleted
    after the merge; a failure is reported in `delete_error`."""

    outcome: Outcome
    source: str
    target: str
    commit: Commit
    source_deleted: bool = False
    delete_error: str | None = None


@dataclass(frozen=True)
class MergePreview:
    """The preview of a merge. `base_commits` are the merge bases: one, or several that are merged
    first; `base_commit` is the newest of them."""

    outcome: Outcome
    source: str
    target: str
    base_commit: str
    base_commits: tuple[str, ...]
    counts: Mapping[str, Counts]
    conflicts: tuple[MergeConflict, ...]


DEFAULT = MergeOptions()


def options(
    strategy: str | None = None,
    strategies: Mapping[str, str] | None = None,
    granularity: str = Granularity.PROPERTY,
    resolutions: str | None = None,
    message: str = "",
    delete_source: bool = False,
    engine: str | None = None,
    spark: SparkSettings | None = None,
) -> MergeOptions:
    """Options from text; `fail` and None both mean that conflicts raise."""
    choices = Choices(
        granularity=_one_of(Granularity, granularity, "granularity"),
        strategy=_side(strategy),
        strategies={name: _side(side) for name, side in (strategies or {}).items()},
    )
    return MergeOptions(choices, resolutions, message, delete_source, engine, spark)


def _side(text: str | None) -> Side | None:
    return None if text in (None, FAIL) else _one_of(Side, str(text), "strategy")


def _one_of(kind: type[_Word], text: str, what: str) -> _Word:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join([*kind, *([FAIL] if kind is Side else [])])
        raise InvalidArgumentError(
            f"There is no {what} {text!r}.", hint=f"Use one of {known}."
        ) from None


def merge(context: Context, request: Merge) -> MergeResult:
    """Merge `source` into `into`. Raises MergeConflictError for unresolved conflicts."""
    root, source, into = context.root, request.source, request.into
    options = request.options or DEFAULT
    _refuse_itself(source, into)
    conditions = Conditions(context.actor, options.message or f"Merge {source} into {into}")
    write = _MergeRequest(root, source, into, options, conditions)
    done = write_alone(root, into, write)
    meeting = write.meeting
    assert meeting is not None
    result = MergeResult(meeting.outcome, source, into, done.commit or meeting.ours.commit)
    return _delete_source(context, result) if options.delete_source else result


def preview_merge(context: Context, request: PreviewMerge) -> MergePreview:
    """The preview of `merge`, with all conflicts. Writes nothing."""
    root, source, into = context.root, request.source, request.into
    options = request.options or DEFAULT
    _refuse_itself(source, into)
    meeting = _Meeting.of(BranchLog(root, read_branch(root, into).id), source, into)
    bases = tuple(place.commit.id for place in meeting.bases.places)
    if meeting.outcome is Outcome.UP_TO_DATE:
        return MergePreview(meeting.outcome, source, into, bases[0], bases, {}, ())
    plan = _plan(root, meeting, options)
    counts, conflicts = plan.counts(), plan.conflicts
    return MergePreview(meeting.outcome, source, into, bases[0], bases, counts, conflicts)


def refuse_conflicts(plan: MergePlan, what: str) -> None:
    if plan.conflicts:
        count = len(plan.conflicts)
        error = MergeConflictError(
            f"{what} has {count} conflict{'s' if count > 1 else ''}: {plan.conflicts[0].message}",
            hint="Choose a strategy, decide the conflicts in a resolutions file, or change one "
            "of the branches.",
            conflicts=[conflict_to_dict(conflict) for conflict in plan.conflicts[:_LISTED]],
            total=count,
        )
        error.every = plan.conflicts
        raise error


def with_resolutions(options: MergeOptions, sides: Sides) -> Choices:
    """The choices, with those of a resolutions file."""
    _refuse_unknown(options.choices.strategies, sides)
    if options.resolutions is None:
        return options.choices
    read = read_resolutions(options.resolutions, sides.schema.catalog)
    choices = options.choices
    return replace(choices, resolutions={**choices.resolutions, **read})


def _refuse_unknown(strategies: Mapping[str, object], sides: Sides) -> None:
    """Raise for a strategy of an unknown type."""
    catalogs = (sides.schema.catalog, sides.ours.catalog, sides.theirs.catalog)
    known = {table.name for catalog in catalogs for table in catalog.tables()}
    for name in strategies:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else "."
            raise InvalidArgumentError(f"There is no type {name!r}{meant}", type=name)


@dataclass(frozen=True)
class _Meeting:
    """Two branches and their merge bases."""

    target: str
    source: Branch
    ours: Place
    theirs: Place
    bases: Bases
    outcome: Outcome

    @staticmethod
    def of(line: BranchLog, source: str, into: str) -> _Meeting:
        """The target as `line` shows it, and the source as it is now."""
        root = line.root
        other = read_branch(root, source)
        ours, theirs = head_of(line), head_of(BranchLog(root, other.id))
        bases = merge_bases(root, [ours], [theirs])
        if bases.newest.commit.id == theirs.commit.id:
            outcome = Outcome.UP_TO_DATE
        elif is_first_parent_ancestor(root, ours.commit, theirs):
            outcome = Outcome.FAST_FORWARD
        else:
            outcome = Outcome.MERGED
        return _Meeting(into, other, ours, theirs, bases, outcome)


def _refuse_itself(source: str, into: str) -> None:
    if source == into:
        raise InvalidArgumentError("A branch cannot be merged into itself.")


@dataclass
class _MergeRequest(LoneRequest):
    """A merge. `meeting`: where the branches stood when it was last prepared."""

    attempts = Attempts(unlocked=5)
    kind = CommitKind.MERGE

    root: GraphRoot
    source: str
    into: str
    options: MergeOptions
    conditions: Conditions
    meeting: _Meeting | None = None

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Offer | WriteResult:
        meeting = self.meeting = _Meeting.of(line, self.source, self.into)
        if meeting.outcome is Outcome.UP_TO_DATE:
            return WriteResult(None, {})
        if meeting.outcome is Outcome.FAST_FORWARD:
            commits = walk(self.root, meeting.source.id)
            new = takewhile(lambda commit: commit.id != snapshot.commit_id, commits)
            return FastForward(tuple(new)[::-1])
        plan = _plan(self.root, meeting, self.options)
        refuse_conflicts(plan, f"Merging {self.source!r} into {self.into!r}")
        return self._proposal(meeting, plan)

    def _proposal(self, meeting: _Meeting, plan: MergePlan) -> Proposal:
        theirs, catalog = meeting.theirs.commit, plan.sides.schema.catalog
        if catalog.hash != plan.sides.ours.catalog.hash:
            store_schema(self.root, catalog)
        details = {
            "merged_branch": meeting.source.name,
            MERGED_BRANCH: meeting.source.id,
            MERGED_SEQUENCE: theirs.sequence,
            RECORD: remember(self.root, _record(self.root, meeting)),
        }
        return Proposal(
            base=plan.sides.ours,
            staged=stage_plan(plan),
            actor=self.conditions.actor,
            kind=self.kind,
            message=self.conditions.message,
            requires=fences(plan),
            merged_parent=theirs.id,
            schema_hash=catalog.hash,
            dropped=dropped_tables(plan),
            details=details,
            adopted=adopted_versions(plan),
            after_us=theirs.created_at_us,
        )


def _plan(root: GraphRoot, meeting: _Meeting, options: MergeOptions) -> MergePlan:
    into, ours, theirs = meeting.target, meeting.ours.line, meeting.theirs.line
    assert ours is not None
    assert theirs is not None
    differ = differ_for(options.engine, options.spark)
    sides = Sides.of(
        root,
        common_state(root, meeting.bases, into, differ),
        State(head_snapshot(root, into, ours)),
        State(head_snapshot(root, meeting.source.name, theirs)),
        ours.branch_id,
        may_adopt=True,
        differ=differ,
        passer=passer_for(options.engine, options.spark),
    )
    return plan_merge(sides, with_resolutions(options, sides))


def _record(root: GraphRoot, meeting: _Meeting) -> MergedRecord:
    """The commits of the source that the target lacks, along first parents."""
    chain = own_chain(root, meeting.theirs, meeting.ours)
    below = parent_of(root, chain[0])
    assert below is not None
    assert below.line is not None
    return MergedRecord(
        meeting.source.id,
        below.line.branch_id,
        below.commit.sequence,
        below.tables(),
        tuple(place.commit for place in chain),
    )


def _delete_source(context: Context, result: MergeResult) -> MergeResult:
    try:
        run(context, DeleteBranch(result.source))
    except OmniGraphError as error:
        return replace(result, delete_error=error.message)
    return replace(result, source_deleted=True)
