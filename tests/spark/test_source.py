"""The data source `omnigraph`: reading, writing and streaming from any Spark program."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person

import omnigraph
from omnigraph.graph import Graph

PEOPLE = [
    person("Ada", age=36, born="1815-12-10", face="base64:AAEC", spot=[0.5, 1], tags=["a", "b"]),
    person("Bo", age=40, level="low", seen="2024-01-31T12:00:00.123Z", tags=[]),
    person("Cy"),
]


@pytest.fixture
def graph(tmp_path: Path, spark: Any) -> Graph:
    omnigraph.spark.register(spark)
    made = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    made.ingest([*PEOPLE, note("n1"), knows("Ada", "Bo", id="k1"), owns("Ada", "n1", id="o1")])
    return made


def read(spark: Any, graph: Graph, type_: str, **options: str) -> Any:
    reader = spark.read.format("omnigraph").option("graph", graph.uri).option("type", type_)
    return reader.options(**options).load()


def test_a_type_reads_as_a_table(spark: Any, graph: Graph) -> None:
    rows = {row["name"]: row for row in read(spark, graph, "Person").collect()}
    assert rows["Ada"].age == 36
    assert rows["Ada"].born == datetime.date(1815, 12, 10)
    assert bytes(rows["Ada"].face) == b"\0\1\2"
    assert rows["Ada"].spot == [0.5, 1.0]
    assert rows["Ada"].tags == ["a", "b"]
    assert (rows["Bo"].tags, rows["Bo"].level) == ([], "low")
    assert rows["Cy"]["rank"] == 7
    assert rows["Cy"].face is None
    (edge,) = read(spark, graph, "Knows").collect()
    assert (edge.id, edge.src, edge.dst) == ("k1", "Ada", "Bo")


def test_a_table_of_many_files_is_read_by_few_tasks(spark: Any, graph: Graph) -> None:
    for number in range(9):
        graph.ingest([person(f"p{number}")])
    people = read(spark, graph, "Person")
    assert people.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    assert people.count() == len(PEOPLE) + 9


def test_workers_do_not_look_through_their_imports_for_garbage(spark: Any) -> None:
    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"n": [gc.get_freeze_count()]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(frozen, "n long").collect()
    assert row.n > 10_000


def test_filters_mean_what_they_mean_in_spark(spark: Any, graph: Graph) -> None:
    people = read(spark, graph, "Person")
    everybody = people.collect()
    for condition in (
        "age > 36",
        "age >= 36 and name < 'B'",
        "age is null",
        "name in ('Ada', 'Cy', null)",
        "not age = 36",
        "born = date'1815-12-10'",
        "seen > timestamp'2024-01-01'",
        "level is not null or age = 36",
        "rank = 7",
    ):
        held = spark.createDataFrame(everybody, people.schema)
        expected = {row["name"] for row in held.where(condition).collect()}
        assert {row["name"] for row in people.where(condition).collect()} == expected, condition
        pushed = read(spark, graph, "Person", pushFilters="true").where(condition)
        assert {row["name"] for row in pushed.collect()} == expected, condition


def test_a_read_stays_at_its_commit(spark: Any, graph: Graph) -> None:
    before = graph.snapshot().commit_id  # ledger: C02 B03
    planned = read(spark, graph, "Person")
    graph.ingest([person("Late")])
    assert planned.count() == 3
    assert read(spark, graph, "Person").count() == 4
    assert read(spark, graph, "Person", commit=before).count() == 3
    few = spark.read.format("omnigraph").schema("name string").option("type", "Person")
    assert few.load(graph.uri).columns == ["name"]


def test_plain_sql_works_on_views(spark: Any, graph: Graph) -> None:
    views = omnigraph.spark.create_views(spark, graph.uri, prefix="g_")
    assert views["Person"] == "g_Person"
    found = spark.sql(
        "select a.name, b.name as other from g_Knows k join g_Person a on a.id = k.src "
        "join g_Person b on b.id = k.dst"
    ).collect()
    assert [tuple(row) for row in found] == [("Ada", "Bo")]


def test_relative_addresses_count_from_the_folder_of_the_program(
    spark: Any, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the program moved on. (Streams: `tests/unit/spark/test_changestream.py`.)"""
    monkeypatch.chdir(tmp_path)
    omnigraph.spark.register(spark)
    omnigraph.spark.create_views(spark, "graph", prefix="near_")
    monkeypatch.undo()
    assert spark.sql("select * from near_Person").count() == 3
    assert spark.read.format("omnigraph").options(graph="graph", type="Note").load().count() == 1
    more = spark.createDataFrame([("Di",)], "name string").write.format("omnigraph")
    more.options(graph="graph", type="Person").mode("append").save()
    assert len(content(graph)["Person"]) == 4


def write(frame: Any, graph: Graph, type_: str, mode: str = "append", **options: str) -> None:
    writer = frame.write.format("omnigraph").option("graph", graph.uri).option("type", type_)
    writer.option("mode", mode).options(**options).mode("append").save()


def test_a_frame_is_written_as_one_commit(spark: Any, graph: Graph) -> None:
    frame = spark.createDataFrame([("Di", 3), ("Ed", 4)], "name string, age int")
    write(frame, graph, "Person", message="from spark", actor="sam")
    (newest, *_) = graph.commits()
    assert (newest.message, newest.actor, str(newest.kind)) == ("from spark", "sam", "load")
    assert len(content(graph)["Person"]) == 5
    write(spark.createDataFrame([("Di", 9)], "name string, age int"), graph, "Person", "merge")
    assert {r["name"]: r["age"] for r in content(graph)["Person"]}["Di"] == 9
    links = spark.createDataFrame([("Di", "Ed")], "src string, dst string")
    write(links, graph, "Knows")
    replaced = spark.createDataFrame([("Ada", "Ed")], "`from` string, `to` string")
    writer = replaced.write.format("omnigraph").option("graph", graph.uri).option("type", "Knows")
    writer.mode("overwrite").save()
    assert [(r["src"], r["dst"]) for r in content(graph)["Knows"]] == [("Ada", "Ed")]
    assert not list(graph._context.root.objects.list("__staging"))


def test_a_frame_that_breaks_a_rule_is_refused(spark: Any, graph: Graph) -> None:
    head = graph.snapshot().commit_id
    with pytest.raises(Exception, match="there is no Person 'Nobody'"):
        write(spark.createDataFrame([("Nobody", "Ada")], "src string, dst string"), graph, "Knows")
    assert graph.snapshot().commit_id == head
    assert not list(graph._context.root.objects.list("__staging"))


def test_what_is_read_can_be_written(spark: Any, graph: Graph, tmp_path: Path) -> None:
    other = omnigraph.init(str(tmp_path / "other"), SCHEMA)
    for type_ in ("Person", "Note", "Knows", "Owns"):
        write(read(spark, graph, type_), other, type_)
    assert content(other) == content(graph)
