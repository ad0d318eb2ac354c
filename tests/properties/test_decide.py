"""`decide` over every combination that can be seen: all tables go one way, and it stays decided."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.commit.decide import Decision, Outcome, TableStatus, classify, decide
from omnigraph.commit.journal import Sidecar, TableIntent
from omnigraph.model.commit import Commit, CommitKind
from omnigraph.storage.tablehead import LineHead

OURS, NEXT, LAST, THEIRS = "ours", "next", "last", "theirs"
MOVED = {TableStatus.PARTLY, TableStatus.LANDED, TableStatus.BURIED}

# What may be seen of one table, with the status that it must be given.
EXISTING = {
    TableStatus.BELOW: LineHead(2, None),
    TableStatus.UNTOUCHED: LineHead(3, None),
    TableStatus.LANDED: LineHead(4, OURS),
    TableStatus.BURIED: LineHead(5, OURS),
    TableStatus.FENCED: LineHead(4, THEIRS, restored=True),
    TableStatus.FOREIGN: LineHead(4, THEIRS),
}
FRESH = {
    TableStatus.UNTOUCHED: LineHead(0, None),
    TableStatus.LANDED: LineHead(1, OURS),
}
# The same for a table that moves by three steps, which maintenance does.
STEPPED = [
    (TableStatus.UNTOUCHED, LineHead(3, None)),
    (TableStatus.PARTLY, LineHead(4, OURS)),
    (TableStatus.PARTLY, LineHead(5, OURS, then=(NEXT,))),
    (TableStatus.LANDED, LineHead(6, OURS, then=(NEXT, LAST))),
    (TableStatus.BURIED, LineHead(7, OURS, then=(NEXT, LAST))),
    (TableStatus.BURIED, LineHead(5, OURS, then=(THEIRS,))),
    (TableStatus.BURIED, LineHead(6, OURS, then=(NEXT, THEIRS))),
    (TableStatus.FENCED, LineHead(4, THEIRS, restored=True)),
]
Kind = tuple[bool, tuple[str, ...]]  # made for the commit, and the steps after the first
SIGHTS: list[tuple[Kind, TableStatus, LineHead]] = [
    *(((False, ()), *item) for item in EXISTING.items()),
    *(((True, ()), *item) for item in FRESH.items()),
    *(((False, (NEXT, LAST)), *item) for item in STEPPED),
]
# Three tables at once: the steps of a table are judged by themselves, so two sights of them do.
FEWER = [*SIGHTS[:8], SIGHTS[9], SIGHTS[11]]


def intent(index: int, kind: Kind) -> TableIntent:
    fresh, then = kind
    return TableIntent(index, f"nodes/{index}", None, 0 if fresh else 3, OURS, fresh, then)


def sidecar(kinds: tuple[Kind, ...], *, merge: bool, confirmed: bool) -> Sidecar:
    commit = Commit("01A", 2, ("01",), "main", "a", CommitKind.MUTATE, "", 1, "h")
    tables = tuple(intent(index, each) for index, each in enumerate(kinds))
    return Sidecar("01A", "main", "main", (commit,), tables, merge, confirmed)


def everything() -> Iterator[tuple[Sidecar, tuple[LineHead, ...], tuple[TableStatus, ...], bool]]:
    flags = list(itertools.product([False, True], repeat=3))
    for count, chosen in ((1, SIGHTS), (2, SIGHTS), (3, FEWER)):
        for sights in itertools.product(chosen, repeat=count):
            kinds, statuses, heads = zip(*sights, strict=True)
            for merge, confirmed, settled in flags:
                record = sidecar(kinds, merge=merge, confirmed=confirmed)
                yield record, heads, statuses, settled


def test_every_sight_has_its_status() -> None:
    for kind, status, head in SIGHTS:
        assert classify(intent(0, kind), head) is status


# ledger: R02 R03
def test_every_combination_goes_one_way() -> None:
    count = 0
    for record, heads, statuses, settled in everything():
        decision = decide(record, heads, settled)
        assert decision.statuses == statuses
        assert decision.outcome is expected(record, set(statuses), settled)
        count += 1
    assert count == 8 * (16 + 16**2 + 10**3)


def expected(record: Sidecar, seen: set[TableStatus], settled: bool) -> Outcome:
    """The rules, written once more, in the order of the promises."""
    if TableStatus.BELOW in seen:
        return Outcome.STUCK
    if settled:
        return Outcome.FINISHED
    if seen == {TableStatus.LANDED}:
        incomplete_merge = record.needs_confirmation and not record.confirmed
        return Outcome.ROLLED_BACK if incomplete_merge else Outcome.ROLLED_FORWARD
    if not seen & MOVED:
        return Outcome.DISCARDED
    if TableStatus.FOREIGN in seen:
        return Outcome.STUCK
    return Outcome.ROLLED_BACK


# ledger: R04
def test_what_is_put_back_is_what_moved_and_nothing_foreign() -> None:
    for record, heads, statuses, settled in everything():
        decision = decide(record, heads, settled)
        for fence in (False, True):
            restored = {table.table_id for table in decision.restores(record, fence=fence)}
            if decision.outcome not in (Outcome.ROLLED_BACK, Outcome.DISCARDED):
                assert not restored
                continue
            for table, status in zip(record.tables, statuses, strict=True):
                must = status in (*MOVED, TableStatus.FENCED) and not table.fresh
                may = fence and status is TableStatus.UNTOUCHED and not table.fresh
                assert (table.table_id in restored) == (must or may)


def restore_some(
    record: Sidecar, heads: tuple[LineHead, ...], decision: Decision, *, fence: bool, count: int
) -> tuple[LineHead, ...]:
    """What is seen after the first `count` restores of a recovery that then died."""
    done = {table.table_id for table in decision.restores(record, fence=fence)[:count]}
    return tuple(
        restore(table, head) if table.table_id in done else head
        for table, head in zip(record.tables, heads, strict=True)
    )


def restore(table: TableIntent, head: LineHead) -> LineHead:
    if head.version == table.expected:
        return LineHead(head.version + 1, THEIRS, restored=True)
    whole = head.version > table.expected + len(table.then)
    then = head.then if whole else (*head.then, THEIRS)
    return LineHead(head.version + 1, head.transaction, head.restored, then)


@pytest.mark.parametrize("fence", [False, True])
def test_a_recovery_that_died_half_way_is_judged_the_same_again(fence: bool) -> None:
    for record, heads, _, settled in everything():
        decision = decide(record, heads, settled)
        for count in range(len(record.tables) + 1):
            later = restore_some(record, heads, decision, fence=fence, count=count)
            again = decide(record, later, settled)
            assert again.outcome is decision.outcome, (record.tables, heads, later)
            # Whatever was put back once is pinned by the second recovery too.
            first = {t.table_id for t in decision.restores(record, fence=fence)[:count]}
            assert first <= {t.table_id for t in again.restores(record, fence=fence)}


def test_a_paused_writer_that_wakes_up_changes_nothing_that_was_decided() -> None:
    """After a fenced roll-back or discard no table of the operation can land any more: every one
    that the manifest points to has been restored."""
    for record, heads, statuses, settled in everything():
        decision = decide(record, heads, settled)
        if decision.outcome not in (Outcome.ROLLED_BACK, Outcome.DISCARDED):
            continue
        restored = {table.table_id for table in decision.restores(record, fence=True)}
        for table, status in zip(record.tables, statuses, strict=True):
            assert table.fresh or table.table_id in restored or status is TableStatus.FOREIGN


HEADS = st.builds(
    LineHead,
    version=st.integers(0, 8),
    transaction=st.sampled_from([None, OURS, THEIRS]),
    restored=st.booleans(),
    then=st.lists(st.sampled_from([None, NEXT, LAST, THEIRS]), max_size=2).map(tuple),
)
KINDS = st.tuples(st.booleans(), st.sampled_from([(), (NEXT,), (NEXT, LAST)]))


@given(
    seen=st.lists(st.tuples(KINDS, HEADS), min_size=1, max_size=6),
    merge=st.booleans(),
    confirmed=st.booleans(),
    settled=st.booleans(),
)
def test_any_sight_at_all_is_judged_and_touches_nothing_in_doubt(
    seen: list[tuple[Kind, LineHead]], merge: bool, confirmed: bool, settled: bool
) -> None:
    record = sidecar(tuple(kind for kind, _ in seen), merge=merge, confirmed=confirmed)
    decision = decide(record, [head for _, head in seen], settled)
    restored = decision.restores(record, fence=True)
    statuses = dict(zip((t.table_id for t in record.tables), decision.statuses, strict=True))
    assert all(
        statuses[table.table_id] not in (TableStatus.FOREIGN, TableStatus.BELOW)
        for table in restored
    )
    if decision.outcome is Outcome.ROLLED_FORWARD:
        assert set(decision.statuses) == {TableStatus.LANDED}
        assert not settled
        assert confirmed or not merge
