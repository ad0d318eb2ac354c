"""Adjacency kept beside the tables: mapped, carried over, never trusted blindly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.engines.embedded.asked import SCHEMA, ask, people

import omnigraph
from omnigraph.engines.base import Options
from omnigraph.engines.embedded import EmbeddedEngine, adjacency_store, neighbours
from omnigraph.engines.embedded.bounds import Bounds
from omnigraph.errors import StoragePermanentError
from omnigraph.graph import Graph
from omnigraph.history.resolve import Target, resolve
from omnigraph.model.snapshot import Snapshot
from omnigraph.storage.derived import FOLDER, map_array, save_array, saved_names
from omnigraph.storage.root import GraphRoot

PAIRS = "match { $a: Person $a knows $b } return { $a.name as a, $b.name as b }"


@pytest.fixture(autouse=True)
def _keep_everything_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(self: Bounds, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work())
        return future

    monkeypatch.setattr(adjacency_store, "_LEAST_EDGES", 0)
    monkeypatch.setattr(Bounds, "beside", beside)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    found = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    for name, rows in people(40, 2).items():
        found.ingest(rows, type=name)
    return found


def snapshot(graph: Graph) -> Snapshot:
    return resolve(GraphRoot.at(graph.uri), Target(branch=graph.branch_name))


def kept(graph: Graph) -> list[Path]:
    """The folders of states that are kept."""
    return sorted({p.parent for p in (Path(graph.uri) / FOLDER).rglob("*") if p.is_file()})


def arrays_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir() if path.suffix != ".record"}


def reads_of_edges(graph: Graph, engine: EmbeddedEngine) -> tuple[list[dict[str, Any]], int]:
    """The pairs, and how many bytes the expansion read to find them."""
    result = ask(engine, snapshot(graph), PAIRS, Options(profile=True))
    rows = result.rows()
    (sort,) = result.explanation.to_json()["plan"]["inputs"]
    return rows, sort["inputs"][0]["bytes"]


def test_a_new_engine_reads_no_edges(graph: Graph) -> None:
    expected, cost = reads_of_edges(graph, EmbeddedEngine())
    assert cost > 0
    assert len(kept(graph)) == 1
    found, cost = reads_of_edges(graph, EmbeddedEngine())
    assert found == expected
    assert cost == 0


def test_optimize_makes_what_the_first_query_would_make(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.optimize()
    assert len(kept(graph)) == 1
    monkeypatch.setattr(neighbours, "build_distinct", None)
    assert len(reads_of_edges(graph, EmbeddedEngine())[0]) == 80
    assert reads_of_edges(graph, EmbeddedEngine())[1] == 0
    graph.optimize()  # finds them made


def test_optimize_keeps_lists_anew_after_commits(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.optimize()
    graph.mutate('query m() { insert Knows { from: "p00003", to: "p00030" } }')
    graph.optimize()
    assert len(kept(graph)) == 2
    monkeypatch.setattr(neighbours, "carry_neighbours", None)
    monkeypatch.setattr(neighbours, "build_distinct", None)
    found, cost = reads_of_edges(graph, EmbeddedEngine())
    assert cost == 0
    assert {"a": "p00003", "b": "p00030"} in found


def test_optimize_needs_no_place_for_lists(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: GraphRoot, name: str, array: object) -> None:
        raise StoragePermanentError("the disk is full")

    monkeypatch.setattr(adjacency_store, "save_array", refuse)
    assert graph.optimize().commits
    assert kept(graph) == []


def test_later_commits_are_carried_over(graph: Graph) -> None:
    reads_of_edges(graph, EmbeddedEngine())
    graph.mutate('query m() { insert Knows { from: "p00003", to: "p00030" } }')
    graph.mutate('query m() { delete Person where name = "p00007" }')
    graph.mutate('query m() { update Person set { age: 1 } where name = "p00003" }')
    found, _ = reads_of_edges(graph, EmbeddedEngine())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency_store, "_LEAST_EDGES", 10**9)
        expected, _ = reads_of_edges(graph, EmbeddedEngine())
    assert found == expected
    assert {"a": "p00003", "b": "p00030"} in found


@pytest.mark.parametrize("damage", [b"", b"nonsense", bytes(100)], ids=["empty", "text", "zeros"])
def test_damaged_files_are_made_again(graph: Graph, damage: bytes) -> None:
    expected, _ = reads_of_edges(graph, EmbeddedEngine())
    (folder,) = kept(graph)
    whole = arrays_in(folder)
    for path in sorted(folder.iterdir()):
        path.unlink()  # as every writer does: whoever has mapped a file keeps what he has
        path.write_bytes(damage)
        assert reads_of_edges(graph, EmbeddedEngine())[0] == expected, path.name
    for path in sorted(folder.iterdir()):
        path.unlink(missing_ok=True)
        path.write_bytes(damage)
    assert reads_of_edges(graph, EmbeddedEngine())[0] == expected
    assert arrays_in(folder) == whole


def test_neighbour_lists_are_not_sorted_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = reads_of_edges(graph, EmbeddedEngine())
    monkeypatch.setattr(neighbours, "build_distinct", None)
    assert reads_of_edges(graph, EmbeddedEngine())[0] == expected


def test_numbers_that_are_not_row_ids_are_kept_as_well(graph: Graph) -> None:
    graph.mutate('query m() { delete Person where name = "p00007" }')
    graph.mutate('query m() { insert Knows { from: "p00003", to: "p00030" } }')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency_store, "_LEAST_EDGES", 10**9)
        expected, _ = reads_of_edges(graph, EmbeddedEngine())
    assert reads_of_edges(graph, EmbeddedEngine())[0] == expected
    assert "edge-rows.uint64" in [path.name for path in kept(graph)[0].iterdir()]
    found, cost = reads_of_edges(graph, EmbeddedEngine())
    assert (found, cost) == (expected, 0)


def test_arrays_of_another_length_are_not_used(graph: Graph) -> None:
    expected, _ = reads_of_edges(graph, EmbeddedEngine())
    root = GraphRoot.at(graph.uri)
    (folder,) = kept(graph)
    names = saved_names(root, f"adjacency/{folder.parent.name}/{folder.name}")
    lists = {n: map_array(root, n, np.int32) for n in names}
    for name in (n for n, array in lists.items() if array is not None):
        save_array(root, name, np.zeros(3, np.int32))
        assert reads_of_edges(graph, EmbeddedEngine())[0] == expected, name


def test_only_a_few_states_are_kept(graph: Graph) -> None:
    for number in range(7):
        graph.mutate(f'query m() {{ insert Knows {{ from: "p00001", to: "p000{10 + number}" }} }}')
        for path in kept(graph):
            path.rename(path.with_name(f"{number}-{path.name.split('-')[1]}"))
        reads_of_edges(graph, EmbeddedEngine())
    assert len(kept(graph)) <= 4


def test_failing_to_keep_is_no_error(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoragePermanentError("The disk is full.")

    monkeypatch.setattr(adjacency_store, "save_array", fail)
    rows, _ = reads_of_edges(graph, EmbeddedEngine())
    assert len(rows) == 80
    assert kept(graph) == []


def test_small_tables_are_not_kept(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjacency_store, "_LEAST_EDGES", 81)
    reads_of_edges(graph, EmbeddedEngine())
    assert kept(graph) == []


def test_18_16_verify_names_damaged_files_and_optimize_makes_them_again(graph: Graph) -> None:
    graph.optimize()
    expected, _ = reads_of_edges(graph, EmbeddedEngine())
    assert graph.verify().findings == []
    (folder,) = kept(graph)
    whole = arrays_in(folder)
    for path in whole:
        data = bytearray(path.read_bytes())
        data[0] ^= 0xFF
        path.unlink()
        path.write_bytes(data)
    found = graph.verify().findings
    assert [finding.part for finding in found] == ["derived"] * len(whole)
    assert all("optimize" in (finding.hint or "") for finding in found)
    assert reads_of_edges(graph, EmbeddedEngine())[0] == expected
    graph.optimize()
    assert graph.verify().findings == []
    assert arrays_in(folder) == whole
