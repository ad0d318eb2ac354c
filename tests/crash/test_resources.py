"""A disk that is full, memory that is short, files that may not be opened: nothing is lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.crash.nursery import ROOT, Nursery
from tests.crash.scarcity import LARGE, count_rows
from tests.crash.sizes import note
from tests.crash.verbs import SCHEMA, envelopes

import omnigraph

pytestmark = pytest.mark.crash

SMALL = "size=4m"


def may_mount(folder: Path) -> bool:
    """Whether this machine lets us mount a small disk for one process."""
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def on_small_disk(folder: Path, options: str, work: str) -> dict[str, Any]:
    """What a work of `scarcity` reports, done on a disk of its own."""
    command = f"{sys.executable} -m tests.crash.scarcity {work} {folder}"
    script = f"mount -t tmpfs -o {options} tmpfs {folder} && {command}"
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


# ledger: R10 R15
@pytest.mark.slow
def test_a_full_disk(tmp_path: Path) -> None:
    """A real one, of four megabytes. Injected ones meet every step in the fault sweep."""
    if not may_mount(tmp_path):
        pytest.skip("no small disk can be mounted here; the fault sweep injects full disks")
    said = on_small_disk(tmp_path, SMALL, "full")
    assert len(said["errors"]) == 3, "the disk was never full"
    assert said["told"], "nothing fitted at all"
    assert set(said["told"]) <= set(said["seen"]) <= {*said["told"], *said["unclear"]}
    assert set(said["seen"]) <= set(said["after"]) <= {*said["told"], *said["unclear"]}
    assert said["rows"] == [40 * (len(said["after"]) + 1)]
    assert said["findings"] == []
    note(
        "resources",
        what="full disk of 4 MB",
        done=len(said["told"]),
        refused=", ".join(said["errors"]),
        acknowledged_before="all there",
        next_write="done, once there was room",
    )


# ledger: R15
@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_18_23_cleanup_on_a_full_disk(tmp_path: Path, what: str) -> None:
    if not may_mount(tmp_path):
        pytest.skip("no small disk can be mounted here")
    options = {"bytes": SMALL, "inodes": "size=32m,nr_inodes=400"}[what]
    said = on_small_disk(tmp_path, options, what)
    assert said["refused"].startswith("Storage"), "the disk was not full"
    assert said["versions"] >= 7 * 3
    assert said["bytes"] > 0
    assert said["branches"] == 1
    assert said["errors"] == []
    assert said["commits"][0] == "100"
    assert said["rows"] == [40]
    assert said["findings"] == []
    note("resources", what=f"cleanup with no {what} left", next_write="done")


# ledger: R15
@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [5, 40])
def test_too_little_memory(nursery: Nursery, tmp_path: Path, megabytes: int) -> None:
    """Whether it is refused or the process dies of it, as native code does that gets no memory: the
    graph is as before, or as after, and what was acknowledged before is there."""
    uri = str(tmp_path / "graph")
    omnigraph.init(uri, SCHEMA, actor="act-anna").ingest(envelopes(1))
    ending = nursery.run("starve", uri, megabytes)
    outcome = ending.answer
    if ending.signal:
        outcome = f"the process was ended ({signal.strsignal(ending.signal)})"
    assert not ending.error, ending.error
    graph = omnigraph.open(uri, actor="act-ben")
    assert graph.recoveries().pending == ()
    large = any(commit.message == "large" for commit in graph.commits())
    assert large or outcome != "done"
    assert count_rows(uri) == ({LARGE + 2} if large else {2})
    graph.ingest(envelopes(3))
    assert count_rows(uri) == ({LARGE + 3} if large else {3})
    assert graph.verify().findings == []
    left = "whole" if large else "nothing"
    note(
        "resources",
        what=f"{megabytes} MB of memory to spare for a load that needs more",
        outcome=outcome,
        of_the_load=f"{left} is there",
        acknowledged_before="all there",
        next_write="done",
    )


# ledger: R15
@pytest.mark.parametrize("most", [48, 256])
def test_few_open_files(nursery: Nursery, tmp_path: Path, most: int) -> None:
    uri = str(tmp_path / "graph")
    omnigraph.init(uri, SCHEMA, actor="act-anna").ingest(envelopes(1))
    said = nursery.run("run_with_few_files", uri, most).result()
    assert said["done"] == 30, said["errors"]
    assert max(said["opened"][10:]) <= max(said["opened"][:10]) + 2, "files stay open"
    assert omnigraph.open(uri).verify().findings == []
    note("resources", what=f"{most} open files", done=said["done"], most_open=max(said["opened"]))
