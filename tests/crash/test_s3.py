"""The same on a real S3 server: leases that are taken over, writers that wake up too late.

Lease takeover is by time, so every recovery of a killed writer waits for one (short) lease.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.cases import Graph, run_case
from tests.crash.nursery import Nursery, call, open_nursery
from tests.crash.scenes import NEW, OLD
from tests.crash.sizes import FULL
from tests.support.doorgraph import audit_rows, branch, log_of, new_graph, pending, rows, write
from tests.support.s3 import S3Server

from omnigraph.commit.decide import Outcome
from omnigraph.commit.recovery import sweep
from omnigraph.storage.root import GraphRoot

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TTL = {"OMNIGRAPH_LEASE_TTL_MS": "700"}


@pytest.fixture(scope="module")
def nursery(s3_server: S3Server) -> Iterator[Nursery]:
    with open_nursery(**s3_server.environ(), **TTL) as nursery:
        yield nursery


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TTL.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp()


KILLS = [
    ("three tables", "commit.after_lock", 1),
    ("three tables", "commit.after_sidecar", 1),
    ("three tables", "commit.after_table", 1),
    ("three tables", "commit.after_table", 3),
    ("three tables", "commit.after_publish", 1),
    ("three tables", "commit.after_disarm", 1),
    ("first rows", "commit.after_table", 2),
    ("first write on a branch", "commit.after_fork", 2),
    ("first write on a branch", "commit.before_publish", 1),
    ("later write on a branch", "commit.after_table", 2),
    ("merge", "commit.before_confirm", 1),
    ("merge", "commit.after_confirm", 1),
    ("keyed", "commit.before_publish", 1),
    ("no table", "commit.after_publish", 1),
    ("init", "init.before_manifest", 1),
    ("init", "init.after_manifest", 1),
    ("branch create", "branch.after_manifest_fork", 1),
    ("branch delete", "branch.after_ref_delete", 1),
    ("branch rename", "branch.after_rename_mark", 1),
    ("branch rename", "branch.after_rename_create", 1),
]

TWICE = [("one table", "commit.before_publish"), ("later write on a branch", "commit.after_table")]


# ledger: R14 C17
@pytest.mark.parametrize(("scene", "point", "nth"), KILLS)
def test_killed_writers_are_recovered(
    nursery: Nursery, s3_root: str, folder: Path, scene: str, point: str, nth: int
) -> None:
    graph = Graph(nursery, scene, folder, s3_root)
    graph.kill(point, nth)
    nursery.run("reopen", graph.uri).result()
    graph.check_recovered()


# ledger: R14
@pytest.mark.parametrize(("scene", "point"), TWICE if FULL else TWICE[:1])
def test_killed_recoveries_are_recovered(
    nursery: Nursery, s3_root: str, folder: Path, scene: str, point: str
) -> None:
    run_case(nursery, folder, scene, point, 1, s3_root)


# ledger: C17
def test_a_writer_takes_over_from_a_killed_one(nursery: Nursery, s3_root: str) -> None:
    root = new_graph(s3_root)
    write(root, OLD)
    begun = time.monotonic()  # before the dead could take its lease
    dead = nursery.run("act", "three tables", s3_root, faults="commit.before_publish=kill")
    assert dead.killed
    write(root, {})
    waited = time.monotonic() - begun
    assert waited >= 0.7, "the lease of the dead was not respected"
    assert rows(root) == NEW
    assert [row["outcome"] for row in audit_rows(root)] == ["rolled_forward"]
    assert pending(root) == []


PAUSES = [
    ("three tables", "commit.before_table", 1, Outcome.DISCARDED),
    ("three tables", "commit.before_table", 2, Outcome.ROLLED_BACK),
    ("three tables", "commit.before_table", 3, Outcome.ROLLED_BACK),
    ("three tables", "commit.before_publish", 1, Outcome.ROLLED_FORWARD),
    ("first rows", "commit.before_table", 2, Outcome.ROLLED_BACK),
    ("merge", "commit.before_confirm", 1, Outcome.ROLLED_BACK),
    ("merge", "commit.after_confirm", 1, Outcome.ROLLED_FORWARD),
]


# ledger: C17
@pytest.mark.parametrize(("scene", "point", "nth", "outcome"), PAUSES)
def test_a_writer_that_wakes_up_too_late_harms_nothing(
    nursery: Nursery,
    s3_root: str,
    folder: Path,
    tmp_path: Path,
    scene: str,
    point: str,
    nth: int,
    outcome: Outcome,
) -> None:
    """The writer is stopped past its last check of the lock; recovery takes it for dead; then it
    goes on where it was."""
    graph = Graph(nursery, scene, folder, s3_root)
    go = tmp_path / "go"
    faults = f"{point}=pause:{go}@{nth}"
    sleeper = nursery.start("act", graph.scene, graph.uri, faults=faults)
    wait_for(tmp_path / "go.reached", nursery, sleeper)
    os.kill(sleeper, signal.SIGSTOP)
    root = GraphRoot.at(graph.uri)
    assert sweep(root) == [outcome]
    graph.seen, graph.interrupted = graph.before, 1
    state = rows(root)
    os.kill(sleeper, signal.SIGCONT)
    go.touch()
    ending = nursery.bury(sleeper)
    assert not ending.signal, f"ended by signal {ending.signal}"
    assert rows(GraphRoot.at(graph.uri)) == state
    if outcome is Outcome.ROLLED_FORWARD:
        assert not ending.error or "CommitOutcomeUnknownError" in ending.error
    else:
        assert ending.error, "it was told that its commit stands"
    nursery.run("reopen", graph.uri).result()
    graph.check_recovered()


def wait_for(path: Path, nursery: Nursery, sleeper: int) -> None:
    """Until the writer has come there; one that ended before will never."""
    while not path.exists():
        state = Path(f"/proc/{sleeper}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z" and not path.exists():
            raise AssertionError(f"the writer ended before: {nursery.bury(sleeper)}")
        time.sleep(0.01)


# ledger: C17
def test_increments_add_up(nursery: Nursery, s3_root: str) -> None:
    root = new_graph(s3_root)
    write(root, {"A": {"x": 0}, "B": {"y": 0}})
    for ending in nursery.run_all([call("increment", s3_root, 6)] * 4):
        ending.result()
    assert rows(GraphRoot.at(s3_root))["A"] == {"x": 24}
    assert len(log_of(root)) == 26
    assert pending(root) == []


# ledger: C17
def test_branches_never_conflict(nursery: Nursery, s3_root: str) -> None:
    root = new_graph(s3_root)
    names = ["main", "f", "f/g", "h"]
    write(root, {"A": {"x": 0}, "B": {"y": 0}})
    for name in names[1:]:
        branch(root, name)
    for ending in nursery.run_all([call("write_often", s3_root, name, 5) for name in names]):
        ending.result()
    assert all(rows(root, name)["B"] == {"y": 4} for name in names)


# ledger: B01
def test_of_several_creators_of_one_name_one_wins(nursery: Nursery, s3_root: str) -> None:
    new_graph(s3_root)
    endings = nursery.run_all([call("create_branch", s3_root, "f")] * 4)
    assert sum(ending.result() is not None for ending in endings) == 1


# ledger: C01 C02
def test_readers_see_whole_commits_only(nursery: Nursery, s3_root: str) -> None:
    write(new_graph(s3_root), {"A": {"x": 0}, "B": {"y": 0}})
    calls = [call("write_often", s3_root, "main", 15), call("read_often", s3_root, 14)]
    for ending in nursery.run_all(calls):
        ending.result()
