"""Verbs that write, killed at every fault point that it passes, at its first and last pass.

Which points a verb passes is found out by watching it once. Where a table has moved or all have,
the recovery is itself killed at each of its points; in `make test` for a few verbs.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.crash.cases import Graph, run_case
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL
from tests.crash.verbs import VERBS

from omnigraph import faults

pytestmark = pytest.mark.crash

TWICE = ("commit.before_publish", "commit.before_confirm")
OFTEN = ("verb mutate: update", "verb ingest on a branch", "verb optimize")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp()


def points_of(nursery: Nursery, folder: Path, verb: str) -> dict[str, int]:
    uri = str(folder / uuid4().hex)
    nursery.run("prepare", verb, uri).result()
    passed: dict[str, int] = nursery.run("watch", verb, uri).result()
    assert passed, "it passes no fault point at all"
    return passed


def once(nursery: Nursery, folder: Path, verb: str, point: str, nth: int) -> None:
    graph = Graph(nursery, verb, folder)
    graph.kill(point, nth)
    nursery.run("reopen", graph.uri).result()
    graph.check_recovered()
    graph.remove()


# ledger: R14
@pytest.mark.slow
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_killed_verb_leaves_nothing_half_done(nursery: Nursery, folder: Path, verb: str) -> None:
    for point, count in points_of(nursery, folder, verb).items():
        for nth in {1, count}:
            twice = point in TWICE or (point == "commit.after_table" and nth == 1)
            if twice and (FULL or verb in OFTEN):
                run_case(nursery, folder, verb, point, nth)
            else:
                once(nursery, folder, verb, point, nth)


# ledger: R14
@pytest.mark.parametrize("verb", ["verb mutate: delete", "verb ingest: overwrite"])
def test_a_verb_or_two(nursery: Nursery, folder: Path, verb: str) -> None:
    once(nursery, folder, verb, "commit.after_table", 1)


@pytest.mark.slow
def test_every_fault_point_is_passed_by_some_scene(nursery: Nursery, folder: Path) -> None:
    from tests.crash.test_matrix import PASSED

    passed = {point for points in PASSED.values() for point in points}
    for verb in VERBS:
        passed |= set(points_of(nursery, folder, verb))
    # Recovery and migration have tests of their own, which interrupt them everywhere.
    apart = ("recovery.", "upgrade.")
    missing = {p for p in faults.POINTS if not p.startswith(apart)} - passed
    assert missing == set()
