"""The crash matrix: every kind of writer, killed at every fault point, and again in recovery.

For every scene and every point that it passes, at every pass: the writer is killed there with
SIGKILL. Then the graph is opened read-write, which recovers it; and, on graphs that went the same
way, that recovery is itself killed at every point that it passes, and the graph opened again
(`make crash`; in `make test` for every fifth case).

Each time: what was acknowledged is there; what is there is there wholly; each interrupted
operation has exactly one audit row; no recovery record is left; tables stand where the manifest
says; history is unbroken; and the graph can be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.crash.anytime import kill_somewhere
from tests.crash.cases import Graph, run_case
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL
from tests.support.doorgraph import log_of, new_graph, pending, rows, write

from omnigraph.commit.recovery import sweep
from omnigraph.storage.root import GraphRoot

pytestmark = pytest.mark.crash

# Which points each scene passes, and how often. A test below holds this list against reality.
COMMIT = {
    "commit.before_lock": 1,
    "commit.after_lock": 1,
    "commit.before_sidecar": 1,
    "commit.after_sidecar": 1,
    "commit.before_table": 3,
    "commit.after_table": 3,
    "commit.before_publish": 1,
    "commit.after_publish": 1,
    "commit.before_disarm": 1,
    "commit.after_disarm": 1,
}
CONFIRM = {"commit.before_confirm": 1, "commit.after_confirm": 1}
TWO_TABLES = {"commit.before_table": 2, "commit.after_table": 2}
PASSED: dict[str, dict[str, int]] = {
    "one table": COMMIT | {"commit.before_table": 1, "commit.after_table": 1},
    "three tables": COMMIT,
    "first rows": COMMIT,
    "rows and first rows": COMMIT,
    "first write on a branch": COMMIT | {"commit.before_fork": 3, "commit.after_fork": 3},
    "later write on a branch": COMMIT | {"commit.before_fork": 2, "commit.after_fork": 2},
    "merge": COMMIT | CONFIRM,
    "schema": COMMIT,
    "no table": {
        "commit.before_lock": 1,
        "commit.after_lock": 1,
        "commit.before_publish": 1,
        "commit.after_publish": 1,
    },
    "keyed": COMMIT,
    "init": {"init.before_manifest": 1, "init.after_manifest": 1},
    "branch create": {
        "branch.before_create": 1,
        "branch.after_manifest_fork": 1,
        "branch.after_create": 1,
    },
    "branch delete": {
        "branch.before_delete": 1,
        "branch.after_ref_delete": 1,
        "branch.after_delete": 1,
    },
    "branch rename": {
        "branch.before_rename": 1,
        "branch.after_rename_mark": 1,
        "branch.after_rename_create": 1,
        "branch.after_rename": 1,
    },
    "tag": {},
    "merge of two sides": COMMIT | CONFIRM | TWO_TABLES,
    "deed merge that writes tables anew": COMMIT
    | CONFIRM
    | {"stage.after_detached": 1, "commit.between_steps": 1},
    "fast-forward": {
        "commit.before_lock": 1,
        "commit.after_lock": 1,
        "commit.before_publish": 1,
        "commit.after_publish": 1,
    },
    "revert": COMMIT | TWO_TABLES,
    "cherry-pick": COMMIT,
    "rebase": COMMIT
    | {
        "commit.before_fork": 3,
        "commit.after_fork": 3,
        "branch.before_create": 1,
        "branch.after_manifest_fork": 1,
        "branch.after_create": 1,
        "branch.before_replace": 1,
        "branch.after_replace": 1,
    },
}
CASES = [
    (scene, point, nth)
    for scene, points in PASSED.items()
    for point, count in points.items()
    for nth in range(1, count + 1)
]
# Its graph takes long to make. `make test` crosses its durable steps in the sweep, and here only
# instants at which one of its tables has landed and another has not.
LENGTHY = "deed merge that writes tables anew"
LANDING = ("commit.after_table", "commit.between_steps")
QUICK = [
    ("three tables", "commit.after_table", 2),
    ("three tables", "commit.before_publish", 1),
    ("first write on a branch", "commit.after_table", 1),
    ("merge of two sides", "commit.after_confirm", 1),
    ("rebase", "branch.before_replace", 1),
    ("branch rename", "branch.after_rename_create", 1),
    ("init", "init.before_manifest", 1),
]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp()


# ledger: R14
@pytest.mark.parametrize(("scene", "point", "nth"), QUICK)
def test_some_of_the_matrix(
    nursery: Nursery, folder: Path, scene: str, point: str, nth: int
) -> None:
    run_case(nursery, folder, scene, point, nth)


# ledger: R14 C17
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scene", "point", "nth"),
    [c for c in CASES if c not in QUICK and (FULL or c[0] != LENGTHY or c[1] in LANDING)],
)
def test_the_rest_of_the_matrix(
    nursery: Nursery, folder: Path, scene: str, point: str, nth: int
) -> None:
    again = FULL or CASES.index((scene, point, nth)) % 5 == 0
    run_case(nursery, folder, scene, point, nth, again=again)


# ledger: R06 R14
@pytest.mark.slow
@pytest.mark.parametrize("scene", ["one table", "three tables", "first rows", "merge", "keyed"])
@pytest.mark.parametrize("point", ["commit.after_sidecar", "commit.before_publish"])
def test_a_writer_that_heals_may_be_killed_at_it(
    nursery: Nursery, folder: Path, scene: str, point: str
) -> None:
    """The next writer finishes what was left, and is killed at each of its own steps."""
    for again in ("publish", "audit", "erase"):
        for when in ("before", "after"):
            graph = Graph(nursery, scene, folder)
            graph.kill(point, 1)
            ending = nursery.run("write_again", graph.uri, faults=f"recovery.{when}_{again}=kill@1")
            assert ending.killed
            nursery.run("reopen", graph.uri).result()
            graph.check_recovered()


@pytest.mark.parametrize("scene", list(PASSED))
def test_the_matrix_knows_every_point_that_a_scene_passes(
    nursery: Nursery, folder: Path, scene: str
) -> None:
    uri = str(folder / uuid4().hex)
    nursery.run("prepare", scene, uri).result()
    assert nursery.run("watch", scene, uri).result() == PASSED[scene]


# ledger: C01 R15
@pytest.mark.slow
def test_kills_at_no_particular_instant(nursery: Nursery, folder: Path, tmp_path: Path) -> None:
    """Killed from outside, wherever it happens to be: also inside of Lance."""
    uri = str(folder / uuid4().hex)
    write(new_graph(uri), {"A": {"x": -1}, "B": {"y": -1}})
    for round_number in range(40):
        acknowledged = kill_somewhere(nursery, uri, tmp_path / f"said{round_number}", round_number)
        root = GraphRoot.at(uri)
        sweep(root)
        shown: Any = rows(root)
        assert shown["A"]["x"] == shown["B"]["y"]
        assert shown["A"]["x"] >= acknowledged
        assert pending(root) == []
        log_of(root)
        write(root, {"A": {"x": -1}, "B": {"y": -1}})
