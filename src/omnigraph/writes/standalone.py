"""Preparing one request that makes a proposal of its own, as a merge or a schema change does.

Guarantees: the same conditions and the same outcome of a used key as for requests of rows.
Deliberately absent: what such requests stage (`operations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.errors import OmniGraphError
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import Commit, Offer, Proposal, TableUnchanged
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.writes.conditions import check_conditions
from omnigraph.writes.request import LoneRequest, Ticket, result_of


@dataclass(frozen=True)
class _Lone:
    """A request over one snapshot; `settled` is its outcome if there is nothing to publish."""

    ticket: Ticket
    offer: Offer | None = None
    settled: WriteResult | Exception | None = None

    @property
    def involved(self) -> list[Ticket]:
        return [self.ticket]

    def settle(self, commits: Sequence[Commit]) -> None:
        if self.settled is not None:
            self.ticket.finish(self.settled)
        else:
            # Of a fast-forward, the last commit is the new head.
            self.ticket.finish(result_of(commits[-1]))


def prepare_alone(line: BranchLog, snapshot: Snapshot, ticket: Ticket) -> _Lone:
    """Let a request prepare what it wants published. Its errors are those of the attempt."""
    request = ticket.request
    assert isinstance(request, LoneRequest)
    try:
        earlier = check_conditions(line, snapshot, ticket)
    except OmniGraphError as error:
        return _Lone(ticket, settled=error)
    if earlier is not None:
        return _Lone(ticket, settled=earlier)
    found = request.prepare(line, snapshot)
    if isinstance(found, WriteResult):
        return _Lone(ticket, settled=found)
    if isinstance(found, Proposal):
        _note_seen(ticket, snapshot, found)
    return _Lone(ticket, found)


def _note_seen(ticket: Ticket, snapshot: Snapshot, proposal: Proposal) -> None:
    """Remember the tables that the proposal rests on, for the next attempt."""
    read = {each.table_id for each in proposal.requires if isinstance(each, TableUnchanged)}
    for table_id in read.union(staged.table_id for staged in proposal.staged):
        ticket.seen.setdefault(table_id, snapshot.table(table_id))
