"""Every kind of write takes the same path: the same retries, the same keys, sources listed once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.countproxy import CountingProxy
from tests.support.s3 import S3Server
from tests.support.writegraphs import SCHEMA, another, ids, new_graph, values

import omnigraph
from omnigraph import faults
from omnigraph.bulk import sourcefiles
from omnigraph.errors import ConflictError, VersionConflictError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.operations.load import BulkLoad, LoadOptions, LoadResult
from omnigraph.operations.requests import Load
from omnigraph.operations.verbs import run
from omnigraph.storage.inputs import InputFile, list_inputs, write_output
from omnigraph.storage.manifest import ManifestFile
from omnigraph.storage.root import GraphRoot
from omnigraph.writes import groupcommit

AGE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
INSERT = "query q($n: String) { insert Person { name: $n } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Ada on main and on `side`, where she is older; Bo on main alone."""
    graph = new_graph(tmp_path)
    graph.mutate(INSERT, params={"n": "Ada"})
    side = graph.create_branch("side")
    side.mutate(AGE, params={"n": "Ada", "a": 36})
    graph.mutate(INSERT, params={"n": "Bo"})
    return graph


@contextmanager
def overtaken(action: Callable[[], object], times: int = 1) -> Iterator[list[int]]:
    """Do something before each of the first `times` writers takes the lock."""
    tries: list[int] = []
    mine = threading.get_ident()

    class _Overtake(faults.Action):
        def perform(self, point: str) -> None:
            if threading.get_ident() == mine:
                tries.append(1)
                if len(tries) <= times:
                    worker = threading.Thread(target=action)
                    worker.start()
                    worker.join()

    with faults.armed("commit.before_lock", _Overtake()):
        yield tries


def elsewhere(graph: Graph, name: str) -> Callable[[], object]:
    """Another process inserts a person, each time a new one."""
    count = iter(range(100))

    def act() -> None:
        saved, groupcommit._queues = groupcommit._queues, type(groupcommit._queues)()
        try:
            another(graph).mutate(INSERT, params={"n": f"{name}{next(count)}"})
        finally:
            groupcommit._queues = saved

    return act


def lines(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        record = {"type": "Person", "data": {"name": name}}
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    return folder


def bulk(graph: Graph, source: object, **more: Any) -> LoadResult:
    """The tasks of a load on Spark, in this process."""
    options = LoadOptions(here=True, **more)
    done = run(graph._context, Load(source, options=options))
    assert isinstance(done, LoadResult)
    return done


def newest(graph: Graph, branch: str) -> str:
    """The id of a branch's newest commit."""
    return resolve(GraphRoot.at(graph.uri), Target(branch)).commit_id


KINDS: dict[str, tuple[Callable[[Graph, Path], object], int]] = {
    "load": (lambda graph, place: bulk(graph, str(lines(place / "in", "Cy"))), 3),
    "merge": (lambda graph, place: graph.merge("side"), 5),
    "cherry-pick": (lambda graph, place: graph.cherry_pick(newest(graph, "side")), 5),
    "revert": (lambda graph, place: graph.revert(newest(graph, "main")), 5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_20_04_a_write_that_was_overtaken_is_prepared_again(
    graph: Graph, tmp_path: Path, kind: str
) -> None:
    act, _ = KINDS[kind]
    with overtaken(elsewhere(graph, "Zoe")) as tries:
        act(graph, tmp_path)
    assert len(tries) == 2
    assert "Zoe0" in ids(graph, "Person")
    shown = {
        "load": "Cy" in ids(graph, "Person"),
        "merge": values(graph, "Person", "age")["Ada"] == 36,
        "cherry-pick": values(graph, "Person", "age")["Ada"] == 36,
        "revert": "Bo" not in ids(graph, "Person"),
    }
    assert shown[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_20_04_a_write_gives_up_after_its_attempts(graph: Graph, tmp_path: Path, kind: str) -> None:
    act, attempts = KINDS[kind]
    before = ids(graph, "Person")
    with overtaken(elsewhere(graph, "Zoe"), times=100) as tries, pytest.raises(ConflictError):
        act(graph, tmp_path)
    assert len(tries) == attempts
    assert set(ids(graph, "Person")) == {*before, *(f"Zoe{n}" for n in range(attempts))}
    assert values(graph, "Person", "age")["Ada"] is None


def test_20_04_an_overwrite_in_tasks_fails_when_rows_changed(graph: Graph, tmp_path: Path) -> None:
    source = str(lines(tmp_path / "in", "Cy"))
    with overtaken(elsewhere(graph, "Zoe")) as tries, pytest.raises(VersionConflictError):
        bulk(graph, source, mode="overwrite", types=("Person",))
    assert len(tries) == 1
    assert ids(graph, "Person") == ["Ada", "Bo", "Zoe0"]


# ledger: C15
def test_20_04_an_overwrite_in_tasks_goes_on_after_maintenance(
    graph: Graph, tmp_path: Path
) -> None:
    source = str(lines(tmp_path / "in", "Cy"))
    with overtaken(lambda: another(graph).optimize()) as tries:
        bulk(graph, source, mode="overwrite", types=("Person",))
    assert len(tries) == 2
    assert ids(graph, "Person") == ["Cy"]


# ledger: C16
@pytest.mark.parametrize("losses", [1, 3])
def test_20_04_a_key_that_another_load_used_meanwhile(
    graph: Graph, tmp_path: Path, losses: int
) -> None:
    """Also if the load had no attempt left."""
    first, second = str(lines(tmp_path / "a", "Cy")), str(lines(tmp_path / "b", "Dan", "Eve"))
    found: list[LoadResult] = []
    slow = elsewhere(graph, "Zoe")

    def act() -> None:
        if len(tries) < losses:
            slow()
        else:
            found.append(bulk(another(graph), first, idempotency_key="k"))

    with overtaken(act, times=losses) as tries:
        done = bulk(graph, second, idempotency_key="k")
    assert done.repeated
    assert not found[0].repeated
    assert done.commit == found[0].commit
    assert (done.records, done.affected) == (1, found[0].affected)
    assert "Dan" not in ids(graph, "Person")


# Sources


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    listed: list[tuple[str, ...]] = []

    def counting(paths: tuple[str, ...], endings: tuple[str, ...]) -> list[InputFile]:
        listed.append(tuple(paths))
        return list_inputs(paths, endings)

    monkeypatch.setattr(sourcefiles, "list_inputs", counting)
    return listed


@pytest.mark.parametrize("options", [LoadOptions(), LoadOptions(engine="embedded")])
def test_20_04_sources_are_listed_once(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: LoadOptions
) -> None:
    monkeypatch.setattr("omnigraph.operations.load.has_session", lambda: False)
    sources = [str(lines(tmp_path / "a", "Cy")), str(lines(tmp_path / "b", "Dan"))]
    listed = counted(monkeypatch)
    with overtaken(lambda: (lines(tmp_path / "a", "Late"), elsewhere(graph, "Zoe")())) as tries:
        run(graph._context, Load(sources, options=options))
    assert len(tries) == 2
    assert listed == [(source,) for source in sources]
    # Files that came while the load was prepared belong to no attempt of it.
    assert ids(graph, "Person") == ["Ada", "Bo", "Cy", "Dan", "Zoe0"]


def test_20_04_a_bucket_is_listed_once(
    s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_output(f"{s3_root}/in/a.jsonl", b'{"type": "Person", "data": {"name": "Cy"}}\n')
    graph = omnigraph.init(f"{s3_root}/graph", SCHEMA)
    proxy = CountingProxy(s3_server.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    monkeypatch.setattr("omnigraph.operations.load.has_session", lambda: False)
    try:
        done = run(graph._context, Load(f"{s3_root}/in/", options=LoadOptions()))
    finally:
        proxy.close()
    # The graph was opened before; what passes through the proxy is about the input.
    assert [seen.verb for seen in proxy.seen].count("LIST") == 1, proxy.since(0)
    assert done.records == 1


# Manifests


@pytest.mark.parametrize(
    "act",
    [
        lambda graph: graph.mutate(INSERT, params={"n": "Cy"}),
        lambda graph: graph.mutate(AGE, params={"n": "Ada", "a": 5}),
        lambda graph: graph.ingest([{"name": "Cy"}], type="Person"),
    ],
    ids=["insert", "update", "ingest"],
)
def test_20_04_the_manifest_is_read_before_the_lock_and_under_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, act: Callable[[Graph], object]
) -> None:
    """Once to compile and to prepare, once under the lock, where another process may have been."""
    reads: list[int] = []
    original = ManifestFile.read

    def reading(self: ManifestFile) -> object:
        reads.append(1)
        return original(self)

    graph.mutate(AGE, params={"n": "Ada", "a": 4})
    monkeypatch.setattr("omnigraph.writes.attempt._contended", {})
    monkeypatch.setattr(ManifestFile, "read", reading)
    act(graph)
    assert len(reads) == 2


def test_20_04_a_load_in_tasks_never_holds_the_lock_while_it_prepares() -> None:
    assert BulkLoad.attempts.unlocked == BulkLoad.attempts.total
