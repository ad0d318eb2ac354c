"""Schema changes and maintenance, killed at every fault point they pass, recovered and repeated.

Each time: readers see the graph as it was or as it will be, never anything between; opening it
read-write leaves nothing pending; making the change again gives what an uninterrupted one gives.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from tests.crash.nursery import Nursery
from tests.crash.scenes import counted
from tests.crash.schemascenes import MAINTENANCE, maintain, untidy_graph
from tests.crash.sizes import FULL
from tests.support.schemachanges import CHANGES, apply, content, new_graph

import omnigraph
from omnigraph.operations.lifecycle import open_graph
from omnigraph.operations.relocate import bring_home

pytestmark = pytest.mark.crash

# The change of all kinds at once, at the instants that matter most; the rest is slow.
QUICK = ("commit.after_table", "commit.before_publish")


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp()


@cache
def template(folder: Path) -> Path:
    """A graph to begin with."""
    place = folder / f"template-{uuid4().hex}"
    new_graph(str(place))
    return place


def copied(source: Path, folder: Path) -> str:
    place = folder / uuid4().hex
    shutil.copytree(source, place)
    bring_home(open_graph(str(place)))
    return str(place)


def watch(name: str, uri: str) -> tuple[dict[str, int], dict]:
    """The points that a change passes, and what it leads to."""
    with counted() as passed:
        graph = apply(uri, name)
    return {p: n for p, n in passed.items() if not p.startswith("recovery.")}, content(graph)


def check_change(
    nursery: Nursery, folder: Path, name: str, points: Collection[str] | None = None
) -> None:
    source = template(folder)
    before = content(omnigraph.open(str(source), read_only=True))
    passed, after = watch(name, copied(source, folder))
    assert "commit.after_publish" in passed
    for point, count in passed.items():
        if points is not None and point not in points:
            continue
        for nth in range(1, count + 1):
            uri = copied(source, folder)
            ending = nursery.run("evolve", name, uri, faults=f"{point}=kill@{nth}")
            assert ending.killed, f"{point} was not reached: {ending}"
            seen = content(omnigraph.open(uri, read_only=True))
            assert seen in (before, after), f"half of the change is visible at {point}"
            graph = omnigraph.open(uri)
            assert graph.recoveries().pending == ()
            assert content(graph) in (before, after)
            graph = apply(uri, name)  # idempotent: finished, or made now
            assert content(graph) == after, point
            assert graph.verify().findings == [], point
            shutil.rmtree(uri)


# ledger: T02 R04 R14
def test_a_change_of_all_kinds(nursery: Nursery, folder: Path) -> None:
    check_change(nursery, folder, "several at once", QUICK)


# ledger: T02 R04 R14
@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_at_every_point(nursery: Nursery, folder: Path, name: str) -> None:
    check_change(nursery, folder, name)


# ledger: I04 I05 I06 R14 R15
@pytest.mark.slow
@pytest.mark.parametrize("name", MAINTENANCE)
def test_maintenance(nursery: Nursery, folder: Path, name: str) -> None:
    source = folder / uuid4().hex
    graph = untidy_graph(str(source), drift=name == "repair")
    before, side = content(graph), content(graph.on("side"))
    trial = omnigraph.open(copied(source, folder))
    with counted() as passed:
        maintain(trial, name)
    assert content(trial) == before
    for point, count in passed.items():
        # Tables are kept up one after the other: in `make test` the first and the last will do.
        for nth in range(1, count + 1) if FULL else sorted({1, count}):
            uri = copied(source, folder)
            ending = nursery.run("keep_up", name, uri, faults=f"{point}=kill@{nth}")
            assert ending.killed, f"{point} was not reached: {ending}"
            opened = omnigraph.open(uri)
            assert opened.recoveries().pending == ()
            assert content(opened) == before
            maintain(opened, name)
            assert content(opened) == before
            assert content(opened.on("side")) == side
            assert opened.verify().findings == [], point
            if name == "optimize":
                assert opened.optimize().is_empty
            opened.ingest([{"type": "City", "data": {"id": "after", "title": "x"}}])
            shutil.rmtree(uri)
