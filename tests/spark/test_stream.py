"""Two graphs kept equal by a stream of changes that is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.spark.inputs import SCHEMA, content, person
from tests.spark.test_changecopy import change

import omnigraph
from omnigraph.graph import Graph

ROOT = Path(__file__).resolve().parents[2]
KILLS = 10

pytestmark = pytest.mark.crash


def start(source: Graph, target: Graph, place: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.streamer", source.uri, target.uri, str(place), how],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str], machine: int) -> None:
    for pid in (machine, process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)


def wait(process: subprocess.Popen[str], is_so: Callable[[], bool]) -> None:
    """Until it is so, or the process is gone: on a starved machine Spark gives up by itself."""
    deadline = time.monotonic() + 600
    while not is_so() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_and_restarted_ten_times_both_graphs_end_equal(tmp_path: Path) -> None:
    """The driver and its virtual machine die while a batch is read and committed, or right after
    the graph has it and before the checkpoint does."""
    source = omnigraph.init(str(tmp_path / "source"), SCHEMA)
    target = omnigraph.init(str(tmp_path / "target"), SCHEMA)
    place = tmp_path / "checkpoint"
    source.ingest([person("Ada"), person("Bo")])
    chance = random.Random(7)
    for number in range(KILLS):
        change(source, number)
        planned, head = batches(place), target.snapshot().commit_id
        process = start(source, target, place, "on")
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert len(said) == 2, process.communicate()[1]
        if number % 2:
            wait(process, lambda head=head: target.snapshot().commit_id != head)  # type: ignore[misc]
        else:
            wait(process, lambda planned=planned: batches(place) > planned)  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, 1.0))
        kill(process, int(said[1]))
    for _ in range(3):
        final = start(source, target, place, "once")
        _, trouble = final.communicate(timeout=600)
        if "failed to connect back" not in trouble:
            break
    assert final.returncode == 0, trouble
    assert content(target) == content(source)
    keys = [c.idempotency_key for c in target.commits() if c.idempotency_key]
    assert len(keys) == len(set(keys)) >= KILLS // 2
    assert not target.recoveries().pending


def batches(place: Path) -> int:
    """How many batches the checkpoint speaks of."""
    return len(list((place / "offsets").glob("[0-9]*")))
