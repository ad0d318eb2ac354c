"""A resident session: started once, found by commands, without a Java of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.inputs import SCHEMA, content, knows, person, write_lines

import omnigraph
from omnigraph.engines.spark.resident import RESIDENT_VARIABLE, read_state, write_state

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    file = tmp_path_factory.mktemp("resident") / "spark.json"
    options = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    try:
        ended = command(file, "spark", "start", "--master", "local[2]", "--conf", options)
        assert ended.returncode == 0, ended.stderr
        yield file
    finally:
        assert command(file, "spark", "stop").returncode == 0
        assert command(file, "spark", "status").stdout.strip() == "not running"


def command(state: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("omnigraph")), *words],
        cwd=ROOT,
        env={**os.environ, RESIDENT_VARIABLE: str(state), **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def without_java(state: Path, *words: str) -> Any:
    """A command that could not start a session of its own."""
    ended = command(state, *words, "--json", JAVA_HOME="/nowhere")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_commands_find_it_by_themselves(state: Path, tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    file = write_lines(tmp_path / "in.jsonl", [person("Ada"), person("Bo"), knows("Ada", "Bo")])
    loaded = without_java(state, "load", graph.uri, "--data", file)
    assert loaded["records"] == 3
    assert {row["name"] for row in content(graph)["Person"]} == {"Ada", "Bo"}
    degrees = without_java(state, "algorithm", graph.uri, "degree")["rows"]
    assert {row["id"]: row["degree"] for row in degrees} == {"Ada": 1, "Bo": 1}
    out = str(tmp_path / "out")
    wanted = ("--to", out, "--engine", "spark", "--format", "parquet")
    assert without_java(state, "export", graph.uri, *wanted)["rows"]["Person"] == 2


def test_bad_rows_and_progress_come_through(state: Path, tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    file = write_lines(tmp_path / "in.jsonl", [person("Ada"), person("Bo", age=-3)])
    ended = command(state, "load", graph.uri, "--data", file, "--progress", "json")
    assert ended.returncode == 8
    assert "in.jsonl" in ended.stderr
    events = [json.loads(line) for line in ended.stderr.splitlines() if '"progress"' in line]
    assert events[0]["progress"]["bytes_total"] > 0
    refused = command(state, "load", graph.uri, "--data", file, "--on-error", "quarantine",
                      "--rejects", str(tmp_path / "rejects"))  # fmt: skip
    assert refused.returncode == 0, refused.stderr
    assert len(content(graph)["Person"]) == 1


def test_started_again_it_stays_and_a_wrong_token_is_said(state: Path, tmp_path: Path) -> None:
    again = command(state, "spark", "start", "--json")
    assert json.loads(again.stdout)["started"] is False
    found = read_state(state)
    assert found is not None
    other = tmp_path / "other.json"
    write_state(other, replace(found, token="wrong"))
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    file = write_lines(tmp_path / "in.jsonl", [person("Ada")])
    ended = command(other, "load", graph.uri, "--data", file)
    assert ended.returncode == 1
    assert "refused the token" in ended.stderr
    assert "omnigraph spark stop" in ended.stderr
    remote = command(
        other, "load", graph.uri, "--data", file, "--master", found.endpoint(shared=False)
    )
    assert remote.returncode == 0, remote.stderr
