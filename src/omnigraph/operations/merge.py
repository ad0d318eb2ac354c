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

from omnigraph.commit.door import commit as publish
from omnigraph.commit.fastforward import fast_forward
from omnigraph.commit.genesis import store_schema
from omnigraph.commit.mergerecord import remember
from omnigraph.errors import (
    ConflictError,
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
from omnigraph.model.commit import Commit, CommitKind, Proposal
from omnigraph.model.conflict import MergeConflict, Side
from omnigraph.model.texts import check_text
from omnigraph.operations.context import Context
from omnigraph.operations.requests import DeleteBranch, Merge, PreviewMerge
from omnigraph.operations.verbs import run
from omnigraph.rows.threeway import Granularity

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings

ATTEMPTS = 5
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
    source, into, options = request.source, request.into, request.options or DEFAULT
    for attempt in range(1, ATTEMPTS + 1):
        meeting = _Meeting.of(context, source, into)
        try:
            commit = _merge_once(context, meeting, options)
        except ConflictError as error:
            if not error.retryable or attempt == ATTEMPTS:
                raise
            continue
        result = MergeResult(meeting.outcome, source, into, commit)
        return _delete_source(context, result) if options.delete_source else result
    raise AssertionError("unreachable")


def preview_merge(context: Context, request: PreviewMerge) -> MergePreview:
    """The preview of `merge`, with all conflicts. Writes nothing."""
    source, into, options = request.source, request.into, request.options or DEFAULT
    meeting = _Meeting.of(context, source, into)
    bases = tuple(place.commit.id for place in meeting.bases.places)
    if meeting.outcome is Outcome.UP_TO_DATE:
        return MergePreview(meeting.outcome, source, into, bases[0], bases, {}, ())
    plan = _plan(context, meeting, options)
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

    target: Branch
    source: Branch
    ours: Place
    theirs: Place
    bases: Bases
    outcome: Outcome

    @staticmethod
    def of(context: Context, source: str, into: str) -> _Meeting:
        root = context.root
        if source == into:
            raise InvalidArgumentError("A branch cannot be merged into itself.")
        target, other = read_branch(root, into), read_branch(root, source)
        ours, theirs = head_of(BranchLog(root, target.id)), head_of(BranchLog(root, other.id))
        bases = merge_bases(root, [ours], [theirs])
        if bases.newest.commit.id == theirs.commit.id:
            outcome = Outcome.UP_TO_DATE
        elif is_first_parent_ancestor(root, ours.commit, theirs):
            outcome = Outcome.FAST_FORWARD
        else:
            outcome = Outcome.MERGED
        return _Meeting(target, other, ours, theirs, bases, outcome)


def _merge_once(context: Context, meeting: _Meeting, options: MergeOptions) -> Commit:
    if meeting.outcome is Outcome.UP_TO_DATE:
        return meeting.ours.commit
    if meeting.outcome is Outcome.FAST_FORWARD:
        head = meeting.ours.commit.id
        commits = walk(context.root, meeting.source.id)
        new = list(takewhile(lambda commit: commit.id != head, commits))
        return fast_forward(context.root, meeting.target.name, new[::-1], context.actor)
    plan = _plan(context, meeting, options)
    refuse_conflicts(plan, f"Merging {meeting.source.name!r} into {meeting.target.name!r}")
    return _publish(context, meeting, plan, options.message)


def _plan(context: Context, meeting: _Meeting, options: MergeOptions) -> MergePlan:
    root, into = context.root, meeting.target.name
    assert meeting.ours.line is not None
    assert meeting.theirs.line is not None
    differ = differ_for(options.engine, options.spark)
    sides = Sides.of(
        root,
        common_state(root, meeting.bases, into, differ),
        State(head_snapshot(root, into, meeting.ours.line)),
        State(head_snapshot(root, meeting.source.name, meeting.theirs.line)),
        meeting.target.id,
        may_adopt=True,
        differ=differ,
        passer=passer_for(options.engine, options.spark),
    )
    return plan_merge(sides, with_resolutions(options, sides))


def _publish(context: Context, meeting: _Meeting, plan: MergePlan, message: str) -> Commit:
    root, theirs = context.root, meeting.theirs.commit
    catalog = plan.sides.schema.catalog
    if catalog.hash != plan.sides.ours.catalog.hash:
        store_schema(root, catalog)
    details = {
        "merged_branch": meeting.source.name,
        MERGED_BRANCH: meeting.source.id,
        MERGED_SEQUENCE: theirs.sequence,
        RECORD: remember(root, _record(context, meeting)),
    }
    proposal = Proposal(
        base=plan.sides.ours,
        staged=stage_plan(plan),
        actor=context.actor,
        kind=CommitKind.MERGE,
        message=message or f"Merge {meeting.source.name} into {meeting.target.name}",
        requires=fences(plan),
        merged_parent=theirs.id,
        schema_hash=catalog.hash,
        dropped=dropped_tables(plan),
        details=details,
        adopted=adopted_versions(plan),
        after_us=theirs.created_at_us,
    )
    return publish(root, proposal)


def _record(context: Context, meeting: _Meeting) -> MergedRecord:
    """The commits of the source that the target lacks, along first parents."""
    root, source = context.root, meeting.source
    chain = own_chain(root, meeting.theirs, meeting.ours)
    below = parent_of(root, chain[0])
    assert below is not None
    assert below.line is not None
    return MergedRecord(
        source.id,
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
