"""The embedded engine as a whole: memory, profiles, logs, and the errors that a query can meet."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from tests.support.querygraphs import Shape
from tests.unit.engines.embedded.asked import ask, graph, people

from omnigraph.caches import Cache
from omnigraph.engines.base import Options
from omnigraph.engines.embedded import EmbeddedEngine
from omnigraph.errors import EmbeddingError, HistoryReclaimedError, InvalidArgumentError
from omnigraph.model.snapshot import Snapshot, TableVersion

PAGE = "match { $p: Person $p knows $q } return { $p.name, $q.age } order { $q.age } limit 5"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("engine")
    return graph(path, people(300, 3))


# ledger: Q03
def test_a_profile_has_actuals_for_every_operator(snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAGE, Options(profile=True))
    result.rows()
    shown = result.explanation.to_json()["plan"]
    below = shown["inputs"][0]
    assert below["operator"] == "topk"
    assert below["rows"] == 5
    expand = below["inputs"][0]
    assert expand["operator"] == "expand"
    assert expand["rows"] == 900
    assert expand["reads"] > 0
    assert expand["bytes"] > 0
    assert expand["milliseconds"] > 0
    assert "900 rows" in result.explanation.to_text()


def test_a_second_run_reads_nothing(snapshot: Snapshot) -> None:
    engine = EmbeddedEngine()
    ask(engine, snapshot, PAGE).rows()
    result = ask(engine, snapshot, PAGE, Options(profile=True))
    result.rows()
    assert "reads" not in result.explanation.to_text()


def test_estimates_are_logged_against_actuals(
    snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="omnigraph"):
        ask(EmbeddedEngine(), snapshot, PAGE).rows()
    fields = [r.omnigraph_fields for r in caplog.records if r.message == "operator done"]  # type: ignore[attr-defined]
    assert any("Expand" in f["operator"] and f["actual"] == 900 for f in fields)
    assert all(f["estimate"] >= 0 for f in fields)


def test_the_cache_stays_within_its_budget(snapshot: Snapshot) -> None:
    engine = EmbeddedEngine(cache_bytes=4000)
    expected = ask(EmbeddedEngine(), snapshot, PAGE).rows()
    for _ in range(3):
        assert ask(engine, snapshot, PAGE).rows() == expected
        assert engine.cache.held_bytes <= 4000


def test_threads_share_an_engine(snapshot: Snapshot) -> None:
    engine = EmbeddedEngine()
    expected = ask(EmbeddedEngine(), snapshot, PAGE).rows()
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(ask(engine, snapshot, PAGE).rows()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_an_entry_is_made_once() -> None:
    cache: Cache[str, object] = Cache(100)
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "value"

    assert cache.get("key", make, lambda _: 10) == cache.get("key", make, lambda _: 10) == "value"
    assert made == [1]
    assert cache.get("large", lambda: "x" * 1000, lambda _: 1000) == "x" * 1000
    assert cache.peek("large") is None
    cache.put("other", 1, 95)
    assert cache.peek("key") is None
    cache.clear()
    assert cache.held_bytes == 0


def test_a_failed_entry_can_be_made_later() -> None:
    cache: Cache[str, str] = Cache(100)

    def fail() -> str:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        cache.get("key", fail, lambda _: 1)
    assert cache.get("key", lambda: "made", lambda _: 1) == "made"


def test_a_table_that_was_never_written_is_empty(tmp_path: Path) -> None:
    snapshot = graph(tmp_path, {})
    engine = EmbeddedEngine()
    assert ask(engine, snapshot, PAGE).rows() == []
    assert ask(engine, snapshot, "match { $p: Person } return { count(*) as n }").rows() == [
        {"n": 0}
    ]


def test_a_version_that_is_gone(tmp_path: Path) -> None:
    snapshot = graph(tmp_path, people(3))
    (number, version) = next(iter(snapshot.tables.items()))
    later = TableVersion(number, version.path, None, 99, 1, 3)
    gone = Snapshot(snapshot.location, "main", "c", 1, snapshot.catalog, {number: later})
    with pytest.raises(HistoryReclaimedError):
        ask(EmbeddedEngine(), gone, "match { $p: Person } return { $p.name }")


def test_a_negative_limit(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidArgumentError, match="limit"):
        ask(EmbeddedEngine(), snapshot, "match { $p: Person } return { $p.name } limit $n", n=-1)


def test_a_pattern_that_is_no_pattern(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidArgumentError, match="regular expression"):
        ask(
            EmbeddedEngine(),
            snapshot,
            "match { $p: Person $p.name matches $w } return { $p.name }",
            w="(",
        )


NEAREST = "match { $p: Person } return { $p.name } order { nearest($p.vec, $w) } limit 1"


def test_a_text_needs_an_embedding(snapshot: Snapshot) -> None:
    with pytest.raises(EmbeddingError, match="no embedding is configured"):
        ask(EmbeddedEngine(), snapshot, NEAREST, w="hello")


def test_a_text_is_embedded_as_the_property_says(snapshot: Snapshot) -> None:
    asked: list[tuple[str, str | None, int]] = []

    def embed(text: str, model: str | None, dim: int) -> list[float]:
        asked.append((text, model, dim))
        return [1.0, 0.0]

    rows = ask(EmbeddedEngine(), snapshot, NEAREST, Options(embed=embed), w="hello").rows()
    assert rows == [{"p.name": "p00000"}]
    assert asked == [("hello", None, 2)]
    with pytest.raises(EmbeddingError, match="3 numbers"):
        ask(
            EmbeddedEngine(),
            snapshot,
            NEAREST,
            Options(embed=lambda *_: [1.0, 2.0, 3.0]),
            w="hello",
        )


def test_a_search_without_index_says_so(snapshot: Snapshot) -> None:
    result = ask(
        EmbeddedEngine(),
        snapshot,
        "match { $p: Person search($p.name, $w) } return { $p.name }",
        Options(profile=True),
        w="p00007",
    )
    assert result.rows() == [{"p.name": "p00007"}]
    assert "rows without index" in result.explanation.to_text()


def test_a_few_lookups_are_probes_then_columns_are_read(tmp_path: Path) -> None:
    snapshot = graph(tmp_path, people(60_000), Shape(indexed=True))
    engine = EmbeddedEngine()
    lookup = "match { $p: Person { name: $w } } return { $p.age, $p.big }"
    read = []
    for number in range(8):
        result = ask(engine, snapshot, lookup, Options(profile=True), w=f"p{number:05d}")
        assert result.rows() == [{"p.age": number % 90, "p.big": number}]
        read.append("reads" in result.explanation.to_text())
    assert read[0]
    assert not read[-1]
