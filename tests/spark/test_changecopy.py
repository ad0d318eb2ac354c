"""Two graphs kept equal by changes, whose copier is killed wherever a commit can be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.inputs import SCHEMA, content, knows, note, owns, person
from tests.spark.test_crash import POINTS

import omnigraph
from omnigraph.graph import Graph

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.crash


def change(graph: Graph, number: int) -> None:
    """Several commits: inserts, updates, edges that move, and entities that go."""
    name = f"s{number}"
    graph.ingest(
        [person(name, age=number, face="base64:AAEC", spot=[number, 1]), note(f"n{number}")]
    )
    graph.ingest([knows(name, "Ada", id=f"k{number}"), owns(name, f"n{number}", id=f"o{number}")])
    graph.ingest([person("Ada", age=number), knows("Ada", name, id="turning")], "merge")
    if number % 3 == 2:
        graph.mutate(f'query q() {{ delete Person where name = "s{number - 1}" }}')


def test_killed_at_every_point_of_a_commit_both_graphs_end_equal(tmp_path: Path) -> None:
    """As `test_stream`, without Spark and at the instants that matter."""
    source = omnigraph.init(str(tmp_path / "source"), SCHEMA)
    target = omnigraph.init(str(tmp_path / "target"), SCHEMA)
    source.ingest([person("Ada"), person("Bo")])
    command = [sys.executable, "-m", "tests.spark.copier", source.uri, target.uri]
    command.append(str(tmp_path / "notes.json"))

    def run(**environ: str) -> int:
        given = {**os.environ, **environ}
        return subprocess.run(command, cwd=ROOT, env=given, check=False, timeout=300).returncode

    for number, point in enumerate(POINTS):
        change(source, number)
        assert run(OMNIGRAPH_FAULTS=f"{point}=kill") == -signal.SIGKILL, point
    assert run() == 0
    assert content(target) == content(source)
    keys = [c.idempotency_key for c in target.commits() if c.idempotency_key]
    assert len(keys) == len(set(keys))
    assert not target.recoveries().pending
