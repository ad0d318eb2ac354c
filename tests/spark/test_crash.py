"""A load that is killed leaves the graph as it was or as it should be, and nothing stuck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person, write_lines
from tests.spark.writer import QUESTIONS

import omnigraph
from omnigraph import faults

ROOT = Path(__file__).resolve().parents[2]
POINTS = sorted(
    name
    for name in faults.POINTS
    if name.startswith("commit.") and not name.endswith(("_fork", "_confirm", "_steps"))
)
BASE = [person("Ada", age=1), note("n1"), owns("Ada", "n1", id="o1")]
MORE = [person("Ada", age=2), person("Bo"), note("n2"), knows("Ada", "Bo", id="k1")]

pytestmark = pytest.mark.crash


def run_writer(*arguments: str, timeout: int = 600, **environ: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tests.spark.writer", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    graph.ingest(BASE)
    return graph.uri, write_lines(tmp_path / "in.jsonl", MORE)


def check_after(uri: str, before: Any) -> None:
    """Old or new, never between; and the same load then succeeds."""
    read_only = omnigraph.open(uri, read_only=True)
    seen = content(read_only)
    assert len(seen["Person"]) in (1, 2)
    assert ("Knows" in seen) == (len(seen["Person"]) == 2)
    graph = omnigraph.open(uri)  # recovers
    assert not graph.recoveries().pending
    healed = content(graph)
    assert healed == before or len(healed["Person"]) == 2
    assert ("Knows" in healed) == (len(healed["Person"]) == 2)
    graph.ingest(MORE, "merge")
    final = content(graph)
    assert {row["name"]: row["age"] for row in final["Person"]} == {"Ada": 2, "Bo": None}
    assert len(final["Note"]) == 2


@pytest.mark.parametrize("point", POINTS)
def test_the_driver_killed_at_every_point(point: str, place: tuple[str, str]) -> None:
    uri, file = place  # ledger: R01 R03 R14 R15
    before = content(omnigraph.open(uri, read_only=True))
    ended = run_writer(uri, file, "here", OMNIGRAPH_FAULTS=f"{point}=kill")
    assert ended.returncode == -9, ended.stderr
    check_after(uri, before)


def test_the_driver_killed_between_two_tables_on_spark(place: tuple[str, str]) -> None:
    uri, file = place
    before = content(omnigraph.open(uri, read_only=True))
    ended = run_writer(uri, file, "local[2]", OMNIGRAPH_FAULTS="commit.after_table=kill@2")
    assert ended.returncode == -9, ended.stderr
    check_after(uri, before)


def test_a_cluster_of_two_workers(tmp_path: Path) -> None:
    """Load, query and export on executors elsewhere, one of which is killed while it writes."""
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    people = 60_000
    records: list[Any] = []
    for number in range(people):
        records.append(person(f"p{number}", age=number % 100, email=f"{number}@x"))
        records.append(knows(f"p{number}", f"p{number * 7 % people}"))
    file = write_lines(tmp_path / "in.jsonl", records)
    ended = run_writer(graph.uri, file, "local-cluster[2,1,1024]", "--kill", "--more", timeout=850)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["killed"] == 1
    assert said["rows"] == 2 * people
    assert said["exported"]["Person"] == said["degrees"] == people
    for text, rows in zip(QUESTIONS, said["asked"], strict=True):
        assert rows == graph.query(text).rows(), text
        assert rows
    found = content(omnigraph.open(graph.uri))  # ids are distinct and counts exact, or it raises
    assert (len(found["Person"]), len(found["Knows"])) == (people, people)
