"""A stream of changes without Spark: what a reader gives, a writer carries out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person

import omnigraph
from omnigraph.errors import InvalidArgumentError, InvalidDataError
from omnigraph.graph import Graph
from omnigraph.operations.replay import Changes
from omnigraph.operations.requests import Replay
from omnigraph.operations.verbs import run
from omnigraph.spark.changestream import ChangeStream, change_schema
from omnigraph.spark.netchanges import net_changes
from omnigraph.spark.source import source_at
from omnigraph.writes.request import Conditions

ALL = [item.split()[0] for item in change_schema(None).split(", ")]


@pytest.fixture
def source(tmp_path: Path) -> Graph:
    graph = omnigraph.init(str(tmp_path / "source"), SCHEMA)
    graph.ingest(
        [
            person("Ada", age=1, face="base64:AAEC", spot=[0.5, 1], tags=["a\u2028b", "c\n"]),
            person("Bo", seen="2024-01-31T12:00:00.123Z", born="1815-12-10"),
            person("Cy", level="low", email="c@x"),
            note("n1"),
            note("n2"),
            knows("Ada", "Bo", id="k1", since="2020-01-01"),
            knows("Bo", "Cy", id="k2"),
            owns("Ada", "n1", id="o1", share=0.25),
        ]
    )
    graph.ingest([person("Ada", age=2), knows("Ada", "Cy", id="k1")], "merge")
    graph.mutate('query q() { delete Person where name = "Bo" }')
    graph.ingest([person("Bo", age=9), knows("Cy", "Bo", id="k3")])
    graph.mutate('query q() { delete Note where text = "…" }')
    return graph


def stream(graph: Graph, columns: list[str] = ALL, most: int = 256) -> ChangeStream:
    return ChangeStream(graph.snapshot().location, "main", None, "beginning", columns, most)


def batches(reader: ChangeStream) -> Iterator[pa.Table]:
    """What micro-batches would bring until the head is reached."""
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found = [b for p in reader.partitions(start, end) for b in reader.read(p)]
        if found:
            yield pa.Table.from_batches(found)
        start = end


@pytest.mark.parametrize("most", [1, 2, 256])
def test_another_graph_is_kept_equal(source: Graph, tmp_path: Path, most: int) -> None:
    copy = omnigraph.init(str(tmp_path / "copy"), SCHEMA)  # ledger: B03
    for number, rows in enumerate(batches(stream(source, most=most))):
        for _ in range(2):  # a repeated batch changes nothing
            conditions = Conditions("copier", idempotency_key=f"stream:copy:{number}")
            run(copy._context, Replay(net_changes(rows, None), "main", conditions))
    assert content(copy) == content(source)
    assert {c.actor for c in copy.commits()} >= {"copier"}
    assert "Note" not in content(copy)


def test_a_batch_reads_the_same_twice(source: Graph) -> None:
    reader = stream(source)
    whole = reader.latestOffset({"sequence": 0}, ReadAllAvailable())
    (partition,) = reader.partitions({"sequence": 0}, whole)
    first, second = (pa.Table.from_batches(reader.read(partition)) for _ in range(2))
    assert first.equals(second)
    assert set(first.column("_op").to_pylist()) == {"insert", "update", "delete"}
    assert reader.partitions(whole, whole) == []


def test_available_now_stops_at_the_head_of_its_beginning(source: Graph) -> None:
    reader = stream(source)
    reader.prepareForTriggerAvailableNow()
    before = reader.latestOffset({"sequence": 0}, ReadAllAvailable())
    source.ingest([person("Late")])
    assert reader.latestOffset({"sequence": 0}, ReadAllAvailable()) == before


def test_changes_of_one_type_are_carried_out(source: Graph, tmp_path: Path) -> None:
    copy = omnigraph.init(str(tmp_path / "copy"), SCHEMA)
    table = source.snapshot().catalog.node("Person")
    assert table is not None
    columns = [part.strip("` ").split()[0].strip("`") for part in change_schema(table).split(", ")]
    reader = ChangeStream(source.snapshot().location, "main", table, "beginning", columns)
    for rows in batches(reader):
        run(copy._context, Replay(net_changes(rows, "Person"), "main"))
    assert content(copy)["Person"] == content(source)["Person"]


def test_a_stream_name_that_was_used_for_other_changes_is_refused(
    source: Graph, tmp_path: Path
) -> None:
    copy = omnigraph.init(str(tmp_path / "copy"), SCHEMA)
    first, *_ = batches(stream(source, most=2))
    conditions = Conditions("copier", idempotency_key="stream:copy:0")
    run(copy._context, Replay(net_changes(first, None), "main", conditions))
    other = Changes(removed={"Person": ["Ada"]})
    with pytest.raises(InvalidArgumentError, match="was used for another request"):
        run(copy._context, Replay(other, "main", conditions))


def test_changes_that_break_a_rule_are_refused(source: Graph) -> None:
    head = source.snapshot().commit_id
    with pytest.raises(InvalidDataError, match="Ada"):
        run(source._context, Replay(Changes(removed={"Person": ["Ada"]}), "main"))
    with pytest.raises(InvalidDataError, match="'_op'"):
        net_changes(pa.table({"id": ["a"]}), "Person")
    assert source.snapshot().commit_id == head


def test_ids_that_are_gone_already_are_no_obstacle(source: Graph) -> None:
    done = run(source._context, Replay(Changes(removed={"Note": ["n1", "never"]}), "main"))
    assert done.commit is None


def test_a_relative_address_travels_as_a_whole_one(
    source: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks stand in folders of their own, and open the graph there."""
    kind = pickle.loads(cloudpickle.dumps(source_at(str(tmp_path), 2)))
    schema = StructType([StructField("id", StringType()), StructField("_type", StringType())])
    monkeypatch.chdir("/")
    reader = kind({"graph": "source", "startingAt": "beginning"}).streamReader(schema)
    (found,) = batches(pickle.loads(pickle.dumps(reader)))
    assert found.equals(next(batches(stream(source, ["id", "_type"]))))
