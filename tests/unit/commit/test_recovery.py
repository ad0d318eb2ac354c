"""Recovery: what an interrupted writer left is finished or undone, once, and remembered."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.support.doorgraph import (
    HaltError,
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
    write,
)

from omnigraph import faults
from omnigraph.commit import journal
from omnigraph.commit.branches import delete_branch
from omnigraph.commit.decide import Outcome
from omnigraph.commit.genesis import store_schema
from omnigraph.commit.journal import Sidecar
from omnigraph.commit.recovery import drift_advice, refresh, sweep
from omnigraph.errors import (
    FormatError,
    InvariantViolationError,
    RecoveryRequiredError,
    StorageTransientError,
    StorageUnknownError,
    VersionConflictError,
)
from omnigraph.history.log import filtered
from omnigraph.model.commit import RECOVERY_ACTOR, CommitKind
from omnigraph.storage import auditlog
from omnigraph.storage.locks import writer_lock
from omnigraph.storage.root import GraphRoot

OLD = {"A": {"x": 1}, "B": {"y": 1}}
NEW = {"A": {"x": 2}, "B": {"y": 2}}


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, OLD)
    return root


def interrupt(root: GraphRoot, point: str, nth: int = 1, **more: Any) -> str:
    """Let a write of NEW stop dead at a point; returns the id of its operation."""
    tables = more.pop("tables", NEW)
    with (
        faults.armed(point, faults.Raise(HaltError, nth=nth)),
        pytest.raises(HaltError),
    ):
        write(root, tables, **more)
    names = pending(root)
    return names[0].split("/")[1].removesuffix(".json") if names else ""


def reopen(root: GraphRoot) -> tuple[GraphRoot, list[Outcome]]:
    fresh = GraphRoot.at(root.uri)
    return fresh, sweep(fresh)


def the_audit_row(root: GraphRoot) -> dict[str, object]:
    (row,) = audit_rows(root)
    return row


def lance_heads(root: GraphRoot, snapshot_branch: str = "main") -> dict[int, tuple[int, int]]:
    """Per table: the version that the manifest pins, and Lance's own newest."""
    found = {}
    for table_id, version in head(root, snapshot_branch).tables.items():
        path = version.path if version.fork is None else f"{version.path}/tree/{version.fork}"
        found[table_id] = (version.version, lance.dataset(root.location.lance_uri(path)).version)
    return found


def assert_at_rest(root: GraphRoot, snapshot_branch: str = "main") -> None:
    assert pending(root) == []
    assert all(pin == newest for pin, newest in lance_heads(root, snapshot_branch).values())


# ledger: R01
def test_the_sidecar_says_what_will_happen_before_it_does(root: GraphRoot) -> None:
    operation = interrupt(root, "commit.after_sidecar", actor="act-ben", kind=CommitKind.LOAD)
    record = json.loads(root.objects.get(journal.sidecar_path(operation)).data)
    assert record["version"] == journal.SIDECAR_VERSION
    sidecar = journal.read(root, operation)
    assert sidecar is not None
    assert (sidecar.kind, sidecar.actor, sidecar.id) == ("load", "act-ben", operation)
    assert [(t.expected, t.fresh) for t in sidecar.tables] == [(1, False), (1, False)]
    assert [change.version for change in sidecar.commits[0].changes] == [2, 2]
    assert lance_heads(root) == {1: (1, 1), 3: (1, 1)}


FORWARD = ["commit.before_publish"]
BACK = ["commit.after_table"]
NOTHING = ["commit.after_sidecar", "commit.before_table"]


# ledger: R03 R05
@pytest.mark.parametrize("point", FORWARD)
def test_all_tables_arrived_so_it_is_finished(root: GraphRoot, point: str) -> None:
    operation = interrupt(root, point, actor="act-ben")
    assert rows(root) == OLD
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.ROLLED_FORWARD]
    assert rows(fresh) == NEW
    newest = log_of(fresh)[0]
    assert (newest.id, newest.actor) == (operation, RECOVERY_ACTOR)
    assert newest.details["original_actor"] == "act-ben"
    row = the_audit_row(fresh)
    assert (row["operation_id"], row["kind"], row["actor"]) == (operation, "mutate", "act-ben")
    assert (row["outcome"], row["commit_id"]) == ("rolled_forward", operation)
    assert [table["status"] for table in json.loads(str(row["tables"]))] == ["landed", "landed"]
    assert_at_rest(fresh)


# ledger: R03 R04 R05
@pytest.mark.parametrize("point", BACK)
def test_some_tables_arrived_so_it_is_undone(root: GraphRoot, point: str) -> None:
    operation = interrupt(root, point)
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.ROLLED_BACK]
    assert rows(fresh) == OLD
    newest = log_of(fresh)[0]
    assert (newest.actor, newest.kind) == (RECOVERY_ACTOR, CommitKind.RECOVERY)
    assert newest.details["recovers"] == operation
    row = the_audit_row(fresh)
    assert (row["outcome"], row["commit_id"]) == ("rolled_back", newest.id)
    assert [t["status"] for t in json.loads(str(row["tables"]))] == ["landed", "untouched"]
    assert_at_rest(fresh)
    write(fresh, NEW)
    assert rows(fresh) == NEW


# ledger: R03
@pytest.mark.parametrize("point", NOTHING)
def test_no_table_arrived_so_it_is_discarded(root: GraphRoot, point: str) -> None:
    interrupt(root, point)
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.DISCARDED]
    assert rows(fresh) == OLD
    assert the_audit_row(fresh)["outcome"] == "discarded"
    assert_at_rest(fresh)


# ledger: R03
@pytest.mark.parametrize("point", ["commit.after_publish", "commit.before_disarm"])
def test_a_published_commit_only_loses_its_sidecar(root: GraphRoot, point: str) -> None:
    operation = interrupt(root, point)
    assert rows(root) == NEW
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.FINISHED]
    assert rows(fresh) == NEW
    assert log_of(fresh)[0].id == operation
    assert the_audit_row(fresh)["commit_id"] == operation
    assert_at_rest(fresh)


# ledger: R05
def test_recoveries_are_found_by_their_actor(root: GraphRoot) -> None:
    interrupt(root, "commit.before_publish")
    fresh, _ = reopen(root)
    interrupt(fresh, "commit.after_table")
    fresh, _ = reopen(fresh)
    found = list(filtered(fresh, "main", actor=RECOVERY_ACTOR))
    assert [commit.kind for commit in found] == [CommitKind.RECOVERY, CommitKind.MUTATE]
    assert [row["outcome"] for row in audit_rows(fresh)] == ["rolled_forward", "rolled_back"]


# ledger: R02
@pytest.mark.parametrize(
    ("point", "nth", "outcome"),
    [
        ("commit.after_table", 1, Outcome.ROLLED_BACK),
        ("commit.after_table", 2, Outcome.ROLLED_BACK),
        ("commit.before_confirm", 1, Outcome.ROLLED_BACK),
        ("commit.after_confirm", 1, Outcome.ROLLED_FORWARD),
        ("commit.before_publish", 1, Outcome.ROLLED_FORWARD),
    ],
)
def test_a_merge_goes_forward_only_once_confirmed(
    root: GraphRoot, point: str, nth: int, outcome: Outcome
) -> None:
    interrupt(root, point, nth, kind=CommitKind.MERGE)
    fresh, outcomes = reopen(root)
    assert outcomes == [outcome]
    assert rows(fresh) == (NEW if outcome is Outcome.ROLLED_FORWARD else OLD)
    assert_at_rest(fresh)
    write(fresh, {"A": {"x": 5}})


# ledger: R02
def test_a_sweep_reads_the_sidecar_again_under_the_lock(root: GraphRoot) -> None:
    """The merge confirms, and dies, while the sweep waits for its lock."""
    operation = interrupt(root, "commit.before_confirm", kind=CommitKind.MERGE)
    sidecar = journal.read(root, operation)
    assert sidecar is not None
    outcomes: list[Outcome] = []
    with writer_lock(root.objects, "main", owner="act-ben"):
        sweeper = threading.Thread(target=lambda: outcomes.extend(reopen(root)[1]))
        sweeper.start()
        while not Path(root.uri, "__locks", "writer-main.queue").exists():
            pass
        sweeper.join(0.2)
        root.objects.put(
            journal.sidecar_path(operation), replace(sidecar, confirmed=True).to_bytes()
        )
    sweeper.join()
    assert outcomes == [Outcome.ROLLED_FORWARD]
    assert rows(root) == NEW


def test_a_sweep_leaves_a_live_writer_alone(root: GraphRoot) -> None:
    go = threading.Event()
    with faults.armed("commit.after_table", faults.Pause(go)) as point:
        writer = threading.Thread(target=lambda: write(root, NEW))
        writer.start()
        assert point.reached.wait(30)
        fresh = GraphRoot.at(root.uri)
        assert sweep(fresh, lock_timeout_ms=50) == []
        assert rows(fresh) == OLD
        go.set()
        writer.join()
    assert rows(root) == NEW
    assert audit_rows(root) == []
    assert_at_rest(root)


# ledger: R03
def test_a_head_below_the_pin_is_loud_and_keeps_the_sidecar(root: GraphRoot) -> None:
    write(root, NEW)
    version = head(root).tables[1]
    operation = interrupt(root, "commit.after_sidecar", tables={"A": {"x": 3}})
    newest = f"{version.path}/_versions/{2**64 - 1 - version.version:020d}.manifest"
    saved = root.objects.get(newest).data
    root.objects.delete(newest)
    root.objects.delete(f"{version.path}/_versions/latest_version_hint.json")
    fresh = GraphRoot.at(root.uri)
    with pytest.raises(InvariantViolationError, match="below"):
        sweep(fresh)
    assert pending(fresh) == [journal.sidecar_path(operation)]
    assert audit_rows(fresh) == []
    root.objects.put(newest, saved)
    assert sweep(GraphRoot.at(root.uri)) == [Outcome.DISCARDED]


def test_a_foreign_version_beside_ours_is_loud(root: GraphRoot) -> None:
    interrupt(root, "commit.after_table")
    lance.dataset(root.location.lance_uri(head(root).tables[3].path)).update({"n": "7"})
    with pytest.raises(InvariantViolationError, match="foreign"):
        sweep(GraphRoot.at(root.uri))
    assert len(pending(root)) == 1


# ledger: R06
def test_a_long_lived_handle_rolls_forward_on_its_next_write(root: GraphRoot) -> None:
    old_handle = GraphRoot.at(root.uri)
    assert rows(old_handle) == OLD
    interrupt(root, "commit.before_publish")
    write(old_handle, {"Link": {"l": 9}})
    assert rows(old_handle) == NEW | {"Link": {"l": 9}}
    assert the_audit_row(old_handle)["outcome"] == "rolled_forward"
    assert_at_rest(old_handle)


# ledger: R06
def test_a_write_prepared_before_the_healing_is_prepared_again(root: GraphRoot) -> None:
    interrupt(root, "commit.before_publish")
    with pytest.raises(VersionConflictError) as caught:
        write(root, {"A": {"z": 9}})
    assert caught.value.retryable
    write(root, {"A": {"z": 9}})
    assert rows(root)["A"] == {"x": 2, "z": 9}


# ledger: R06
def test_a_refresh_rolls_forward_and_never_back(root: GraphRoot) -> None:
    refresh(root, "main")
    interrupt(root, "commit.before_publish")
    refresh(root, "main")
    assert rows(root) == NEW
    assert_at_rest(root)
    interrupt(root, "commit.after_table")
    with pytest.raises(RecoveryRequiredError):
        refresh(root, "main")
    assert len(pending(root)) == 1


# ledger: R06
def test_a_long_lived_handle_does_not_roll_back(root: GraphRoot) -> None:
    old_handle = GraphRoot.at(root.uri)
    interrupt(root, "commit.after_table")
    with pytest.raises(RecoveryRequiredError, match="open it read-write") as caught:
        write(old_handle)
    assert caught.value.operation_id
    assert audit_rows(root) == []
    _fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.ROLLED_BACK]
    write(old_handle, NEW)
    assert rows(old_handle) == NEW


# ledger: R06
def test_other_branches_are_not_held_up(root: GraphRoot) -> None:
    branch(root, "f")
    interrupt(root, "commit.after_table")
    write(root, NEW, branch="f")
    assert rows(root, "f") == NEW
    assert len(pending(root)) == 1


def a_schema_apply(root: GraphRoot) -> str:
    larger = catalog_of(3)
    store_schema(root, larger)
    return interrupt(
        root,
        "commit.before_publish",
        kind=CommitKind.SCHEMA,
        schema_hash=larger.hash,
    )


# ledger: R07
def test_a_healed_schema_apply_shows_its_catalog_to_old_handles(root: GraphRoot) -> None:
    old_handle = GraphRoot.at(root.uri)
    before = head(old_handle).catalog
    stale = propose(old_handle, {"Link": {"l": 1}})
    a_schema_apply(root)
    with pytest.raises(Exception, match="schema changed"):
        commit(old_handle, stale)
    after = head(old_handle).catalog
    assert (len(before.nodes), len(after.nodes)) == (2, 3)
    write(old_handle, {"C": {"c": 1}})
    assert rows(old_handle)["C"] == {"c": 1}


# ledger: R08
def test_a_live_schema_apply_is_not_healed_from_under_itself(root: GraphRoot) -> None:
    larger = catalog_of(3)
    store_schema(root, larger)
    go = threading.Event()
    results: list[object] = []

    def apply() -> None:
        done = write(root, NEW, kind=CommitKind.SCHEMA, schema_hash=larger.hash)
        results.append(done)

    with faults.armed("commit.after_table", faults.Pause(go, nth=1)) as point:
        writer = threading.Thread(target=apply)
        writer.start()
        assert point.reached.wait(30)
        other = GraphRoot.at(root.uri)
        proposal = propose(other, {"Link": {"l": 1}})
        with pytest.raises(Exception, match="not free"):
            commit(other, proposal, lock_timeout_ms=50)
        go.set()
        writer.join()
    assert len(results) == 1
    assert audit_rows(root) == []
    assert head(root).catalog == larger


# ledger: R12
def test_a_second_step_after_an_undeleted_sidecar_counts_the_first_as_done(
    root: GraphRoot,
) -> None:
    """Step one is published but its sidecar stays; step two follows; then the graph is opened."""
    with faults.armed("commit.before_disarm", faults.Raise(StorageTransientError, nth=1)):
        first = write(root, NEW, kind=CommitKind.SCHEMA)
    path = pending(root)[0]
    kept = root.objects.get(path).data
    write(root, {"A": {"x": 3}}, kind=CommitKind.SCHEMA)
    write(root, {"A": {"x": 4}}, kind=CommitKind.SCHEMA)
    root.objects.put(path, kept)  # as if its deletion had never arrived
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.FINISHED]
    assert rows(fresh)["A"] == {"x": 4}
    assert the_audit_row(fresh)["commit_id"] == first.id
    assert_at_rest(fresh)


# ledger: R09
@pytest.mark.parametrize("deletion_fails", [False, True])
def test_the_sidecar_of_a_deleted_branch_is_discarded(
    root: GraphRoot, deletion_fails: bool
) -> None:
    branch(root, "f")
    operation = interrupt(root, "commit.after_table", branch="f")
    delete_branch(root, "f", "act-anna")
    fresh = GraphRoot.at(root.uri)
    if deletion_fails:
        with faults.armed("recovery.before_erase", faults.Raise(StorageTransientError)):
            assert sweep(fresh) == [Outcome.BRANCH_GONE]
        assert len(pending(fresh)) == 1
    assert sweep(fresh) == [Outcome.BRANCH_GONE]
    row = the_audit_row(fresh)
    assert (row["operation_id"], row["outcome"], row["branch"]) == (operation, "branch_gone", "f")
    assert pending(fresh) == []
    assert rows(fresh) == OLD
    assert sweep(fresh) == []


# ledger: R10
@pytest.mark.parametrize("content", [b"not json", b"[]", b"{}", b'{"version": 1}', b""])
def test_an_unreadable_sidecar_is_refused_and_kept(root: GraphRoot, content: bytes) -> None:
    path = journal.sidecar_path("01ABC")
    root.objects.put(path, content)
    fresh = GraphRoot.at(root.uri)
    with pytest.raises((InvariantViolationError, FormatError), match="01ABC"):
        sweep(fresh)
    with pytest.raises((InvariantViolationError, FormatError)):
        write(fresh, NEW)
    assert rows(fresh) == OLD
    assert root.objects.get(path).data == content


# ledger: R13
def test_a_sidecar_of_an_unknown_version_is_refused_and_kept(root: GraphRoot) -> None:
    operation = interrupt(root, "commit.before_publish")
    path = journal.sidecar_path(operation)
    record = json.loads(root.objects.get(path).data)
    root.objects.put(path, json.dumps(record | {"version": 2}).encode())
    with pytest.raises(FormatError, match="version 2"):
        sweep(GraphRoot.at(root.uri))
    assert pending(root) == [path]
    assert rows(root) == OLD
    root.objects.put(path, json.dumps(record).encode())
    assert sweep(GraphRoot.at(root.uri)) == [Outcome.ROLLED_FORWARD]


# ledger: R10
@pytest.mark.parametrize("error", [StorageTransientError, StorageUnknownError])
@pytest.mark.parametrize("happened", [True, False])
def test_an_audit_row_that_fails_is_retried_to_exactly_one(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch, error: type[Exception], happened: bool
) -> None:
    interrupt(root, "commit.before_publish")
    append = auditlog.append
    failures: list[int] = []

    def failing(*args: object) -> None:
        if len(failures) < 2:
            failures.append(1)
            if happened:
                append(*args)  # type: ignore[arg-type]
            raise error("The store was busy.")
        append(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(auditlog, "append", failing)
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.ROLLED_FORWARD]
    assert len(audit_rows(fresh)) == 1
    assert_at_rest(fresh)


# ledger: R10
def test_an_audit_that_stays_broken_keeps_the_sidecar(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(root, "commit.after_table")

    def failing(*_: object) -> None:
        raise StorageTransientError("The store was busy.")

    with monkeypatch.context() as patch:
        patch.setattr(auditlog, "append", failing)
        with pytest.raises(StorageTransientError):
            reopen(root)
    assert len(pending(root)) == 1
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.FINISHED]
    assert len(audit_rows(fresh)) == 1
    assert rows(fresh) == OLD
    assert_at_rest(fresh)


def test_branches_recovered_side_by_side_leave_one_row_each(root: GraphRoot) -> None:
    names = ["main", "f", "g"]
    for name in names[1:]:
        branch(root, name)
    for name in names:
        interrupt_on(root, name)
    threads = [threading.Thread(target=lambda: reopen(root)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(str(row["branch"]) for row in audit_rows(root)) == sorted(names)
    for name in names:
        assert rows(root, name) == NEW
        assert_at_rest(root, name)


def interrupt_on(root: GraphRoot, name: str) -> None:
    with faults.armed("commit.before_publish", faults.Raise(HaltError)), pytest.raises(HaltError):
        write(root, NEW, branch=name)


RECOVERY_POINTS = [point for point in faults.POINTS if point.startswith("recovery.")]


# ledger: R14
@pytest.mark.parametrize("again", RECOVERY_POINTS)
@pytest.mark.parametrize("point", ["commit.after_table", "commit.before_publish"])
def test_a_recovery_that_is_interrupted_is_simply_repeated(
    root: GraphRoot, point: str, again: str
) -> None:
    interrupt(root, point)
    with faults.armed(again, faults.Raise(HaltError)) as armed:
        with contextlib.suppress(HaltError):
            reopen(root)
        hits = armed.hits
    fresh, _ = reopen(root)
    assert hits or "restore" in again
    assert rows(fresh) == (NEW if point == "commit.before_publish" else OLD)
    assert len(audit_rows(fresh)) == 1
    assert_at_rest(fresh)
    write(fresh, NEW)
    assert sum(c.actor == RECOVERY_ACTOR for c in log_of(fresh)) == 1


# ledger: R11
def test_drift_that_an_operation_explains_is_for_reopening(root: GraphRoot) -> None:
    interrupt(root, "commit.after_table")
    advice = drift_advice(root, head(root).tables[1].path, "main")
    assert isinstance(advice, RecoveryRequiredError)
    assert "Open the graph read-write" in str(advice)
    assert "repair" not in str(advice)
    other = drift_advice(root, head(root).tables[1].path, "another-branch")
    assert "omnigraph repair" in str(other)


# ledger: R11
def test_drift_of_which_nothing_can_be_known_names_both_remedies(
    root: GraphRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(prefix: str = "") -> object:
        raise StorageTransientError("The listing failed.")

    monkeypatch.setattr(root.objects, "list", failing)
    advice = str(drift_advice(root, "nodes/x", "main"))
    assert "could not be listed" in advice
    assert "omnigraph repair" in advice
    assert "read-write" in advice


def test_a_fork_that_was_reclaimed_does_not_stick(root: GraphRoot) -> None:
    """The fork that a dead writer had made for its branch is gone before recovery runs."""
    branch(root, "f")
    operation = interrupt(root, "commit.after_sidecar", branch="f")
    sidecar = journal.read(root, operation)
    assert sidecar is not None
    assert all(table.fresh for table in sidecar.tables)
    for table in sidecar.tables:
        root.objects.delete_prefix(f"{table.path}/tree/{table.fork}")
    fresh, outcomes = reopen(root)
    assert outcomes == [Outcome.DISCARDED]
    write(fresh, NEW, branch="f")
    assert rows(fresh, "f") == NEW


def test_sidecars_survive_the_way_through_their_text(root: GraphRoot) -> None:
    operation = interrupt(root, "commit.after_sidecar", idempotency_key="k", details={"a": 1})
    sidecar = journal.read(root, operation)
    assert isinstance(sidecar, Sidecar)
    assert journal.decode(sidecar.to_bytes(), "x") == sidecar
