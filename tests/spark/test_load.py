"""Loading on Spark gives the graph, and the refusals, that loading in-process gives."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.inputs import (
    SCHEMA,
    content,
    knows,
    note,
    owns,
    person,
    write_lines,
)

import omnigraph
from omnigraph.bulk import load
from omnigraph.errors import (
    InvalidArgumentError,
    InvalidDataError,
    KeyConflictError,
    OmniGraphError,
    PreconditionFailedError,
)
from omnigraph.graph import Graph

pytestmark = pytest.mark.usefixtures("spark")

BASE = [
    person("Ada", age=36, email="ada@x", born="1815-12-10", face="base64:AAEC", spot=[0.5, 1]),
    person("Bo", age=40, level="low", tags=["a", "b"], seen="2024-01-31T12:00:00.123Z"),
    knows("Ada", "Bo", since="2024-01-01", id="k0"),
    note("n1", "first"),
    note("n2"),
    owns("Ada", "n1", share=0.5, id="o0"),
]


@pytest.fixture(autouse=True)
def _keys_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few keys would be checked by the driver; these tests are about executors."""
    monkeypatch.setattr(load, "_FEW_ROWS", -1)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Graph, Graph]:
    """Two graphs with the same content, one for each engine."""
    return make(tmp_path / "spark"), make(tmp_path / "embedded")


def make(path: Path) -> Graph:
    graph = omnigraph.init(str(path), SCHEMA)
    graph.ingest(json_lines(BASE))
    return graph


def json_lines(records: list[Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in records).encode()


def outcome(graph: Graph, source: Any, mode: str, engine: str, **more: Any) -> Any:
    """What a load says: counts, or the refusal in words."""
    try:
        result = graph.load(source, mode, engine=engine, **more)
    except InvalidDataError as error:
        return [str(v) for v in error.violations], error.total
    except KeyConflictError as error:
        return error.message
    affected = {name: (a.inserted, a.updated, a.deleted) for name, a in result.affected.items()}
    return {name: counts for name, counts in affected.items() if any(counts)}


GOOD: dict[str, tuple[str, list[Any]]] = {
    "append": ("append", [knows("Cy", "Ada"), person("Cy"), "", person("Di", email="di@x")]),
    "edges to committed nodes": ("append", [knows("Ada", "Bo"), owns("Bo", "n1")]),
    "merge": (
        "merge",
        [
            person("Ada", age=37),
            person("Cy"),
            person("Cy", age=1, email="ada@x"),
            note("n1", "second"),
            note("n3"),
        ],
    ),
    "merge that hands a unique value on": (
        "merge",
        [person("Ada"), person("Bo", email="ada@x")],
    ),
    "merge of edges by id": (
        "merge",
        [knows("Ada", "Bo", id="k1"), knows("Bo", "Ada", id="k1"), owns("Ada", "n2", id="o1")],
    ),
    "overwrite": ("overwrite", [person("Ada", age=1), person("Bo"), person("Zed")]),
    "overwrite edges": ("overwrite", [knows("Bo", "Bo")]),
    "nothing": ("append", ["", "   "]),
}

BAD: dict[str, tuple[str, list[Any]]] = {
    "rows": (
        "append",
        [
            person("Cy", age="old"),
            "{no json",
            "",
            person("Di", age=-1, level="middle"),
            {"type": "Persn", "data": {}},
            knows("Ada", "Bo", until=3),
            '{"type": "Person", "data": {"name": "x"}} {}',
            person("Ed", born="2024-02-30", face="nothing", spot=[1]),
            {"edge": "Knows", "to": "Ada"},
        ],
    ),
    "repeated ids": ("append", [person("Cy"), note("n7"), person("Cy", age=2), note("n7")]),
    "taken ids": ("append", [person("Cy"), person("Ada"), person("Bo")]),
    "sets": (
        "append",
        [
            knows("Nobody", "Ada"),
            person("Cy", email="ada@x"),
            person("Di", email="d@x"),
            person("Ed", email="d@x"),
            owns("Bo", "n1"),
            owns("Bo", "n2"),
            owns("Bo", "n9"),
            owns("Ada", "n2"),
            owns("Ada", "n1"),
        ],
    ),
    "merge against committed": (
        "merge",
        [person("Cy", email="ada@x"), owns("Ada", "n2"), owns("Ada", "n1")],
    ),
    "overwrite leaves edges alone": ("overwrite", [person("Bo")]),
    "overwrite and repeat": ("overwrite", [person("Bo"), person("Bo")]),
}


@pytest.mark.parametrize("case", GOOD)
def test_both_engines_give_the_same_graph(  # ledger: C09
    case: str, pair: tuple[Graph, Graph], tmp_path: Path
) -> None:
    mode, records = GOOD[case]
    file = write_lines(tmp_path / "in.jsonl", records)
    spark, embedded = pair
    counted = outcome(spark, file, mode, "spark")
    assert counted == outcome(embedded, file, mode, "embedded")
    assert content(spark) == content(embedded)


@pytest.mark.parametrize("case", BAD)
def test_both_engines_refuse_in_the_same_words(  # ledger: C09 T05
    case: str, pair: tuple[Graph, Graph], tmp_path: Path
) -> None:
    mode, records = BAD[case]
    file = write_lines(tmp_path / "in.jsonl", records)
    spark, embedded = pair
    before, head = content(spark), spark.snapshot().commit_id
    said = outcome(spark, file, mode, "spark")
    assert not isinstance(said, dict)
    assert said == outcome(embedded, file, mode, "embedded")
    assert content(spark) == before
    assert spark.snapshot().commit_id == head


def test_random_loads_agree(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    chance = random.Random(7)
    for number in range(6):
        names = [f"p{chance.randrange(12)}" for _ in range(6)] + ["Ada", "Bo"]
        records: list[Any] = [person(name, age=chance.randrange(99)) for name in names]
        records += [knows(chance.choice(names), chance.choice(names)) for _ in range(5)]
        records += [owns(chance.choice(names), "n1") for _ in range(chance.randrange(3))]
        chance.shuffle(records)
        file = write_lines(tmp_path / f"{number}.jsonl", records)
        mode = chance.choice(["append", "merge", "merge"])
        said = [
            outcome(graph, file, mode, engine)
            for graph, engine in zip(pair, ("spark", "embedded"), strict=True)
        ]
        assert said[0] == said[1]
        assert content(pair[0]) == content(pair[1])


def test_all_types_land_in_one_commit(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    graph, _ = pair  # ledger: C01 C03
    file = write_lines(tmp_path / "in.jsonl", [person("Cy"), note("n5"), knows("Cy", "Ada")])
    before = len(list(graph.commits()))
    result = graph.load(file, message="a load", idempotency_key="k")
    assert result.commit is not None
    assert len(list(graph.commits())) == before + 1
    assert {version.table_id for version in result.commit.changes} == {
        table.id for table in graph.snapshot().catalog.tables() if table.name != "Owns"
    }
    assert (result.commit.message, str(result.commit.kind)) == ("a load", "load")
    again = graph.load(file, idempotency_key="k")  # ledger: C16
    assert again.repeated
    assert again.commit_id == result.commit_id
    with pytest.raises(PreconditionFailedError):
        graph.load(file, "merge", if_commit="01AAAAAAAAAAAAAAAAAAAAAAAA")


def test_every_form_of_source_is_one(pair: tuple[Graph, Graph], tmp_path: Path, spark: Any) -> None:
    graph, _ = pair  # ledger: Q08
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "Person.csv").write_text('name,age,tags\nc1,5,"[""t""]"\nc2,,\n')
    (folder / "extra.csv.gz").write_bytes(gzip.compress(b"who;years\nc3;8\n"))
    pq.write_table(pa.table({"name": ["q1"], "age": [3]}), folder / "person-1.parquet")
    with pa.ipc.new_file(
        str(folder / "Knows.arrow"), pa.schema([("from", pa.string()), ("to", pa.string())])
    ) as out:
        out.write_table(pa.table({"from": ["c1"], "to": ["q1"]}))
    (folder / "mixed.jsonl.gz").write_bytes(gzip.compress(json_lines([person("z1"), note("n5")])))
    import lance

    lance.write_dataset(pa.table({"name": ["l1"]}), str(folder / "Person.lance"))
    mapping = {
        "file": "extra*",
        "type": "Person",
        "delimiter": ";",
        "columns": {"who": "name", "years": "age"},
    }
    result = graph.load([str(folder)], mapping=mapping)
    assert result.affected["Person"].inserted == 6
    assert result.affected["Knows"].inserted == 1
    names = {row["name"]: row for row in content(graph)["Person"]}
    assert names["c1"]["tags"] == ["t"]
    assert names["c3"]["age"] == 8
    frame = spark.createDataFrame([("s1", 3), ("s2", 4)], "name string, age int")
    frame.createOrReplaceTempView("people")
    assert graph.load(frame, type="Person").affected["Person"].inserted == 2
    assert graph.load("table:people", "merge", type="Person").affected["Person"].updated == 2
    tables = {
        "Person": pa.table({"name": ["t1"]}),
        "Knows": pa.table({"from": ["t1"], "to": ["s1"]}),
    }
    assert graph.load(tables).edges == 1
    with pytest.raises(InvalidArgumentError, match="type of the rows"):
        graph.load(frame)
    assert not list(graph._context.root.objects.list("__staging"))


def test_refused_records_can_be_set_aside(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    graph, _ = pair
    records: list[Any] = [
        person("Cy"),
        person("Di", age="old"),
        knows("Di", "Cy"),  # its node was refused, so it goes too
        "{broken",
        knows("Cy", "Ada"),
        person("Ada"),
        person("Cy", age=3),
        owns("Ada", "n2"),
        owns("Ada", "n2"),
    ]
    file = write_lines(tmp_path / "in.jsonl", records)
    place = tmp_path / "rejects"
    result = graph.load(file, on_error="quarantine", rejects=str(place))
    assert result.affected["Person"].inserted == 1
    assert result.affected["Knows"].inserted == 1
    assert "Owns" not in result.affected
    texts = [each.read_text() for each in sorted(place.iterdir())]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [reject["line"] for reject in found] == [2, 3, 4, 6, 7, 8, 9]
    assert result.rejected == 7
    assert all(reject["reasons"] for reject in found)
    assert found[0]["source"] == json.dumps(records[1])
    with pytest.raises(InvalidArgumentError, match="not empty"):
        graph.load(file, on_error="quarantine", rejects=str(place))
    with pytest.raises(InvalidArgumentError):
        graph.load(file, on_error="quarantine")


def test_overwrite_by_nothing_empties_what_is_named(
    pair: tuple[Graph, Graph], tmp_path: Path
) -> None:
    graph, _ = pair  # ledger: C09
    empty = write_lines(tmp_path / "in.jsonl", [])
    with pytest.raises(InvalidArgumentError, match="no type to replace"):
        graph.load(empty, "overwrite")
    graph.load(empty, "overwrite", types=["Owns"])
    assert "Owns" not in content(graph)
    assert "Knows" in content(graph)


def test_loads_stay_on_their_branch(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    graph, _ = pair
    branch = graph.create_branch("side")
    file = write_lines(tmp_path / "in.jsonl", [person("Cy"), person("Ada", age=99)])
    branch.load(file, "merge")
    assert len(content(branch)["Person"]) == 3
    assert len(content(graph)["Person"]) == 2
    graph.load(file, "merge")
    assert len(content(graph)["Person"]) == 3


def test_progress_is_told(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    graph, _ = pair
    events: list[Any] = []
    file = write_lines(tmp_path / "in.jsonl", [person(f"c{number}") for number in range(50)])
    graph.load(file, progress=events.append)
    first, *_, last = (event for event in events if event.finished)
    assert first.stage == "read, check and write rows"
    size = Path(file).stat().st_size
    assert (first.rows, first.bytes, first.bytes_total, first.eta_s) == (50, size, size, 0.0)
    assert last.stage == "commit"
    assert all(event.to_json()["tasks"] >= 1 for event in events)


def test_a_graph_in_memory_is_out_of_reach() -> None:
    graph = omnigraph.init("memory://spark-load", SCHEMA)
    with pytest.raises(InvalidArgumentError, match="in memory"):
        graph.load("nothing.jsonl")


def test_a_missing_file_is_named(pair: tuple[Graph, Graph]) -> None:
    with pytest.raises(OmniGraphError, match="There is no file"):
        pair[0].load("/nowhere/at/all.jsonl")


def test_lines_are_exact_in_a_million(tmp_path: Path) -> None:
    """Three bad lines in the middle of a million are named, and nothing is committed."""
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    lines = 1_000_000
    bad = {
        333_333: '{"type": "Person", "data": {"name": 7}}',
        500_001: "not json",
        777_777: '{"type": "Person", "data": {"name": "x", "age": 151}}',
    }
    file = tmp_path / "in.jsonl"
    with file.open("w") as out:
        for number in range(1, lines + 1):
            if number in bad:
                out.write(bad[number] + "\n")
            elif number % 5 == 0:
                out.write(f'{{"type": "Person", "data": {{"name": "p{number}"}}}}\n')
            else:
                out.write(f'{{"edge": "Knows", "from": "p5", "to": "p{number // 5 * 5 or 5}"}}\n')
    head = graph.snapshot().commit_id
    with pytest.raises(InvalidDataError) as caught:
        graph.load(str(file))
    assert [(v.line, v.record) for v in caught.value.violations] == [(n, n - 1) for n in bad]
    assert caught.value.details["rules"] == {"json": 1, "range": 1, "type": 1}
    assert graph.snapshot().commit_id == head


def test_vectors_are_made_while_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = """
node Doc {
    name: String @key
    text: String?
    vec: Vector(8)? @embed("text")
    must: Vector(4) @embed("text")
}
"""
    graph = omnigraph.init(str(tmp_path / "g"), schema)
    records = [
        {"type": "Doc", "data": {"name": "a", "text": "alpha"}},
        {"type": "Doc", "data": {"name": "b", "text": "alpha", "vec": [1.0] * 8}},
    ]
    file = write_lines(tmp_path / "in.jsonl", records)
    with pytest.raises(InvalidDataError, match="must is required"):
        graph.load(file)  # no provider is configured
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.load(file, "overwrite")  # makes what is required, and nothing else
    rows = {row["name"]: row for row in content(graph)["Doc"]}
    assert rows["a"]["vec"] is None
    assert len(rows["a"]["must"]) == 4
    graph.load(file, "overwrite", embed=True)
    rows = {row["name"]: row for row in content(graph)["Doc"]}
    assert rows["b"]["vec"] == [1.0] * 8
    assert len(rows["a"]["vec"]) == 8
    assert sum(x * x for x in rows["a"]["vec"]) == pytest.approx(1.0, abs=1e-5)
    assert rows["a"]["must"] == rows["b"]["must"]
    none = write_lines(tmp_path / "none.jsonl", [{"type": "Doc", "data": {"name": "c"}}])
    with pytest.raises(InvalidDataError, match="must is required"):
        graph.load(none, embed=True)
