"""Searches after maintenance and on branches: rows that are gone are never found, nor others in
their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph.engines.embedded.rownumbers import Numbering, number_rows, places_of
from omnigraph.errors import InvariantViolationError
from omnigraph.graph import Graph
from omnigraph.storage import indexplan
from omnigraph.storage.table import Table, open_table

SCHEMA = "node Doc { key: String @key  body: String? @index  place: Vector(2)? @index }"
TEXTS = ["crimson apple", "azure heaven", "emerald oolong"]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(indexplan, "_EXACT_BYTES", 0)
    monkeypatch.setattr(indexplan, "_EXACT_ROWS", 0)
    found = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    rows = [
        {"key": f"k{n}", "body": text, "place": [1.0, float(n)]} for n, text in enumerate(TEXTS)
    ]
    found.ingest(rows, type="Doc")
    return found


def found_by(graph: Graph, word: str, function: str = "search") -> list[str]:
    text = (
        f"query q($q: String) {{ match {{ $d: Doc  {function}($d.body, $q) }} "
        "return { $d.key as k } }"
    )
    return [row["k"] for row in graph.query(text, params={"q": word}).rows()]


def ranked(graph: Graph, word: str, limit: int) -> list[dict[str, Any]]:
    text = (
        "query q($q: String) { match { $d: Doc  search($d.body, $q) } "
        f"return {{ $d.key as k, bm25($d.body, $q) as s }} order {{ s desc }} limit {limit} }}"
    )
    return graph.query(text, params={"q": word}).rows()


def table(graph: Graph) -> Table:
    snapshot = graph.snapshot()
    (version,) = snapshot.tables.values()
    return open_table(snapshot.location, version)


def mutate(graph: Graph, statement: str) -> None:
    graph.mutate(f"query q() {{ {statement} }}")


@pytest.mark.parametrize(
    "statement", ['update Doc set { body: "violet" } where', "delete Doc where"]
)
@pytest.mark.parametrize("key", ["k0", "k1", "k2"])
def test_18_11_rows_that_are_gone_are_not_found_after_optimize(
    graph: Graph, statement: str, key: str
) -> None:
    graph.optimize()
    mutate(graph, f'{statement} key = "{key}"')
    graph.optimize()
    for number, word in enumerate(["apple", "heaven", "oolong"]):
        expected = [] if f"k{number}" == key else [f"k{number}"]
        for function in ("search", "match_text", "fuzzy"):
            assert found_by(graph, word, function) == expected, (word, function)


def test_18_11_a_limit_counts_rows_that_exist(graph: Graph) -> None:
    # Shorter texts rank higher: the best of the index are those that go.
    rows = [{"key": f"m{n:03}", "body": "many words"} for n in range(200)]
    rows += [{"key": f"s{n:03}", "body": "many"} for n in range(100)]
    graph.ingest(rows, type="Doc")
    graph.optimize()
    mutate(graph, 'delete Doc where key starts_with "s"')
    graph.optimize()
    best = ranked(graph, "many", 5)
    assert [row["k"] for row in best] == [f"m{n:03}" for n in range(5)]


def test_18_11_nearest_rows_exist_after_optimize(graph: Graph) -> None:
    rows = [{"key": f"v{n:03}", "place": [1.0, n / 100]} for n in range(100)]
    graph.ingest(rows, type="Doc")
    graph.optimize()
    assert any("IVF" in index.kind.upper() for index in table(graph).indexes())
    mutate(graph, 'delete Doc where key >= "v000" and key < "v040"')
    graph.optimize()
    text = (
        'query q($v: Vector(2)) { match { $d: Doc  $d.key starts_with "v" } '
        "return { $d.key as k, nearest($d.place, $v) as s } order { s asc } limit 3 }"
    )
    for _ in range(2):
        best = [row["k"] for row in graph.query(text, params={"v": [1.0, 0.0]}).rows()]
        assert best == ["v040", "v041", "v042"]


def test_18_11_a_table_says_which_rows_it_has(graph: Graph) -> None:
    mutate(graph, 'delete Doc where key = "k1"')
    opened = table(graph)
    assert opened.holds(np.array([2, 1, 0, 77, 2], np.uint64)).tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert opened.holds(np.empty(0, np.uint64)).tolist() == []
    assert opened.take(np.array([2, 0], np.uint64), ["key"]).column(0).to_pylist() == ["k2", "k0"]
    with pytest.raises(InvariantViolationError, match="1 of 3 rows"):
        opened.take(np.array([0, 1, 2], np.uint64), ["key"])


def test_18_11_a_value_that_is_not_there_has_no_place() -> None:
    held = np.array([2, 5, 9])
    assert places_of(held, np.array([9, 2, 9])).tolist() == [2, 0, 2]
    assert places_of(held, np.empty(0, np.int64)).tolist() == []
    for missing in (0, 3, 10):
        with pytest.raises(InvariantViolationError, match=f"number {missing} "):
            places_of(held, np.array([5, missing]))
    with pytest.raises(InvariantViolationError):
        places_of(np.empty(0, np.int64), np.array([1]))


@pytest.mark.parametrize(
    "numbering",
    [Numbering(3), number_rows(np.array([0, 4, 7], np.uint64))],
    ids=["plain", "with row ids"],
)
def test_18_11_a_row_id_that_is_not_there_has_no_number(numbering: Numbering) -> None:
    known = numbering.all_row_ids()
    assert numbering.to_numbers(known[::-1]).tolist() == [2, 1, 0]
    for missing in (3, 9):
        with pytest.raises(InvariantViolationError):
            numbering.to_numbers(np.array([0, missing], np.uint64))


def test_18_12_branches_search_their_own_rows(graph: Graph) -> None:
    graph.ingest([{"key": f"w{n}", "body": "same word"} for n in range(4)], type="Doc")
    graph.create_branch("side")
    side = graph.on("side")
    mutate(graph, 'delete Doc where key = "w1"')
    assert found_by(graph, "word") == ["w0", "w2", "w3"]
    mutate(side, 'delete Doc where key = "w2"')
    assert found_by(side, "word") == ["w0", "w1", "w3"]
    assert found_by(side, "word", "fuzzy") == ["w0", "w1", "w3"]
    assert found_by(graph, "word") == ["w0", "w2", "w3"]
