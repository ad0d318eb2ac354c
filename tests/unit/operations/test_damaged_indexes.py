"""Indexes whose files are lost or damaged: answers stay right, writes go on, `verify` names the
index, and `optimize` builds it anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import StoragePermanentError, StorageTransientError
from omnigraph.graph import Graph
from omnigraph.storage import indexhealth, indexplan
from omnigraph.storage.indexhealth import filtered, filtered_batches
from omnigraph.storage.table import forget_tables, open_table

SCHEMA = """
node Doc {
    key: String @key
    body: String? @index
    n: I64? @index
    place: Vector(2)? @index
}
edge Cites: Doc -> Doc
"""
QUESTIONS = [
    'match { $d: Doc search($d.body, "apple") } return { $d.key as k }',
    'match { $d: Doc match_text($d.body, "red apple") } return { $d.key as k }',
    'match { $d: Doc fuzzy($d.body, "appel") } return { $d.key as k }',
    'match { $d: Doc { key: "k7" } } return { $d.n as n }',
    "match { $d: Doc $d.n >= 190 } return { $d.key as k }",
    'match { $d: Doc { key: "k7" } $d cites $e } return { $e.key as k }',
    "match { $d: Doc } return { $d.key as k, nearest($d.place, [1.0, 5.0]) as s } "
    "order { s asc } limit 2",
]
WRITES = [
    'update Doc set { n: 1000 } where key = "k3"',
    'insert Doc { key: "new", body: "an apple" }',
    'delete Doc where key = "k9"',
    'update Doc set { body: "apple pie" } where n = 8',
    'insert Cites { from: "k7", to: "k9" }',
]
ROWS = 200


def lose(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scramble(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def empty(file: Path) -> None:
    file.write_bytes(b"")


HARMS = [lose, cut, scramble, empty]


def make(folder: Path) -> Graph:
    graph = omnigraph.init(str(folder), SCHEMA)
    rows = [
        {
            "key": f"k{n}",
            "body": "red apple" if n % 2 else "blue sky",
            "n": n,
            "place": [1.0, float(n)],
        }
        for n in range(ROWS)
    ]
    graph.ingest(rows, type="Doc")
    graph.ingest([{"from": f"k{n}", "to": f"k{n + 1}"} for n in range(50)], type="Cites")
    return graph


@pytest.fixture(autouse=True)
def _small_vectors_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexplan, "_EXACT_BYTES", 0)
    monkeypatch.setattr(indexplan, "_EXACT_ROWS", 0)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    found = make(tmp_path / "graph")
    found.optimize()
    return found


def answers(graph: Graph) -> list[Any]:
    return [graph.query(f"query q() {{ {text} }}").rows() for text in QUESTIONS]


def index_files(graph: Graph) -> list[Path]:
    return sorted(path for path in Path(graph.uri).glob("*/*/_indices/*/*") if path.is_file())


def harmed(graph: Graph, harm: Callable[[Path], None], names: str = "") -> Graph:
    """The graph, after something has happened to its index files, as a new process sees it."""
    for file in index_files(graph):
        if names in str(file):
            harm(file)
    forget_tables()
    return omnigraph.open(graph.uri)


@pytest.mark.parametrize("harm", HARMS)
def test_18_20_answers_and_writes_do_without_damaged_indexes(
    graph: Graph, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    twin = make(tmp_path / "twin")
    expected = answers(twin)
    assert answers(graph) == expected
    graph = harmed(graph, harm)
    assert answers(graph) == expected
    for statement in WRITES:
        for each in (graph, twin):
            try:
                each.mutate(f"query q() {{ {statement} }}")
            except omnigraph.errors.InvalidDataError:
                assert "Cites" in statement  # to a node that was deleted
        assert answers(graph) == answers(twin), statement
    more = [{"key": "k11", "body": "apple"}, {"key": "k300", "body": "apple"}]
    for each in (graph, twin):
        each.ingest(more, "merge", type="Doc")
    assert answers(graph) == answers(twin)


@pytest.mark.parametrize("harm", HARMS)
def test_18_20_verify_names_damaged_indexes_and_optimize_builds_them(
    graph: Graph, harm: Callable[[Path], None]
) -> None:
    expected = answers(graph)
    assert graph.verify().findings == []
    graph = harmed(graph, harm)
    found = [f for f in graph.verify().findings if f.part == "index"]
    named = {
        name for name in ("body_btree", "body_fts", "id_btree") for f in found if name in f.message
    }
    assert len(named) == 3
    assert len(found) == len(graph.verify().findings) >= 7
    assert all("optimize" in (finding.hint or "") for finding in found)
    planned = {
        (t.type_name, i.property, i.kind) for t in graph.plan_optimize().tables for i in t.built
    }
    assert {
        ("Doc", "body", "fts"),
        ("Doc", "place", "vector"),
        ("Cites", "src", "btree"),
    } <= planned
    done = graph.optimize()
    assert {(t.type_name, i.property, i.kind) for t in done.tables for i in t.built} == planned
    assert graph.verify().findings == []
    assert graph.optimize().is_empty
    assert answers(graph) == expected
    paths = [
        str(i.kind)
        for v in graph.snapshot().tables.values()
        for i in open_table(graph.snapshot().location, v).indexes()
    ]
    assert len(paths) == len(planned)


def test_18_20_a_damaged_index_leaves_the_others_in_use(graph: Graph) -> None:
    doc = next(v for v in graph.snapshot().tables.values() if v.path.startswith("nodes"))
    described = open_table(graph.snapshot().location, doc).dataset.describe_indices()
    (body,) = (i for i in described if i.name == "n_btree")
    graph = harmed(graph, lose, str(body.segments[0].uuid))
    answers(graph)
    graph.query("query q() { match { $d: Doc $d.n = 7 } return { $d.key as k } }").rows()
    graph.mutate('query q() { update Doc set { body: "x" } where n = 7 }')
    latest = next(v for v in graph.snapshot().tables.values() if v.path.startswith("nodes"))
    left = {index.name for index in open_table(graph.snapshot().location, latest).indexes()}
    assert "n_btree" not in left
    assert len(left) == len(described) - 1
    built = [i for t in graph.optimize().tables for i in t.built if "damaged" in i.reason]
    assert [(i.property, i.kind) for i in built] == [("n", "btree")]


class _Source:
    """A dataset whose indexes fail, or whose rows do. It is not on a disk."""

    uri = "s3://bucket/t"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def describe_indices(self) -> list[Any]:
        return []

    def run(self, failure: Exception | None, always: bool = False) -> Callable[..., Any]:
        def read(options: dict[str, Any]) -> list[int]:
            self.asked.append(options)
            if failure is not None and (always or not options):
                raise failure
            return [1, 2]

        return read


def test_18_20_only_damage_is_answered_by_a_scan() -> None:
    source = _Source()
    assert filtered(source, "t", source.run(StoragePermanentError("damaged"))) == [1, 2]
    assert source.asked == [{}, {"use_scalar_index": False}]
    with pytest.raises(StorageTransientError):
        filtered(source, "t", source.run(StorageTransientError("slow")))
    with pytest.raises(StoragePermanentError, match="rows"):
        filtered(source, "t", source.run(StoragePermanentError("rows"), always=True))
    batches = filtered_batches(source, "t", lambda o: iter(source.run(OSError("x"))(o)))
    assert list(batches) == [1, 2]


def test_18_20_an_index_is_not_blamed_for_damaged_rows() -> None:
    def scan() -> None:
        with indexhealth.without("x", ("segment",), "t"):
            assert indexhealth.is_damaged(["segment"])
            raise StoragePermanentError("the rows are damaged, too")

    with pytest.raises(StoragePermanentError):
        scan()
    assert not indexhealth.is_damaged(["segment"])
