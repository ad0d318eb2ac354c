"""A graph that is replaced under a live process: restored from a backup, or made anew.

Each way of replacing is met by a handle that had read and cached the old graph. Whatever it reads
afterwards is the new graph, and nothing that it had prepared against the old one is published.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import faults
from omnigraph.commit import branches, door, tags
from omnigraph.errors import GraphReplacedError
from omnigraph.graph import Graph
from omnigraph.history import refs
from omnigraph.storage.objects import open_store
from omnigraph.storage.table import forget_tables, open_table

SCHEMA = "node Person { name: String @key  age: I64? }\nedge Knows: Person -> Person\n"
INSERT = "query add($n: String, $a: I64) { insert Person { name: $n, age: $a } }"
READ = "query all() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"


def add(graph: Graph, name: str, age: int) -> None:
    graph.mutate(INSERT, params={"n": name, "a": age})


def rows(graph: Graph) -> list[tuple[str, int]]:
    return [(row["p.name"], row["p.age"]) for row in graph.query(READ).rows()]


def warm(graph: Graph) -> None:
    """Fill the caches: twice, since some keep a value from the second use on."""
    for _ in range(3):
        rows(graph)
        graph.query('query one() { match { $p: Person { name: "a" } } return { $p.age } }').rows()


def restored_by_copy(shop: Path, backup: Path) -> None:
    os.rename(shop, shop.with_name("broken"))
    og.open(str(backup), read_only=True).copy(str(shop))


def restored_by_cp(shop: Path, backup: Path) -> None:
    os.rename(shop, shop.with_name("broken"))
    shutil.copytree(backup, shop)


def made_anew(shop: Path, backup: Path) -> None:
    shutil.rmtree(shop)
    os.rename(shop.with_name("anew"), shop)


WAYS = [restored_by_copy, restored_by_cp, made_anew]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    add(og.init(str(tmp_path / "anew"), SCHEMA), "a", 1)
    add(og.init(str(tmp_path / "shop"), SCHEMA), "a", 1)
    shutil.copytree(tmp_path / "shop", tmp_path / "backup")
    return tmp_path / "shop"


@pytest.mark.parametrize("later", [0, 1, 2, 3, 70])
@pytest.mark.parametrize("replace", WAYS)
def test_18_07_an_old_handle_reads_the_new_graph(
    shop: Path, replace: Callable[[Path, Path], None], later: int
) -> None:
    """`later` commits of others on the new graph bring its version below, to and beyond the one
    that the old handle has cached."""
    old = og.open(str(shop))
    add(old, "lost", 100)
    add(old, "gone", 100)
    warm(old)
    replace(shop, shop.with_name("backup"))
    other = og.open(str(shop))
    expected = [("a", 1)]
    for number in range(later):
        add(other, f"n{number:02}", number)
        expected.append((f"n{number:02}", number))
    assert rows(old) == expected
    add(old, "z", 26)
    assert rows(old) == [*expected, ("z", 26)]
    assert rows(og.open(str(shop), read_only=True)) == [*expected, ("z", 26)]
    shutil.rmtree(shop.with_name("broken"), ignore_errors=True)
    checked = og.open(str(shop)).verify()
    assert checked.is_clean, checked.findings


@pytest.mark.parametrize("replace", WAYS)
def test_18_07_a_write_prepared_against_the_old_graph_is_refused(
    shop: Path, replace: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = og.open(str(shop))
    add(old, "lost", 100)
    read_branch = refs.read_branch

    def swap_first(*args: object) -> object:
        """Called by the door with a finished proposal, before it takes the lock."""
        monkeypatch.undo()
        replace(shop, shop.with_name("backup"))
        return read_branch(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(door, "read_branch", swap_first)
    with pytest.raises(GraphReplacedError, match="replaced"):
        old.load([{"name": "x", "age": 3}], type="Person", engine="embedded")
    assert rows(old) == [("a", 1)]
    assert og.open(str(shop)).verify().is_clean


@pytest.mark.parametrize("replace", WAYS)
def test_18_07_branches_and_tags_of_the_old_graph_are_not_carried_over(
    shop: Path, replace: Callable[[Path, Path], None]
) -> None:
    old = og.open(str(shop))
    old.create_branch("f")
    add(old.on("f"), "f", 6)
    warm(old.on("f"))
    lost = old.on("f").snapshot().commit_id
    replace(shop, shop.with_name("backup"))
    assert [branch.name for branch in old.branches()] == ["main"]
    with pytest.raises(og.errors.BranchNotFoundError):
        add(old.on("f"), "y", 1)
    with pytest.raises(og.errors.CommitNotFoundError):
        old.create_tag("t", commit=lost)


@pytest.mark.parametrize("replace", WAYS)
@pytest.mark.parametrize("what", ["branch", "tag"])
def test_18_07_nothing_begins_on_a_graph_that_is_gone(
    shop: Path,
    replace: Callable[[Path, Path], None],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The graph is replaced after a branch or tag was prepared, right before it gets its name."""
    old = og.open(str(shop))
    add(old, "lost", 100)
    module: Any = branches if what == "branch" else tags
    check_name = module.check_name

    def swap_first(*args: Any) -> None:
        check_name(*args)
        replace(shop, shop.with_name("backup"))

    monkeypatch.setattr(module, "check_name", swap_first)
    with pytest.raises(GraphReplacedError):
        old.create_branch("f") if what == "branch" else old.create_tag("t")
    now = og.open(str(shop))
    assert [branch.name for branch in now.branches()] == ["main"]
    assert now.tags() == []
    assert rows(now) == [("a", 1)]


WRITER = """
import sys
import omnigraph
graph = omnigraph.open(sys.argv[1])
for name in sys.argv[2:]:
    graph.ingest([{"type": "Person", "data": {"name": name, "age": 7}}])
"""


@pytest.mark.parametrize("replace", WAYS)
def test_18_07_a_table_opened_after_the_swap_is_not_read(
    shop: Path, replace: Callable[[Path, Path], None]
) -> None:
    """A read resolves its tables, then the graph is replaced, and another process brings the same
    table to the same version with other rows. Nothing tells the read but the check at opening."""
    add(og.open(str(shop)), "lost", 100)
    snapshot = og.open(str(shop)).snapshot()
    (version,) = snapshot.tables.values()
    forget_tables()
    replace(shop, shop.with_name("backup"))
    subprocess.run([sys.executable, "-c", WRITER, str(shop), "other"], check=True)
    with pytest.raises(GraphReplacedError):
        open_table(snapshot.location, version)


def test_18_07_a_table_opened_before_a_swap_stays_readable_as_it_was(shop: Path) -> None:
    add(og.open(str(shop)), "lost", 100)
    snapshot = og.open(str(shop)).snapshot()
    (version,) = snapshot.tables.values()
    opened = open_table(snapshot.location, version)
    assert opened.read(["id"]).num_rows == 2
    add(og.open(str(shop)), "later", 1)  # an ordinary commit is no replacement
    forget_tables()
    assert open_table(snapshot.location, version).read(["id"]).num_rows == 2


def test_18_07_a_copy_has_an_incarnation_of_its_own(shop: Path) -> None:
    graph = og.open(str(shop))
    graph.create_branch("f")
    graph.copy(str(shop.with_name("other")))
    copied = og.open(str(shop.with_name("other")))
    stamps = {
        each: {
            root.manifest(branch.id).read().stamp
            for root in [each._context.root]
            for branch in each.branches()
        }
        for each in (graph, copied)
    }
    assert all(len(found) == 1 for found in stamps.values())
    assert stamps[graph] != stamps[copied]
    assert rows(copied) == rows(graph)


def test_18_07_checking_costs_no_request(shop: Path) -> None:
    graph = og.open(str(shop))
    warm(graph)
    root = graph._context.root
    root.objects.reset_counts()
    manifest = root.manifest("main")
    manifest.read()
    before = manifest._dataset.io_stats_snapshot()
    for _ in range(5):
        manifest.read()
    after = manifest._dataset.io_stats_snapshot()
    assert root.objects.counts() == {}
    assert after.read_iops == before.read_iops


@pytest.fixture
def swapping(shop: Path) -> Iterator[threading.Thread]:
    """Restores the graph again and again while others use it."""
    stop = threading.Event()

    def run() -> None:
        for number in range(12):
            fresh = shop.with_name(f"fresh{number}")
            shutil.copytree(shop.with_name("backup"), fresh)
            for attempt in count():  # a writer may make the folder again for its lock
                if stop.is_set():
                    return
                os.rename(shop, shop.with_name(f"broken{number}-{attempt}"))
                with suppress(OSError):
                    os.rename(fresh, shop)
                    break

    thread = threading.Thread(target=run)
    yield thread
    stop.set()
    thread.join()


def test_18_07_writers_meet_replacements(shop: Path, swapping: threading.Thread) -> None:
    """Errors of ours only. A write that a replacement meets between its record and its publish may
    leave a version of a table in the new graph, which nothing names: `repair` discards it. After
    that, the graph is sound and holds what was acknowledged since the last replacement."""
    graph = og.open(str(shop))
    swapping.start()
    number = 0
    while swapping.is_alive():
        number += 1
        try:
            add(graph, f"n{number}", number)
            rows(graph)
        except og.errors.OmniGraphError:
            continue
    graph.recover()  # a write that met a swap half-way waits to be undone
    try:
        add(graph, "last", 1)
    except og.errors.RecoveryRequiredError:
        before = rows(graph)
        graph.repair(confirm=True, discard=True)
        assert rows(graph) == before
        add(graph, "last", 1)
    assert ("last", 1) in rows(graph)
    checked = og.open(str(shop)).verify()
    assert checked.is_clean, checked.findings


def test_18_07_a_write_meets_a_restore_of_the_same_state(shop: Path) -> None:
    """The restored graph equals the one before. Files that were staged are in the old folder."""
    graph = og.open(str(shop))
    warm(graph)
    copied = shop.with_name("same")
    shutil.copytree(shop, copied)
    release = threading.Event()
    caught: list[og.errors.OmniGraphError] = []

    def write() -> None:
        try:
            add(graph, "late", 1)
        except og.errors.OmniGraphError as error:
            caught.append(error)

    with faults.armed("commit.before_lock", faults.Pause(release)) as paused:
        writer = threading.Thread(target=write)
        writer.start()
        assert paused.reached.wait(60)
        os.rename(shop, shop.with_name("broken"))
        os.rename(copied, shop)
        release.set()
        writer.join()
    found = rows(graph)  # the write was refused, or it was prepared again in the new folder
    assert (("late", 1) in found) == (not caught)
    assert og.open(str(shop)).verify().is_clean
    add(graph, "later", 2)
    assert ("later", 2) in rows(graph)


@pytest.mark.s3
def test_18_07_on_s3(s3_root: str) -> None:
    """Deleted object by object, and made anew at the same address."""
    old = og.init(s3_root, SCHEMA)
    add(old, "a", 1)
    add(old, "lost", 100)
    warm(old)
    open_store(s3_root).delete_prefix("")
    new = og.init(s3_root, SCHEMA)
    add(new, "b", 2)
    add(new, "c", 3)
    assert rows(old) == [("b", 2), ("c", 3)]
    add(old, "d", 4)
    assert rows(new) == [("b", 2), ("c", 3), ("d", 4)]
    assert og.open(s3_root).verify().is_clean
