"""The door: what it lets through, what it refuses, and what it says when the store fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.doorgraph import (
    ACTOR,
    audit_rows,
    branch,
    catalog_of,
    commit,
    head,
    log_of,
    new_graph,
    pending,
    propose,
    rows,
    stage,
    write,
)

from omnigraph import faults
from omnigraph.commit import journal
from omnigraph.commit.genesis import store_schema
from omnigraph.commit.publish import PUBLISH_ATTEMPTS
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    InvalidArgumentError,
    InvariantViolationError,
    LockTimeoutError,
    PreconditionFailedError,
    ReadSetChangedError,
    RecoveryRequiredError,
    StorageTransientError,
    StorageUnknownError,
    VersionConflictError,
)
from omnigraph.history.log import BranchLog
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.commit import CommitKind, HeadIs, Proposal, StagedWrite, TableUnchanged
from omnigraph.model.snapshot import Snapshot
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.manifest import ManifestFile
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.stagedwrites import Stager
from omnigraph.storage.table import open_table

A, B, LINK = 1, 3, 5


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    return new_graph(str(tmp_path / "g"))


# ledger: C01
def test_many_tables_become_visible_in_one_publish(root: GraphRoot) -> None:
    before = BranchLog(root, "main").image.version
    done = write(root, {"A": {"x": 1}, "B": {"y": 2}, "Link": {"l": 3}})
    assert BranchLog(root, "main").image.version == before + 1
    assert rows(root) == {"A": {"x": 1}, "B": {"y": 2}, "Link": {"l": 3}}
    assert {change.table_id for change in done.changes} == {A, B, LINK}
    assert pending(root) == []


# ledger: C01
def test_nothing_is_seen_before_the_publish(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    seen = []
    original = ManifestFile.publish

    def watched(self: ManifestFile, *args: Any) -> Any:
        seen.append(rows(GraphRoot.at(root.uri)))
        return original(self, *args)

    proposal = propose(root, {"A": {"x": 2}, "B": {"y": 2}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestFile, "publish", watched)
        commit(root, proposal)
    assert seen == [{"A": {"x": 1}, "B": {"y": 1}}]
    assert rows(root) == {"A": {"x": 2}, "B": {"y": 2}}


# ledger: C02
def test_a_snapshot_stays_what_it_was(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})
    pinned = head(root)
    for n in range(3):
        write(root, {"A": {"x": n, f"x{n}": n}, "B": {"y": n}})
    assert rows(root, pinned) == {"A": {"x": 1}}
    assert rows(GraphRoot.at(root.uri), pinned) == {"A": {"x": 1}}


# ledger: C10
def test_of_two_writers_on_one_table_the_second_is_told_the_versions(root: GraphRoot) -> None:
    write(root, {"A": {"x": 0}})
    base = head(root)
    first, second = (propose(root, {"A": {"x": n}}, base=base) for n in (1, 2))
    commit(root, first)
    with pytest.raises(VersionConflictError) as caught:
        commit(GraphRoot.at(root.uri), second)
    error = caught.value
    assert (error.table, error.expected, error.actual) == ("A", 1, 2)
    assert error.retryable
    assert error.details["maintenance_only"] is False
    assert rows(root) == {"A": {"x": 1}}
    assert pending(root) == []


# ledger: C10
def test_writers_on_different_tables_both_win(root: GraphRoot) -> None:
    write(root, {"A": {"x": 0}, "B": {"y": 0}})
    base = head(root)
    first, second = (
        propose(root, {"A": {"x": 1}}, base=base),
        propose(root, {"B": {"y": 1}}, base=base),
    )
    commit(root, first)
    commit(root, second)
    assert rows(root) == {"A": {"x": 1}, "B": {"y": 1}}


def test_two_births_of_one_table_make_one(root: GraphRoot) -> None:
    base = head(root)
    first, second = (propose(root, {"A": {"x": n}}, base=base) for n in (1, 2))
    commit(root, first)
    with pytest.raises(VersionConflictError) as caught:
        commit(root, second)
    assert (caught.value.expected, caught.value.actual) == (None, 1)


# ledger: C10
def test_publisher_contention_is_retried_a_bounded_number_of_times(root: GraphRoot) -> None:
    attempts = 0
    original = ManifestFile.publish

    def overtaken(self: ManifestFile, *args: Any) -> Any:
        """Somebody who ignores the lock publishes in between, each time."""
        nonlocal attempts
        attempts += 1
        line = BranchLog(GraphRoot.at(root.uri), "main")
        original(ManifestFile(root.location, "main"), line.image, line.image.tail)
        return original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestFile, "publish", overtaken)
        with pytest.raises(ConflictError, match="5 times in a row"):
            write(root)
    assert attempts == PUBLISH_ATTEMPTS == 5
    assert len(log_of(root)) == 1
    patched_once: list[int] = []

    def overtaken_once(self: ManifestFile, *args: Any) -> Any:
        if not patched_once:
            patched_once.append(1)
            return overtaken(self, *args)
        return original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestFile, "publish", overtaken_once)
        write(root, {"A": {"x": 1}})
    assert rows(root) == {"A": {"x": 1}}
    assert pending(root) == []


# ledger: C11
def test_a_commit_says_who_when_where_and_after_what(root: GraphRoot) -> None:
    branch(root, "f")
    other = write(root, {"B": {"y": 1}}, branch="f")
    first = head(root).commit_id
    done = write(
        root,
        {"A": {"x": 1}},
        actor="act-ben",
        message="why",
        kind=CommitKind.MERGE,
        merged_parent=other.id,
        details={"note": [1, "two"]},
    )
    found = log_of(GraphRoot.at(root.uri))[0]
    assert found == done
    assert (found.actor, found.branch, found.message, found.kind) == (
        "act-ben",
        "main",
        "why",
        CommitKind.MERGE,
    )
    assert found.parents == (first, other.id)
    assert found.details == {"note": [1, "two"]}
    assert found.changes == (head(root).tables[A],)


# ledger: C11
def test_time_never_runs_backwards_along_a_branch(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 10**18)
    for n in range(3):
        write(root, {"A": {"x": n}})
    branch(root, "f")
    write(root, {"A": {"x": 9}}, branch="f")
    assert len(log_of(root, "f")) == 5  # checks the times


# ledger: C16
def test_a_write_may_depend_on_the_head(root: GraphRoot) -> None:
    first = write(root, {"A": {"x": 1}})
    with pytest.raises(PreconditionFailedError) as caught:
        write(root, {"B": {"y": 1}}, requires=(HeadIs("01NOTTHIS"),))
    assert (caught.value.expected, caught.value.actual) == ("01NOTTHIS", first.id)
    write(root, {"B": {"y": 1}}, requires=(HeadIs(first.id),))
    with pytest.raises(PreconditionFailedError):
        write(root, {}, requires=(HeadIs(first.id),))


# ledger: C16
def test_a_repeated_key_returns_the_first_outcome(root: GraphRoot) -> None:
    first = write(root, {"A": {"x": 1}}, idempotency_key="k1")
    again = write(root, {"A": {"x": 2}}, idempotency_key="k1")
    assert again == first
    assert rows(root) == {"A": {"x": 1}}
    # Also when the branch has moved on, and although its condition no longer holds.
    write(root, {"A": {"x": 3}}, idempotency_key="k2")
    again = write(
        GraphRoot.at(root.uri), {"A": {"x": 2}}, idempotency_key="k1", requires=(HeadIs("gone"),)
    )
    assert again == first
    assert len(log_of(root)) == 3


# ledger: C16
def test_a_key_is_remembered_however_old(root: GraphRoot) -> None:
    first = write(root, {"A": {"x": 1}}, idempotency_key="k1")
    base = head(root)
    for _ in range(200):
        write(root, base=base)
    assert write(root, {"A": {"x": 2}}, idempotency_key="k1") == first


# ledger: C16
def test_a_key_belongs_to_its_branch(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}}, idempotency_key="k")
    branch(root, "f")
    write(root, {"A": {"x": 2}}, branch="f", idempotency_key="k")
    assert rows(root, "f") == {"A": {"x": 2}}
    assert rows(root) == {"A": {"x": 1}}


# ledger: C16
@pytest.mark.parametrize("key", ["", "k" * 2000])
def test_a_senseless_key_is_refused(root: GraphRoot, key: str) -> None:
    with pytest.raises(InvalidArgumentError):
        write(root, idempotency_key=key)


def test_a_damaged_record_of_a_key_is_loud(root: GraphRoot) -> None:
    write(root, idempotency_key="k")
    (path,) = root.objects.list("__keys")
    for content in (b"", b"{}", b"[]", b'{"commit_id": "x", "sequence": "y"}'):
        root.objects.put(path, content)
        with pytest.raises(InvariantViolationError, match="'k' cannot be read"):
            write(root, idempotency_key="k")
    write(root, idempotency_key="other")


# ledger: C14
def test_what_was_read_is_fenced(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    base = head(root)
    read = TableUnchanged(A, base.tables[A].logical)
    absent = TableUnchanged(LINK, None)
    proposal = propose(root, {"B": {"y": 2}}, base=base, requires=(read, absent))
    write(root, {"A": {"x": 2}})
    with pytest.raises(ReadSetChangedError, match="changed A, which this write had read"):
        commit(root, proposal)
    base = head(root)
    read = TableUnchanged(A, base.tables[A].logical)
    proposal = propose(root, {"B": {"y": 2}}, base=base, requires=(read, absent))
    write(root, {"Link": {"l": 1}})
    with pytest.raises(ReadSetChangedError, match="Link"):
        commit(root, proposal)
    assert rows(root)["B"] == {"y": 1}


# ledger: C15
def test_maintenance_of_what_was_read_does_not_matter(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    base = head(root)
    read = TableUnchanged(A, base.tables[A].logical)
    proposal = propose(root, {"B": {"y": 2}}, base=base, requires=(read,))
    rewritten = propose(root, {"A": {"x": 2}}, base=base)
    staged = a_rewrite_of_the_same_rows(root, base)
    commit(root, replace(rewritten, staged=(staged,), kind=CommitKind.MAINTENANCE))
    moved = head(root).tables[A]
    assert (moved.version, moved.logical) == (2, 1)
    commit(root, proposal)
    with pytest.raises(VersionConflictError) as caught:
        commit(root, rewritten)
    assert caught.value.details["maintenance_only"] is True


def a_rewrite_of_the_same_rows(root: GraphRoot, base: Snapshot) -> StagedWrite:
    return replace(stage(root, base, "A", {"x": 1}), logical=False)


def test_a_schema_that_changed_meanwhile_is_a_conflict(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})
    base = head(root)
    stale = propose(root, {"A": {"x": 2}}, base=base)
    larger = catalog_of(3)
    store_schema(root, larger)
    done = write(root, schema_hash=larger.hash, kind=CommitKind.SCHEMA)
    assert done.schema_hash == larger.hash
    assert head(root).catalog == larger
    assert resolve(root, Target(version=2)).catalog == base.catalog
    with pytest.raises(ReadSetChangedError, match="schema"):
        commit(root, stale)


def test_dropped_tables_leave_the_graph_and_stay_in_its_past(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    write(root, dropped=(A,), kind=CommitKind.SCHEMA)
    assert rows(root) == {"B": {"y": 1}}
    assert rows(root, resolve(root, Target(version=2)))["A"] == {"x": 1}


def test_a_table_is_staged_once(root: GraphRoot) -> None:
    base = head(root)
    twice = (stage(root, base, "A", {"x": 1}), stage(root, base, "A", {"x": 2}))
    with pytest.raises(InvalidArgumentError, match="at most one write per table"):
        commit(root, Proposal(base, twice, ACTOR, CommitKind.MUTATE))


def test_waiting_for_the_lock_is_bounded_and_names_the_holder(root: GraphRoot) -> None:
    proposal = propose(root, {"A": {"x": 1}})
    with (
        writer_lock(root.objects, "main", owner="act-ben", operation="load"),
        pytest.raises(LockTimeoutError, match="act-ben"),
    ):
        commit(root, proposal, lock_timeout_ms=50)
    assert rows(root) == {}


# What the store does wrong


# ledger: R10
def test_when_the_sidecar_cannot_be_written_nothing_has_moved(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})
    failing = faults.Raise(StorageTransientError)
    with faults.armed("commit.before_sidecar", failing), pytest.raises(StorageTransientError):
        write(root, {"A": {"x": 2}})
    assert heads(root) == [1]
    write(root, {"A": {"x": 3}})
    assert heads(root) == [2]
    assert audit_rows(root) == []


# ledger: R10
def test_when_the_sidecar_cannot_be_deleted_the_write_still_succeeds(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})
    with faults.armed("commit.before_disarm", faults.Raise(StorageTransientError)):
        done = write(root, {"A": {"x": 2}})
    assert head(root).commit_id == done.id
    assert len(pending(root)) == 1
    write(root, {"A": {"x": 3}})
    assert pending(root) == []
    assert rows(root) == {"A": {"x": 3}}
    assert [(row["operation_id"], row["outcome"]) for row in audit_rows(root)] == [
        (done.id, "finished")
    ]


# ledger: R10
def test_when_sidecars_cannot_be_listed_no_write_goes_through(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = propose(root, {"A": {"x": 1}})
    original = root.objects.list

    def failing(prefix: str = "") -> object:
        if prefix == journal.DIRECTORY:
            raise StorageTransientError("The listing failed.")
        return original(prefix)

    monkeypatch.setattr(root.objects, "list", failing)
    with pytest.raises(StorageTransientError, match="listing"):
        commit(root, proposal)
    assert rows(root) == {}


# ledger: R15
def test_a_failure_before_anything_moved_takes_its_sidecar_back(root: GraphRoot) -> None:
    for tables in ({"A": {"x": 1}}, {"A": {"x": 2}, "B": {"y": 2}}):
        failing = faults.Raise(StorageTransientError)
        with faults.armed("commit.before_table", failing), pytest.raises(StorageTransientError):
            write(root, tables)
        assert pending(root) == []
        write(root, tables)
    assert len(log_of(root)) == 3
    assert audit_rows(root) == []


# ledger: R15
def test_a_failure_half_way_says_that_it_will_be_rolled_back(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    failing = faults.Raise(StorageTransientError)
    with (
        faults.armed("commit.after_table", failing),
        pytest.raises(RecoveryRequiredError, match="none of its changes is visible"),
    ):
        write(root, {"A": {"x": 2}, "B": {"y": 2}})
    assert rows(root) == {"A": {"x": 1}, "B": {"y": 1}}
    assert len(pending(root)) == 1


def test_a_publish_that_fails_is_an_unknown_outcome_until_the_next_write(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})
    failing = faults.Raise(StorageTransientError)
    with (
        faults.armed("commit.before_publish", failing),
        pytest.raises(CommitOutcomeUnknownError) as caught,
    ):
        write(root, {"A": {"x": 2}}, idempotency_key="k")
    assert rows(root) == {"A": {"x": 1}}
    # The caller repeats the request under the same key: the first one counts, once.
    again = write(root, {"A": {"x": 2}}, idempotency_key="k")
    assert again.id == caught.value.commit_id
    assert rows(root) == {"A": {"x": 2}}
    assert len(log_of(root)) == 3


def test_a_key_whose_commit_never_came_to_be_is_free(root: GraphRoot) -> None:
    failing = faults.Raise(StorageTransientError)
    with faults.armed("commit.before_sidecar", failing), pytest.raises(StorageTransientError):
        write(root, {"A": {"x": 1}}, idempotency_key="k")
    write(root, {"A": {"x": 2}}, idempotency_key="k")
    assert rows(root) == {"A": {"x": 2}}


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("tables", [{}, {"A": {"x": 2}}])
def test_a_lost_answer_of_the_publish_is_looked_up(
    root: GraphRoot, happened: bool, tables: dict[str, dict[str, int]]
) -> None:
    write(root, {"A": {"x": 1}})
    original = ManifestFile.publish
    failures = 0

    def losing(self: ManifestFile, *args: Any) -> Any:
        nonlocal failures
        if failures:
            return original(self, *args)
        failures += 1
        if happened:
            original(self, *args)
        raise StorageUnknownError("The connection broke.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestFile, "publish", losing)
        done = write(root, tables)
    assert head(root).commit_id == done.id
    assert len(log_of(root)) == 3
    assert pending(root) == []


def test_a_store_that_stays_silent_leaves_the_outcome_unknown(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}})

    def silent(self: ManifestFile, *args: Any) -> Any:
        raise StorageUnknownError("The connection broke.")

    for tables in ({}, {"A": {"x": 2}}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ManifestFile, "publish", silent)
            with pytest.raises(CommitOutcomeUnknownError):
                write(root, tables)
    assert rows(root) == {"A": {"x": 1}}
    write(root)
    assert rows(root) == {"A": {"x": 2}}


def test_a_manifest_that_cannot_be_read_after_a_publish_leaves_the_outcome_unknown(
    root: GraphRoot,
) -> None:
    proposal = propose(root)
    original, broken = ManifestFile.publish, []

    def losing(self: ManifestFile, *args: Any) -> Any:
        original(self, *args)
        broken.append(1)
        raise StorageTransientError("The connection broke.")

    def unreadable(self: ManifestFile) -> object:
        if broken:
            raise StorageTransientError("The connection broke.")
        return read(self)

    read = ManifestFile.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ManifestFile, "publish", losing)
        patch.setattr(ManifestFile, "read", unreadable)
        with pytest.raises(CommitOutcomeUnknownError) as caught:
            commit(root, proposal)
    assert head(root).commit_id == caught.value.commit_id


# ledger: R11
def test_drift_that_no_operation_explains_is_for_repair(root: GraphRoot) -> None:
    write(root, {"A": {"x": 1}, "B": {"y": 1}})
    drift(root, "A")
    with pytest.raises(RecoveryRequiredError, match="omnigraph repair"):
        write(root, {"A": {"x": 2}})
    write(root, {"B": {"y": 2}})
    assert rows(root) == {"A": {"x": 1}, "B": {"y": 2}}
    assert pending(root) == []


def drift(root: GraphRoot, name: str) -> None:
    """What somebody does to a table behind our back."""
    import lance

    version = head(root).tables[A]
    dataset = lance.dataset(root.location.lance_uri(version.path))
    dataset.update({"n": "99"})


def heads(root: GraphRoot) -> list[int]:
    import lance

    versions = head(root).tables.values()
    return [lance.dataset(root.location.lance_uri(v.path)).version for v in versions]


# ledger: S06
def test_blobs_survive_rewriting(root: GraphRoot) -> None:
    from omnigraph.model.catalog import Catalog, NodeType, Property
    from omnigraph.model.schema_ir import with_hash
    from omnigraph.model.types import Kind, ValueType

    number = Property(3, "n", ValueType(Kind.I64, nullable=True), "n")
    blob = Property(2, "b", ValueType(Kind.BLOB, nullable=True), "b")
    table = NodeType(1, "A", (blob, number))
    catalog = with_hash(Catalog(nodes=(table,), next_id=4))
    store_schema(root, catalog)
    write(root, schema_hash=catalog.hash, kind=CommitKind.SCHEMA)
    base = head(root)
    blobs = pa.array([None, b"", b"abc", b"old"], pa.large_binary())
    data = pa.table({"id": ["a", "b", "c", "d"], "b": blobs, "n": [1, 2, 3, 4]})
    stager = Stager(root, "main")
    commit(root, Proposal(base, (stager.create(table, data),), ACTOR, CommitKind.LOAD))
    base = head(root)
    changed = pa.table({"id": ["d"], "b": pa.array([b"new"], pa.large_binary()), "n": [9]})
    staged = stager.upsert(table, base.tables[1], changed)
    commit(root, Proposal(base, (staged,), ACTOR, CommitKind.MUTATE))
    opened = open_table(root.location, head(root).tables[1])
    assert opened.dataset.has_stable_row_ids
    assert opened.read(["id", "n"]).sort_by("id").to_pydict()["n"] == [1, 2, 3, 9]
    kept = opened.lookup(["a", "b", "c", "d"], ["id", "b"]).sort_by("id").column("b").to_pylist()
    assert [each is None for each in kept] == [True, False, False, False]
    found = opened.lookup(["b", "c", "d"], ["id"]).sort_by("id").column("_rowid").to_pylist()
    read = [each.readall() for each in opened.dataset.take_blobs("b", ids=found)]
    assert read == [b"", b"abc", b"new"]
