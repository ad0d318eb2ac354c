"""What is exported can be loaded again, on either engine and in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person, write_lines

import omnigraph
from omnigraph.errors import AlreadyExistsError, InvalidArgumentError
from omnigraph.graph import Graph

RECORDS = [
    person("Ada", age=36, email='a"da, @x', born="1815-12-10", face="base64:AAEC", spot=[0.5, 1]),
    person("Bo", level="low", tags=["a", "b,c"], seen="2024-01-31T12:00:00.123Z", email=""),
    person("Zoë", tags=[], face="base64:"),
    note("n1", "two\nlines"),
    note("n2", ""),
    knows("Ada", "Bo", since="2024-01-01", id="k1"),
    owns("Ada", "n1", share=0.1, id="o1"),
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    made.load(write_lines(tmp_path / "in.jsonl", RECORDS), engine="embedded")
    return made


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_an_export_loads_again(
    graph: Graph, tmp_path: Path, spark: Any, engine: str, format: str
) -> None:
    place = tmp_path / "out"
    result = graph.export(str(place), format=format, engine=engine)  # ledger: B03
    assert result.rows == {"Person": 3, "Note": 2, "Knows": 1, "Owns": 1}
    assert result.commit_id == graph.snapshot().commit_id
    again = omnigraph.init(str(tmp_path / "again"), SCHEMA)
    again.load(str(place), engine=engine)
    assert content(again) == content(graph)
    with pytest.raises(AlreadyExistsError):
        graph.export(str(place), format=format, engine=engine)


def test_older_states_and_branches_are_exported(graph: Graph, tmp_path: Path) -> None:
    before = graph.snapshot().commit_id
    graph.ingest([person("Late")])
    graph.create_branch("side", commit=before)
    old = tmp_path / "old.jsonl"
    graph.export(str(old), commit=before)
    side = tmp_path / "side.jsonl"
    graph.on("side").export(str(side))
    assert old.read_bytes() == side.read_bytes()
    assert b"Late" not in old.read_bytes()
    assert b"Late" in b"".join(graph.export_lines())
    assert len(graph.export(str(tmp_path / "one"), types=["Note"]).rows) == 1
    with pytest.raises(InvalidArgumentError, match="one file"):
        graph.export(str(tmp_path / "x.jsonl"), format="csv")


def test_equal_graphs_give_equal_files(graph: Graph, tmp_path: Path) -> None:
    other = omnigraph.init(str(tmp_path / "other"), SCHEMA)
    for record in reversed(RECORDS[:5]):
        other.ingest([record])
    other.ingest(RECORDS[5:])
    assert b"".join(graph.export_lines()) == b"".join(other.export_lines())
