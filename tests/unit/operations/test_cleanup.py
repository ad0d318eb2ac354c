"""Cleanup: what a policy gives up, what it must never touch, and what is left on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support import doorgraph
from tests.support.doorgraph import write as commit_rows
from tests.support.schemachanges import content, new_graph

import omnigraph
from omnigraph import faults
from omnigraph.commit.retention import Policy
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    DeniedError,
    HistoryReclaimedError,
    InvalidArgumentError,
    StorageTransientError,
)
from omnigraph.graph import Graph
from omnigraph.model.principal import Principal
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.cleanup import purge
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CleanUp
from omnigraph.operations.verbs import run
from omnigraph.storage.distributed import SCRATCH
from omnigraph.storage.reclamation import table_paths
from omnigraph.storage.root import GraphRoot

NOW = timedelta(0)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


def add_city(graph: Graph, id: str) -> str:
    graph.ingest([{"type": "City", "data": {"id": id, "title": id}}])
    return graph.snapshot().commit_id


def clean(graph: Graph, keep: int = 1):
    return graph.cleanup(keep=keep, grace=NOW, confirm=True)


def files_below(place: str) -> int:
    return sum(1 for path in Path(place).rglob("*") if path.is_file())


def size_of(place: str) -> int:
    return sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())


# ledger: I06
def test_it_needs_a_policy_and_a_confirmation(graph: Graph) -> None:
    for n in range(4):
        add_city(graph, f"n{n}")
    with pytest.raises(InvalidArgumentError, match="needs a policy"):
        graph.cleanup(confirm=True)
    with pytest.raises(InvalidArgumentError):
        graph.cleanup(keep=0)
    with pytest.raises(DeniedError):
        omnigraph.open(graph.uri, read_only=True).cleanup(keep=1, confirm=True)
    before = files_below(graph.uri)
    seen = graph.cleanup(keep=1, grace=NOW)
    assert not seen.executed
    assert seen.versions > 0
    assert files_below(graph.uri) == before
    done = clean(graph)
    assert (done.executed, done.versions) == (True, seen.versions)
    assert clean(graph).versions == 0
    assert graph.verify().findings == []


# ledger: I06
def test_the_newest_commits_stay_readable(graph: Graph) -> None:
    commits = [add_city(graph, f"n{n}") for n in range(6)]
    shown = [content(graph, commit=commit) for commit in commits]
    clean(graph, keep=3)
    for commit, was in list(zip(commits, shown, strict=True))[-3:]:
        assert content(graph, commit=commit) == was
    for commit in commits[:-3]:
        with pytest.raises(HistoryReclaimedError):
            content(graph, commit=commit)
    # The log itself stays whole.
    assert {commit.id for commit in graph.commits()} >= set(commits)


# ledger: I06
def test_by_age_a_state_stays_while_it_was_the_head_within_that_time(graph: Graph) -> None:
    first = add_city(graph, "a")
    second = add_city(graph, "b")
    time.sleep(1.2)
    third = add_city(graph, "c")
    graph.cleanup(older_than=timedelta(seconds=1), grace=NOW, confirm=True)
    content(graph, commit=third)
    content(graph, commit=second)  # was the head until a moment ago
    with pytest.raises(HistoryReclaimedError):
        content(graph, commit=first)


def test_with_both_rules_either_keeps(graph: Graph) -> None:
    commits = [add_city(graph, f"n{n}") for n in range(4)]
    graph.cleanup(keep=1, older_than=timedelta(days=1), grace=NOW, confirm=True)
    assert [content(graph, commit=commit) for commit in commits]


def test_what_readers_may_still_read_stays(graph: Graph) -> None:
    snapshot = graph.snapshot()
    add_city(graph, "a")
    graph.cleanup(keep=1, confirm=True)  # with an hour of grace
    assert content(graph, commit=snapshot.commit_id)


# ledger: I06
def test_tags_branches_and_their_merges_are_safe(graph: Graph) -> None:
    add_city(graph, "tagged")
    graph.create_tag("v1")
    tagged = content(graph)
    add_city(graph, "base")
    branch = graph.create_branch("b")
    for n in range(3):
        add_city(graph, f"main {n}")
        add_city(branch, f"branch {n}")
    main, side = content(graph), content(branch)
    clean(graph)
    assert content(graph, tag="v1") == tagged
    assert (content(graph), content(branch)) == (main, side)
    graph.merge("b")  # compares both with where they parted
    assert {row["id"] for row in content(graph)["City"]} >= {"main 2", "branch 2", "base"}
    clean(graph)
    assert graph.verify().findings == []


# ledger: I06
def test_what_a_pending_recovery_needs_stays(graph: Graph) -> None:
    add_city(graph, "a")
    handle = omnigraph.open(graph.uri)
    lost = faults.Raise(StorageTransientError("lost"))
    with (
        faults.armed("commit.before_publish", lost),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        add_city(graph, "b")
    clean(handle)
    opened = omnigraph.open(graph.uri)
    assert {"a", "b"} <= {row["id"] for row in content(opened)["City"]}
    assert opened.verify().findings == []


# ledger: I06 B01
def test_what_deleted_branches_leave_is_reclaimed(graph: Graph) -> None:
    child = graph.create_branch("b")
    add_city(child, "b")
    grandchild = child.create_branch("b2")
    add_city(grandchild, "b2")
    side = content(grandchild)
    graph.delete_branch("b", with_children=True)
    clean(graph)
    assert content(grandchild) == side  # it grew out of the fork of the branch that is gone
    assert graph.verify().findings == []
    graph.delete_branch("b2")
    done = clean(graph)
    assert len(done.manifests) == 2
    assert sum(len(table.forks) for table in done.tables) == 2
    assert not [p for p in Path(graph.uri).rglob("tree/*") if any(p.iterdir())]
    assert clean(graph).to_dict()["tables"] == []
    add_city(graph.create_branch("b"), "again")  # the name is free
    assert graph.verify().findings == []


def test_tables_of_dropped_types_go_when_nobody_shows_them(graph: Graph) -> None:
    from tests.support.schemachanges import CHANGES

    graph.apply_schema(CHANGES["drop a type"].schema)
    paths = set(Path(graph.uri).glob("nodes/*"))
    clean(graph)
    assert len(paths - set(Path(graph.uri).glob("nodes/*"))) == 1
    assert graph.verify().findings == []


def test_files_of_a_write_that_never_landed_go_after_a_while(graph: Graph) -> None:
    lost = faults.Raise(StorageTransientError("lost"))
    with faults.armed("commit.before_lock", lost), pytest.raises(StorageTransientError):
        graph.ingest([{"type": "Empty", "data": {"code": "x"}}])
    litter = set(Path(graph.uri).glob("nodes/*"))
    clean(graph)
    assert set(Path(graph.uri).glob("nodes/*")) == litter, "its writer may still be at work"
    context = Context(GraphRoot.at(graph.uri), Principal.named("act-anna"))
    run(context, CleanUp(Policy(keep=1, grace_s=0, litter_s=0), confirm=True))
    assert len(litter - set(Path(graph.uri).glob("nodes/*"))) == 1
    assert graph.verify().findings == []


def test_nothing_begins_at_a_state_that_is_gone(graph: Graph) -> None:
    old = add_city(graph, "a")
    add_city(graph, "b")
    add_city(graph, "c")
    clean(graph)
    with pytest.raises(HistoryReclaimedError):
        graph.create_tag("late", commit=old)
    with pytest.raises(HistoryReclaimedError):
        graph.create_branch("late", commit=old)
    assert [tag.name for tag in graph.tags()] == []


def test_a_tag_and_cleanup_wait_for_each_other(graph: Graph) -> None:
    old = add_city(graph, "a")
    add_city(graph, "b")
    add_city(graph, "c")
    release = threading.Event()
    with faults.armed("cleanup.before_reclaim", faults.Pause(release)) as paused:
        cleaner = threading.Thread(target=clean, args=(omnigraph.open(graph.uri),))
        cleaner.start()
        assert paused.reached.wait(60)
        refused: list[BaseException] = []

        def tag() -> None:
            try:
                graph.create_tag("late", commit=old)
            except HistoryReclaimedError as error:
                refused.append(error)

        tagger = threading.Thread(target=tag)
        tagger.start()
        tagger.join(0.3)
        assert tagger.is_alive()
        release.set()
        cleaner.join()
        tagger.join()
    assert len(refused) == 1


@pytest.mark.parametrize("cleaning", ["cleanup", "purge"])
def test_branches_that_begin_during_a_cleanup_keep_their_rows(graph: Graph, cleaning: str) -> None:
    """The branch is made, written and merged from after cleanup has decided what is needed."""
    add_city(graph, "a")
    add_city(graph, "b")
    with _paused_cleanup(graph, cleaning):
        graph.create_branch("late")
        late = graph.on("late")
        add_city(late, "c")
        middle = add_city(late, "d")
        late.create_branch("later")
        add_city(late, "e")
        add_city(graph.on("later"), "f")
        add_city(graph, "g")
    assert graph.verify().findings == []
    assert {row["id"] for row in content(late, commit=middle)["City"]} >= {"a", "b", "c", "d"}
    late.merge("later")
    graph.merge("late")
    assert {row["id"] for row in content(graph)["City"]} >= set("abcdefg")


@pytest.mark.parametrize("cleaning", ["cleanup", "purge"])
def test_tables_that_begin_during_a_cleanup_stay(graph: Graph, cleaning: str) -> None:
    add_city(graph, "a")
    with _paused_cleanup(graph, cleaning):
        for code in "xyz":
            graph.ingest([{"type": "Empty", "data": {"code": code}}])
    assert graph.verify().findings == []
    assert {row["code"] for row in content(graph)["Empty"]} == {"x", "y", "z"}


@contextmanager
def _paused_cleanup(graph: Graph, cleaning: str) -> Iterator[None]:
    """Run a block between a cleanup's decision and its first removal."""

    def run() -> None:
        if cleaning == "cleanup":
            clean(omnigraph.open(graph.uri))
        else:
            purge(Context(root, Principal.named("act-anna")), frozenset(table_paths(root)))

    root = GraphRoot.at(graph.uri)
    release = threading.Event()
    with faults.armed("cleanup.before_reclaim", faults.Pause(release)) as paused:
        cleaner = threading.Thread(target=run)
        cleaner.start()
        assert paused.reached.wait(60)
        try:
            yield
        finally:
            release.set()
            cleaner.join()


def test_queries_go_on_when_what_they_remember_is_removed(graph: Graph) -> None:
    """A process keeps arrays of versions that it read, and makes new ones from them; cleanup may
    take such a version away."""
    ask = "query q() { match { $c: City } return { $c.title } }"
    before = len(graph.query(ask).rows())
    for n in range(3):
        add_city(graph, f"n{n}")
    clean(graph)
    assert len(graph.query(ask).rows()) == before + 3


def test_diffs_between_kept_states_survive(graph: Graph) -> None:
    first = add_city(graph, "a")
    graph.create_tag("first")
    for n in range(4):
        add_city(graph, f"n{n}")
    graph.mutate('query d() { delete City where title = "n1" }')
    clean(graph)
    changed = content(graph, commit=first)
    assert {row["id"] for row in content(graph)["City"]} - {
        row["id"] for row in changed["City"]
    } == {"n0", "n2", "n3"}
    assert {change.id for change in graph.diff("first", "main")} == {"n0", "n2", "n3"}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_thousand_small_updates_leave_little(tmp_path: Path) -> None:
    root = doorgraph.new_graph(str(tmp_path / "g"))
    commit_rows(root, {"A": {f"a{n}": n for n in range(100)}})
    for n in range(4000):
        commit_rows(root, {"A": {f"a{n % 100}": n}})
    grown = size_of(root.location.path)
    context = Context(root, Principal.named("act-anna"))
    run(context, CleanUp(Policy(keep=10, grace_s=0), confirm=True))
    assert size_of(root.location.path) <= 10_000_000
    assert size_of(root.location.path) < grown
    assert doorgraph.rows(root)["A"] == {f"a{n}": 3900 + n for n in range(100)}


# ledger: I06 R15
def test_what_dead_writers_left_beside_the_tables_goes(graph: Graph) -> None:
    """Rows laid down for Spark, records of merges that never were, arrays of tables that are gone,
    detached versions of an optimize that died; the same things of the living stay."""
    objects = graph._context.root.objects
    old, young = f"{0:026d}", new_ulid().lower()
    for name in (old, young):
        objects.put(f"{SCRATCH}/{name}/part-0.arrow", b"rows")
        objects.put(f"__merged/{name}.json", b"{}")
    city = next(v.path for v in graph.snapshot().tables.values() if v.path.startswith("nodes/"))
    kept = f"__derived/adjacency/{city.replace('/', '-')}/1-x.npz"
    objects.put(kept, b"")
    objects.put("__derived/adjacency/nodes-gone-main-x/1-x.npz", b"")
    graph.create_branch("b").ingest([{"type": "City", "data": {"id": "b", "title": "b"}}])
    add_city(graph, "a")
    graph.merge("b")
    for n in range(4):
        add_city(graph, f"n{n}")
    lost = StorageTransientError("lost")
    with (
        faults.armed("stage.after_detached", faults.Raise(lost)),
        patch("omnigraph.storage.objects.ObjectStore.delete", side_effect=lost),
        pytest.raises(StorageTransientError),
    ):
        graph.optimize(types=["City"])
    before = content(graph)
    assert list(Path(graph.uri).rglob("_versions/d*"))
    seen, done = graph.cleanup(keep=1, grace=NOW), clean(graph)
    for found in (seen, done):
        assert found.litter == (
            f"{SCRATCH}/{old}/",
            f"__merged/{old}.json",
            "__derived/adjacency/nodes-gone-main-x/",
        )
        assert sum(table.detached for table in found.tables) == 1
    assert not list(Path(graph.uri).rglob("_versions/d*"))
    assert objects.exists(f"{SCRATCH}/{young}/part-0.arrow")
    assert not objects.exists(f"{SCRATCH}/{old}/part-0.arrow")
    assert objects.exists(kept)
    assert len(list(objects.list("__merged"))) == 2, "the young one and that of the merge"
    assert clean(graph).litter == ()
    assert content(graph) == before
    objects.delete(kept)  # it was no array, and fsck says so
    assert graph.verify().findings == []
