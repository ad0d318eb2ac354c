"""`fsck` names every file that is missing or damaged, as far as anything refers to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.commit.retention import Policy
from omnigraph.graph import Graph
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context

SCHEMA = "node Doc { key: String @key body: String? @index }\nedge Cites: Doc -> Doc\n"
OWN_KEY = "first"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with a file of every kind: branches, forks, tags, merges, keys and older commits."""
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA, actor="act-anna", durability="process")
    docs = [{"key": f"k{n}", "body": "apple"} for n in range(6)]
    graph.ingest(docs, type="Doc", idempotency_key=OWN_KEY)
    side = graph.create_branch("side")
    side.ingest([{"key": "s1"}], type="Doc")
    graph.mutate('query q() { delete Doc where key = "k1" }')
    graph.merge("side")
    graph.optimize()
    graph.mutate('query q() { update Doc set { body: "pear" } where key = "k2" }')
    graph.create_branch("gone").ingest([{"key": "g1"}], type="Doc")
    graph.delete_branch("gone")
    graph.create_tag("v1")
    assert graph.verify().findings == []
    return graph


def root_of(graph: Graph) -> Path:
    return Path(graph.uri.removeprefix("file://"))


def one(graph: Graph, pattern: str) -> Path:
    """The newest file that matches."""
    found = sorted(root_of(graph).glob(pattern), key=lambda file: file.stat().st_mtime_ns)
    assert found, pattern
    return found[-1]


def named(graph: Graph, path: Path) -> list[str]:
    """The severities of the findings that name a file, in a process that has cached nothing."""
    fresh = omnigraph.open(graph.uri, read_only=True)
    name = path.relative_to(root_of(graph)).as_posix()
    return [f.severity for f in fresh.verify().findings if name in f"{f.where} {f.message}"]


def missing(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


Harm = Callable[[Path], None]
FORK = "nodes/*/_refs/branches/*.json"
CASES: list[tuple[str, Harm, str]] = [
    ("__refs/side.json", missing, "error"),
    ("__refs/side.json", cut, "error"),
    ("__deleted/*.json", missing, "error"),
    ("__deleted/*.json", cut, "error"),
    ("__keys/main/*.json", missing, "error"),
    ("__keys/main/*.json", cut, "error"),
    ("__merged/*.json", missing, "error"),
    ("__merged/*.json", cut, "error"),
    ("__tags/v1.json", cut, "error"),
    ("_schema.pg", missing, "warning"),
    ("_settings.json", cut, "warning"),
    (FORK, missing, "warning"),
    (FORK, cut, "warning"),
    ("nodes/*/_transactions/*.txn", missing, "warning"),
    ("nodes/*/_transactions/*.txn", cut, "warning"),
    ("__manifest/main/_transactions/*.txn", missing, "warning"),
    ("nodes/*/_versions/latest_version_hint.json", cut, "warning"),
    ("nodes/*/_indices/*/*.lance", cut, "error"),
]


@pytest.mark.parametrize(("pattern", "harm", "severity"), CASES)
def test_19_a_damaged_file_is_named(graph: Graph, pattern: str, harm: Harm, severity: str) -> None:
    path = one(graph, pattern)
    harm(path)
    assert severity in named(graph, path)


def test_19_the_fork_of_a_live_branch_is_an_error(graph: Graph) -> None:
    side = {branch.name: branch.id for branch in graph.branches()}["side"]
    path = one(graph, f"nodes/*/_refs/branches/{side}-*.json")
    missing(path)
    assert named(graph, path) == ["error"]


def test_19_a_file_that_only_older_commits_need_is_named(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA, actor="act-anna")
    graph.ingest([{"key": "a"}], type="Doc")
    first = one(graph, "nodes/*/data/*.lance")
    graph.ingest([{"key": "b"}], "overwrite", type="Doc")
    cut(first)
    assert named(graph, first) == ["warning"]


def test_19_an_older_manifest_is_named(graph: Graph) -> None:
    files = sorted(root_of(graph).glob("__manifest/main/_versions/*.manifest"))
    cut(files[2])  # names count downwards
    assert named(graph, files[2]) == ["warning"]


def test_19_repair_writes_lost_idempotency_keys_again(graph: Graph) -> None:
    path = one(graph, "__keys/main/*.json")
    before = path.read_bytes()
    missing(path)
    omnigraph.open(graph.uri, actor="act-anna").repair(confirm=True)
    assert path.read_bytes() == before
    assert named(graph, path) == []
    again = omnigraph.open(graph.uri, actor="act-anna")
    count = len(list(again.commits()))
    again.ingest(
        [{"key": f"k{n}", "body": "apple"} for n in range(6)], type="Doc", idempotency_key=OWN_KEY
    )
    assert len(list(again.commits())) == count


def test_19_keys_of_a_fast_forward_stay_with_their_branch(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA, actor="act-anna")
    graph.create_branch("side").ingest([{"key": "a"}], type="Doc", idempotency_key="k")
    graph.merge("side")
    assert graph.verify().findings == []
    graph.repair(confirm=True)
    assert [file.parent.name for file in root_of(graph).glob("__keys/*/*")] != ["main"]


def test_19_the_record_of_another_key_is_refused(graph: Graph) -> None:
    graph.ingest([{"key": "n1"}], type="Doc", idempotency_key="second")
    files = list(root_of(graph).glob("__keys/main/*.json"))
    files[0].write_bytes(files[1].read_bytes())
    assert named(graph, files[0]) == ["error"]


def test_19_a_branch_whose_deletion_was_interrupted_keeps_its_tables(graph: Graph) -> None:
    """The note of the deletion is written first. While the name is there, cleanup ignores it."""
    from omnigraph.operations import cleanup

    side = {branch.name: branch.id for branch in graph.branches()}["side"]
    note = root_of(graph) / "__deleted" / f"{side}.json"
    note.write_bytes(one(graph, "__deleted/*.json").read_bytes())
    sweep = cleanup._Sweep(
        Context(graph._context.root, Principal.named("a")).root, Policy(keep=1, grace_s=0), False
    )
    sweep.run()
    assert not sweep._is_gone(side)
    assert graph.on("side").verify().findings == []


def test_19_a_torn_record_of_a_fork_does_not_prevent_cleanup(tmp_path: Path) -> None:
    """A power cut during the first write on a branch leaves an empty record of a fork. Lance reads
    all of them when it cleans a table up."""
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA, actor="act-anna")
    graph.ingest([{"key": "a"}], type="Doc")
    graph.create_branch("side").ingest([{"key": "b"}], type="Doc")
    record = one(graph, FORK)
    torn = record.with_name(f"{record.stem[:-1]}0.json")
    torn.touch()
    assert named(graph, torn) == ["warning"]
    graph = omnigraph.open(graph.uri, actor="act-anna")
    graph.repair(confirm=True)
    assert not torn.exists()
    assert record.exists()
    assert len(graph.recoveries().audit) == 1
    assert graph.verify().findings == []
    cleaned = graph.cleanup(keep=1, confirm=True)
    assert [table.error for table in cleaned.tables if table.error] == []


def test_19_opening_after_a_start_of_the_machine_removes_a_torn_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA, actor="act-anna")
    graph.ingest([{"key": "a"}], type="Doc")
    graph.create_branch("side").ingest([{"key": "b"}], type="Doc")
    record = one(graph, FORK)
    torn = record.with_name(f"{record.stem[:-1]}0.json")
    torn.touch()
    monkeypatch.setattr("omnigraph.storage.wholeness.boot_id", lambda: "another start")
    assert omnigraph.open(graph.uri, actor="act-anna").losses == ()
    assert not torn.exists()
    assert record.exists()
