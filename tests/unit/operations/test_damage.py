"""A graph with damaged files opens, says what was lost, and goes back to its newest whole state."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit import damage
from omnigraph.commit.damage import Survey, survey
from omnigraph.errors import (
    GraphNotFoundError,
    OmniGraphError,
    StoragePermanentError,
    StorageTransientError,
)
from omnigraph.graph import Graph
from omnigraph.storage import wholeness
from omnigraph.storage.root import GraphRoot

SCHEMA = "node A { n: I64? }\nnode B { n: I64? }\n"
INSERT = "query q($n: I64) { insert A { n: $n } }"


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


def empty(path: Path) -> None:
    os.truncate(path, 0)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty": empty,
    "cut": cut,
    "zeroed": zero,
    "missing": Path.unlink,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "g"


def made(place: Path, commits: int = 4) -> Graph:
    graph = omnigraph.init(str(place), SCHEMA)
    for n in range(commits):
        graph.mutate(INSERT, params={"n": n})
    return graph


def numbers(graph: Graph) -> list[int]:
    rows = graph.query("query q() { match { $a: A } return { $a.n as n } }").rows()
    return sorted(row["n"] for row in rows)


def newest(place: Path, pattern: str) -> Path:
    """The file that was written last."""
    return max(place.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, -int(path.stem, 36)))


def reopened(place: Path) -> Graph:
    return omnigraph.open(str(place))


def files(place: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and "__locks" not in path.parts
    }


@pytest.mark.parametrize("how", DAMAGES)
def test_19_a_damaged_publish_goes_back_by_one(place: Path, how: str) -> None:
    made(place)
    versions = sorted((place / "__manifest/main/_versions").glob("*.manifest"))
    DAMAGES[how](versions[0])
    before = files(place)
    reader = omnigraph.open(str(place), read_only=True)
    assert numbers(reader) == [0, 1, 2]
    (loss,) = reader.losses
    assert loss.versions == (5,)
    assert "are lost" in loss.message
    assert files(place) == before, "a reader changed something"
    graph = reopened(place)
    assert [loss.versions for loss in graph.losses] == [(5,)]
    assert numbers(graph) == [0, 1, 2]
    (row,) = [row for row in graph.recoveries().audit if row["kind"] == "salvage"]
    assert row["outcome"] == "salvaged"
    assert row["commit_id"] == loss.commit_id == next(iter(graph.commits())).id
    kept = [path.name for path in (place / "__damaged").rglob("*.manifest")]
    assert (versions[0].name in kept) == (how != "missing")
    graph.mutate(INSERT, params={"n": 9})
    assert numbers(reopened(place)) == [0, 1, 2, 9]
    assert reopened(place).losses == ()
    assert graph.verify().findings == []


# A record of a transaction may be missing, and has no end that could be checked.
PARTS = [
    *((part, how) for part in ("data/*.lance", "_versions/*.manifest") for how in DAMAGES),
    ("_transactions/*.txn", "empty"),
    ("_transactions/*.txn", "zeroed"),
]


@pytest.mark.parametrize(("part", "how"), PARTS)
def test_19_a_damaged_table_of_the_newest_commit_is_noticed_after_a_restart(
    place: Path, part: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place)
    table = next((place / "nodes").iterdir())
    victim = (
        sorted(table.glob(part))[0]
        if part.endswith("manifest")
        else newest(place, f"nodes/*/{part}")
        if part.endswith("lance")
        else sorted(table.glob(part))[-1]
    )
    DAMAGES[how](victim)
    monkeypatch.setattr(wholeness, "boot_id", lambda: "another start")
    graph = reopened(place)
    assert numbers(graph) == [0, 1, 2]
    assert len(graph.losses) == 1
    graph.mutate(INSERT, params={"n": 9})
    assert numbers(graph) == [0, 1, 2, 9]
    assert graph.verify().findings == []


def test_19_without_a_restart_nobody_goes_back_for_a_damaged_table(place: Path) -> None:
    """It was no power cut: reading the type is an error, and `repair` goes back on request."""
    made(place)
    empty(newest(place, "nodes/*/data/*.lance"))
    graph = reopened(place)
    assert graph.losses == ()
    with pytest.raises(OmniGraphError) as caught:
        numbers(graph)
    assert "repair" in (caught.value.hint or "") or "fsck" in (caught.value.hint or "")
    shown = graph.repair()
    assert not shown.executed
    assert [loss.versions for loss in shown.losses] == [(5,)]
    assert graph.repair(confirm=True).losses == shown.losses
    assert numbers(reopened(place)) == [0, 1, 2]
    assert reopened(place).verify().findings == []


def test_19_an_old_damaged_file_costs_nobody_a_commit(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = made(place)
    graph.ingest([{"type": "B", "data": {"n": 1}}])
    table = sorted((place / "nodes").iterdir())[0]
    oldest = min(table.glob("data/*.lance"), key=lambda path: path.stat().st_mtime_ns)
    # So long ago that no power cut explains it; the versions since then are kept.
    for path in (place / "__manifest").rglob("*.manifest"):
        number = 2**64 - 1 - int(path.stem)
        os.utime(path, (number * 10_000, number * 10_000))
    empty(oldest)
    monkeypatch.setattr(wholeness, "boot_id", lambda: "another start")
    graph = reopened(place)
    assert [loss.versions for loss in graph.losses] == [()]
    assert next(iter(graph.commits())).sequence == 6
    assert graph.query("query q() { match { $b: B } return { $b.n as n } }").rows() == [{"n": 1}]
    with pytest.raises(OmniGraphError):
        numbers(graph)
    found = [each for each in graph.verify().findings if each.part == "file"]
    assert any(oldest.name in each.where for each in found)
    assert all("repair" in (each.hint or "") for each in found)
    graph.repair(confirm=True)
    assert reopened(place).verify().findings == []


def test_19_many_lost_publishes_and_tables(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a cut with durability `process`: everything since the last sync is empty."""
    graph = made(place)
    graph.create_branch("b").mutate(INSERT, params={"n": 100})
    old = set(place.rglob("*"))
    for n in range(4, 8):
        graph.mutate(INSERT, params={"n": n}, idempotency_key=f"k{n}")
        graph.on("b").mutate(INSERT, params={"n": 100 + n})
    graph.create_tag("late")
    for path in set(place.rglob("*")) - old:
        if path.is_file() and "__locks" not in path.parts and "__tags" not in path.parts:
            empty(path)
    monkeypatch.setattr(wholeness, "boot_id", lambda: "another start")
    assert numbers(omnigraph.open(str(place), read_only=True)) == [0, 1, 2, 3]
    graph = reopened(place)
    assert numbers(graph) == [0, 1, 2, 3]
    assert numbers(graph.on("b")) == [0, 1, 2, 3, 100]
    assert {loss.branch for loss in graph.losses} == {"main", "b"}
    graph.mutate(INSERT, params={"n": 5}, idempotency_key="k5")
    graph.on("b").mutate(INSERT, params={"n": 6})
    assert numbers(graph) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("folder", ["__refs", "__recovery", "__tags", "__keys"])
def test_19_damaged_control_objects_are_set_aside(place: Path, folder: str) -> None:
    graph = made(place)
    graph.create_branch("b")
    graph.create_tag("t")
    graph.mutate(INSERT, params={"n": 9}, idempotency_key="once")
    (place / "__recovery").mkdir(exist_ok=True)
    (place / "__recovery/01M7PC6YV7FPYYFQ84J07ZCAPV.json").touch()
    for path in (place / folder).rglob("*.json"):
        empty(path)
    root = GraphRoot.at(str(place))
    assert survey(root).objects
    graph.repair(confirm=True)
    graph = reopened(place)
    assert survey(root).objects == []
    assert [info.name for info in graph.branches()][:1] == ["main"]
    again = graph.mutate(INSERT, params={"n": 9}, idempotency_key="once")
    assert again.repeated, "the record of a key is written again from the history"
    assert graph.verify().findings == []


def test_19_an_interrupted_init_can_be_repeated(place: Path) -> None:
    omnigraph.init(str(place), SCHEMA)
    for path in (place / "__manifest/main").rglob("*"):
        if path.is_file():
            empty(path)
    for read_only in (True, False):
        with pytest.raises(GraphNotFoundError):
            omnigraph.open(str(place), read_only=read_only)
    graph = omnigraph.init(str(place), SCHEMA)
    graph.mutate(INSERT, params={"n": 1})
    assert numbers(reopened(place)) == [1]


def test_19_a_graph_without_a_whole_state_says_what_helps(place: Path) -> None:
    made(place)
    for path in (place / "__manifest/main").rglob("*.manifest"):
        empty(path)
    before = files(place)
    for read_only in (True, False):
        with pytest.raises(StoragePermanentError) as caught:
            omnigraph.open(str(place), read_only=read_only)
        assert "backup" in (caught.value.hint or "")
        assert caught.value.details["files"]
    assert files(place) == before


def test_19_an_error_that_is_no_damage_costs_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place)
    root = GraphRoot.at(str(place))

    def refuse(*args: object) -> object:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refuse)
        with pytest.raises(StorageTransientError):
            survey(root)
    assert survey(root).is_clean


def test_19_a_damaged_audit_is_no_obstacle(place: Path) -> None:
    made(place)
    versions = sorted((place / "__manifest/main/_versions").glob("*.manifest"))
    empty(versions[0])
    reopened(place)
    for path in (place / "_graph_commit_recoveries.lance").rglob("*.manifest"):
        empty(path)
    graph = reopened(place)
    assert graph.recoveries().audit == ()
    empty(sorted((place / "__manifest/main/_versions").glob("*.manifest"))[0])
    assert len(reopened(place).recoveries().audit) == 1


def test_19_an_undamaged_graph_is_looked_through_once_per_start(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place)
    reopened(place)
    looked: list[bool] = []
    real = damage.survey

    def watched(root: GraphRoot, **more: bool) -> Survey:
        looked.append(True)
        return real(root, **more)

    monkeypatch.setattr("omnigraph.commit.salvage.survey", watched)
    reopened(place)
    assert looked == []
    monkeypatch.setattr(wholeness, "boot_id", lambda: "another start")
    reopened(place)
    reopened(place)
    assert looked == [True]
