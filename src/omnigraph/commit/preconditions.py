"""Checks under the lock before a proposal is committed.

Guarantees: the checks change nothing; each error contains the expected and the actual state.
Constraints on rows are not checked here, but when the proposal is prepared; here it is checked that
the data that they depend on is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.commit.recovery import drift_advice
from omnigraph.errors import (
    GraphReplacedError,
    InvalidArgumentError,
    PreconditionFailedError,
    ReadSetChangedError,
    VersionConflictError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, Branch, read_branch
from omnigraph.model.commit import HeadIs, Proposal, Signature, StagedWrite, TableUnchanged
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.texts import check_line, check_text, encode_payload
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import owner_of
from omnigraph.storage.tablehead import has_drifted, is_fresh, landed_version


def refuse_repeats(proposal: Proposal) -> None:
    """One staged write per table: a second one would conflict with the first."""
    tables = [staged.table_id for staged in proposal.staged]
    if len(tables) != len(set(tables)):
        raise InvalidArgumentError("A proposal stages at most one write per table.")


def refuse_bad_texts(proposal: Proposal) -> None:
    """Invalid texts could be written into the history and would make it unreadable."""
    signed: tuple[Proposal | Signature, ...] = (proposal, *proposal.also)
    for one in signed:
        check_line(one.actor, "actor of a commit")
        check_text(one.message, "message of a commit")
        if one.idempotency_key is not None:
            check_text(one.idempotency_key, "idempotency key")
        check_text(
            encode_payload(dict(one.details)), "record of the commit's details", most=1 << 20
        )


def refuse_replacement(line: BranchLog, proposal: Proposal) -> None:
    """The graph may have been replaced since the proposal was begun. The staged files then belong
    to the other graph."""
    if line.image.incarnation != proposal.base.incarnation:
        raise GraphReplacedError(
            f"The graph at {line.root.uri} was replaced while the write was prepared."
        )


def refuse_other_graph(line: BranchLog) -> None:
    """The graph may have been replaced since the line was read. Reads its manifest again."""
    if line.root.manifest(line.branch_id).read().incarnation != line.image.incarnation:
        raise GraphReplacedError(
            f"The graph at {line.root.uri} was replaced while the operation was prepared."
        )


def refuse_gone(root: GraphRoot, branch: Branch) -> None:
    """The branch may have been deleted, renamed or replaced while we waited for its lock."""
    if branch.id != MAIN and read_branch(root, branch.name).id != branch.id:
        raise ReadSetChangedError(
            f"The branch {branch.name!r} was deleted and created again during the write."
        )


def refuse_strangers(staged: Sequence[StagedWrite], branch_id: str) -> None:
    """A branch writes only to its own table forks."""
    for write in staged:
        if owner_of(landed_version(write)) != branch_id:
            raise ReadSetChangedError(
                f"The write to {write.path} was prepared for another branch.", table=write.path
            )


def refuse_drift(root: GraphRoot, staged: Sequence[StagedWrite], branch_id: str) -> None:
    """A table whose HEAD is newer than the manifest must be recovered or repaired first."""
    for write in staged:
        if not is_fresh(write) and has_drifted(root, write):
            raise drift_advice(root, write.path, branch_id)


def check_requirements(line: BranchLog, proposal: Proposal) -> None:
    """Raise unless all requirements of the proposal are met."""
    state = line.state
    for requirement in proposal.requires:
        if isinstance(requirement, HeadIs) and state.head.id != requirement.commit_id:
            raise PreconditionFailedError(
                f"The head of the branch is {state.head.id}, not {requirement.commit_id}.",
                expected=requirement.commit_id,
                actual=state.head.id,
            )
    if state.head.schema_hash != proposal.base.catalog.hash:
        raise ReadSetChangedError("The schema changed while the write was prepared.")
    for requirement in proposal.requires:
        if isinstance(requirement, TableUnchanged):
            _check_unchanged(line, proposal, requirement)
    for staged in proposal.staged:
        if staged.base not in proposal.adopted:
            _check_base(line, proposal, staged.table_id, staged.base)
    for version in proposal.adopted:
        # Adopting a version replaces that of the branch, which must therefore be unchanged.
        seen = proposal.base.table(version.table_id)
        _check_base(line, proposal, version.table_id, seen)


def _check_unchanged(line: BranchLog, proposal: Proposal, requirement: TableUnchanged) -> None:
    current = line.state.tables.get(requirement.table_id)
    actual = current.logical if current else None
    if actual != requirement.logical:
        raise ReadSetChangedError(
            f"Another commit changed {_type_name(proposal, requirement.table_id)}, which this "
            "write had read.",
            table=_type_name(proposal, requirement.table_id),
            expected=requirement.logical,
            actual=actual,
        )


def _check_base(
    line: BranchLog, proposal: Proposal, table_id: int, base: TableVersion | None
) -> None:
    current = line.state.tables.get(table_id)
    if current == base:
        return
    name = _type_name(proposal, table_id)
    expected = base.version if base else None
    actual = current.version if current else None
    same_content = bool(current and base and current.logical == base.logical)
    raise VersionConflictError(
        f"{name} is at version {actual}; this write was prepared against {expected}.",
        table=name,
        expected=expected,
        actual=actual,
        maintenance_only=same_content,
    )


def _type_name(proposal: Proposal, table_id: int) -> str:
    table = proposal.base.catalog.table(table_id)
    return table.name if table else f"table {table_id}"
