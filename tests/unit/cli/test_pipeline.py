"""`load`, `export` and what they share, through the command line and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import run
from omnigraph.cli.pipeline import OnSpark, listener
from omnigraph.engines.spark.jobevents import ProgressEvent

SCHEMA = """
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> str:
    schema = tmp_path / "s.pg"
    schema.write_text(SCHEMA)
    place = str(tmp_path / "g")
    assert run(["init", place, "--schema", str(schema)]) == 0
    return place


def test_what_is_loaded_can_be_exported(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("full name,age\nAda,36\nBo,\n")
    links = tmp_path / "Knows.csv"
    links.write_text("from,to\nAda,Bo\n")
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- file: people.csv\n  type: Person\n  columns: {full name: name}\n")
    capsys.readouterr()
    arguments = ["load", graph, "--data", str(people), "--data", str(links)]
    arguments += ["--mapping", str(mapping), "--engine", "embedded", "--json"]
    assert run(arguments) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert said["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    assert (said["total_entities"], said["records"]) == (3, 3)
    assert run(["export", graph, "--to", "-"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"type": "Person", "data": {"name": "Ada", "age": 36}}
    assert lines[2]["from"] == "Ada"
    assert run(["export", graph, "--type", "Person"]) == 0  # standard output unless told otherwise
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines[:2]
    assert run(["export", graph, "--type", "Nobody"]) == 3
    assert run(["export", graph, "--format", "csv"]) == 2
    out = tmp_path / "out"
    assert run(["export", graph, "--to", str(out), "--format", "parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"Person": 2, "Knows": 1}
    assert sorted(file.name for file in out.iterdir()) == ["Knows.parquet", "Person.parquet"]
    assert run(["export", graph, "--to", str(out)]) == 5


def test_refusals_name_lines(
    graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "in.jsonl"
    data.write_text('{"type": "Person", "data": {"name": "Ada"}}\n{"type": "Person", "data": {}}\n')
    assert run(["load", graph, "--data", str(data), "--engine", "embedded"]) == 8
    assert f"{data}:2: Person.name: name is required" in capsys.readouterr().err
    broken = tmp_path / "broken.yaml"
    broken.write_text("[")
    arguments = ["load", graph, "--data", str(data), "--engine", "embedded"]
    assert run([*arguments, "--mapping", str(broken)]) == 2
    assert run([*arguments, "--mode", "sideways"]) == 2
    assert run(["load", graph, "--data", str(data), "--engine", "steam"]) == 2


def test_progress_goes_where_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    event = ProgressEvent("write", 1, 2, 1.0, 1.0, rows=3, bytes=40, bytes_total=80)
    tell = listener("json")
    assert tell is not None
    tell(event)
    told = json.loads(capsys.readouterr().err)["progress"]
    assert (told["tasks_done"], told["rows"], told["bytes"], told["eta_s"]) == (1, 3, 40, 1.0)
    assert listener("none") is None
    assert listener("auto") is None  # a test has no terminal


def test_settings_come_from_flags() -> None:
    settings = OnSpark("local[2]", None, ["spark.a=1", "spark.b=2"]).settings()
    assert settings.place == "local[2]"
    assert settings.config == {"spark.a": "1", "spark.b": "2"}


def test_a_small_load_does_not_wait_for_spark(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tasks run here; a Spark that is asked for is started all the same."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("OMNIGRAPH_SPARK_RESIDENT", "off")
    for name in ("OMNIGRAPH_SPARK_MASTER", "OMNIGRAPH_SPARK_REMOTE", "OMNIGRAPH_SPARK_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("omnigraph.engines.spark.session._active", lambda: None)
    data = tmp_path / "in.jsonl"
    data.write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    assert run(["load", graph, "--data", str(data)]) == 0
    assert "Person: 1 inserted" in capsys.readouterr().out
    assert run(["load", graph, "--data", str(data), "--mode", "merge", "--master", "local[1]"]) == 1
    assert "needs Java 17" in capsys.readouterr().err
    monkeypatch.setattr("omnigraph.operations.load.SMALL_BYTES", 10)
    assert run(["load", graph, "--data", str(data), "--mode", "merge"]) == 1
    data.write_text('{"type": "Person", "data": {}}\n')
    monkeypatch.setattr("omnigraph.operations.load.SMALL_BYTES", 10_000)
    assert run(["load", graph, "--data", str(data)]) == 8
