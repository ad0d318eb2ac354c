"""Results that stream: the first batch comes before the last row is matched, in bounded parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from tests.unit.engines.embedded.asked import ask, graph, people

from omnigraph.engines.base import Cancellation, Limits, Options
from omnigraph.engines.embedded import EmbeddedEngine, firstpage, sortorder
from omnigraph.engines.embedded.frame import Frame
from omnigraph.engines.embedded.run import Run
from omnigraph.errors import CancelledError, InvalidArgumentError, LimitExceededError
from omnigraph.model.result import Result
from omnigraph.model.snapshot import Snapshot
from omnigraph.plan.operators import Sort

PEOPLE, DEGREE = 20_000, 10
ROWS = PEOPLE * DEGREE
PAIRS = "match { $p: Person $p knows $q } return { $p.name as p, $q.name as q }"
STREAMED = {
    "pairs": PAIRS,
    "filtered": "match { $p: Person $p knows $q $q.age > 10 } return { $p.name as p, $q.age as q }",
    "ordered by the start": f"{PAIRS} order {{ $p.age desc }}",
    "optional": """match { $p: Person optional { $p knows $q $q.age > 7 } }
        return { $p.name as p, $q.name as q }""",
    "two hops": """match { $p: Person $p.age < 20 $p knows $q $q knows $r }
        return { $p.name as p, $r.name as q }""",
}
NOT_STREAMED = {
    "ordered by the end": f"{PAIRS} order {{ $q.age }}",
    "grouped": "match { $p: Person $p knows $q } return { $p.name as p, count($q) as q }",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("streams")
    return graph(path, people(PEOPLE, DEGREE))


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every frame that a sort has put in order, after all of it was matched."""
    counts: list[int] = []
    sort = sortorder.sort

    def counted(operator: Sort, frame: Frame, run: Run) -> Frame:
        if len(operator.ties) > 1:  # not the sort of the starts
            counts.append(frame.rows)
        return sort(operator, frame, run)

    monkeypatch.setattr(sortorder, "sort", counted)
    return counts


@pytest.mark.parametrize("name", STREAMED)
def test_20_06_the_first_batch_precedes_the_last_match(
    name: str, snapshot: Snapshot, matched: list[int]
) -> None:
    batches = ask(EmbeddedEngine(), snapshot, STREAMED[name]).stream()
    next(batches)
    at_first = sum(matched)
    for _ in batches:
        pass
    assert 0 < at_first < sum(matched) / 10


def test_20_06_rows_scanned_grow_with_what_is_read(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Run] = []
    made = Run.__init__

    def counted(self: Run, *args: Any) -> None:
        made(self, *args)
        runs.append(self)

    monkeypatch.setattr(Run, "__init__", counted)
    engine = EmbeddedEngine()
    ask(engine, snapshot, STREAMED["two hops"]).rows()  # columns and neighbours are in memory now
    batches = ask(engine, snapshot, STREAMED["two hops"]).stream()
    next(batches)
    at_first = runs[1].bounds.scanned
    for _ in batches:
        pass
    assert at_first < runs[1].bounds.scanned


@pytest.mark.parametrize("name", [*STREAMED, *NOT_STREAMED])
def test_20_06_a_stream_has_the_rows_of_one_sort(
    name: str, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {**STREAMED, **NOT_STREAMED}[name]
    streamed = ask(EmbeddedEngine(), snapshot, body).to_arrow()
    monkeypatch.setattr(firstpage, "start_of_stream", lambda root: None)
    assert streamed.equals(ask(EmbeddedEngine(), snapshot, body).to_arrow())


def test_20_06_memory_is_bounded_by_the_size_of_a_part(
    snapshot: Snapshot, matched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firstpage, "_ROWS_AT_ONCE", 5_000)
    batches = ask(EmbeddedEngine(), snapshot, PAIRS).stream()
    assert sum(batch.num_rows for batch in batches) == ROWS
    assert sum(matched) == ROWS
    assert max(matched) <= 5_000


def test_20_06_other_orders_have_one_part(snapshot: Snapshot, matched: list[int]) -> None:
    next(ask(EmbeddedEngine(), snapshot, NOT_STREAMED["ordered by the end"]).stream())
    assert matched == [ROWS]


def test_20_06_a_profile_counts_every_row_once(snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS, Options(profile=True))
    assert len(result) == ROWS
    sort = result.explanation.to_json()["plan"]["inputs"][0]
    expand = sort["inputs"][0]
    assert (sort["rows"], expand["rows"], expand["inputs"][0]["rows"]) == (ROWS, ROWS, PEOPLE)


def test_20_06_cancelling_stops_a_stream(snapshot: Snapshot, matched: list[int]) -> None:
    cancellation = Cancellation()
    options = Options(cancellation=cancellation)
    batches = ask(EmbeddedEngine(), snapshot, PAIRS, options).stream()
    next(batches)
    cancellation.cancel()
    with pytest.raises(CancelledError):
        next(batches)
    assert sum(matched) < ROWS


@pytest.mark.parametrize("limits", [Limits(rows_returned=ROWS - 1), Limits(rows_scanned=ROWS)])
def test_20_06_limits_hold_for_the_whole_stream(limits: Limits, snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS, Options(limits))
    with pytest.raises(LimitExceededError):
        result.rows()


def test_20_06_a_slow_reader_does_not_use_up_the_time_of_the_query(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("omnigraph.engines.embedded.bounds.time.monotonic", lambda: now)
    batches = ask(EmbeddedEngine(), snapshot, PAIRS, Options(Limits(seconds=1.0))).stream()
    for _ in batches:
        now += 10.0


def test_20_06_closing_a_stream_stops_matching(snapshot: Snapshot, matched: list[int]) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS)
    batches = result.stream()
    next(batches)
    seen = sum(matched)
    batches.close()  # type: ignore[attr-defined]
    assert sum(matched) == seen < ROWS


def test_20_06_libraries_import_a_result_as_an_arrow_stream(
    snapshot: Snapshot, matched: list[int]
) -> None:
    def asked() -> Result:
        matched.clear()
        return ask(EmbeddedEngine(), snapshot, PAIRS)

    held = asked().to_arrow()
    reader = pa.RecordBatchReader.from_stream(asked())
    first = reader.read_next_batch()
    assert sum(matched) < ROWS / 10
    rest = reader.read_all()
    assert pa.concat_tables([pa.Table.from_batches([first]), rest]).equals(held)
    assert pa.table(asked()).equals(held)
    assert polars.DataFrame(asked()).equals(polars.DataFrame(held))
    assert pa.schema(asked()) == held.schema
    assert asked().reader().read_all().equals(held)


def test_20_06_a_result_that_is_held_can_be_imported_again(snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS)
    held = result.to_arrow()
    assert pa.table(result).equals(held)
    assert pa.table(result).equals(held)


def test_20_06_a_stream_is_read_once(snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS)
    result.reader()
    with pytest.raises(InvalidArgumentError, match="already"):
        result.reader()


def test_20_06_a_failure_passes_through_an_arrow_stream(snapshot: Snapshot) -> None:
    result = ask(EmbeddedEngine(), snapshot, PAIRS, Options(Limits(rows_returned=ROWS - 1)))
    with pytest.raises((LimitExceededError, pa.ArrowException, OSError), match="rows returned"):
        pa.table(result)
