"""Work that needs more memory than there is: a typed error, the graph as before, a usable handle.

Native code ends the process when even a few bytes cannot be had (Rust's allocator, thread-local
data of the C library). That is allowed for writes with very little to spare, and counted; never for
queries, and never at the cost of the graph.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.crash.hunger import WORK
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note

import omnigraph

pytestmark = pytest.mark.crash

QUERIES = ("sort", "aggregate", "collect", "cross product", "walk", "export")
# With less than this, native code may end a process that writes.
LEAST_FOR_WRITES = 200
SPARE = (10, 60, 200, 600) if FULL else (60, 200)
COUNT = "query q() { match { $a: Item } return { count(*) as n } }"


@pytest.fixture(scope="module")
def large(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    nursery.run("make_large", str(folder / "graph")).result()
    shutil.copytree(folder / "graph", folder / "kept")
    return folder


# ledger: R15
@pytest.mark.slow
@pytest.mark.parametrize("what", WORK)
def test_work_that_does_not_fit(nursery: Nursery, large: Path, what: str) -> None:
    outcomes = []
    for megabytes in SPARE:
        place = large / "graph"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(large / "kept", place)
        ending = nursery.run("starve_on", str(place), what, megabytes)
        assert not ending.error, ending.error
        if ending.answer is None:  # native code ended the process
            assert what not in QUERIES, f"{what} with {megabytes} MB"
            assert megabytes < LEAST_FOR_WRITES, f"{what} with {megabytes} MB"
            outcome = "the process was ended"
        else:
            outcome = ending.answer["outcome"]
            allowed = ("done", "limit_exceeded: ", "storage_unknown: ")
            assert outcome.startswith(allowed), f"{what} with {megabytes} MB: {outcome}"
            outcome = outcome.split(":")[0]
        outcomes.append(f"{megabytes} MB: {outcome}")
        _check_graph(str(place), committed=outcome == "done" and what not in QUERIES)
    note("resources", what=f"little memory to spare: {what}", outcomes=", ".join(outcomes))


def _check_graph(uri: str, *, committed: bool) -> None:
    """It opens, it is sound, it is as before or as after, and it can be written to."""
    graph = omnigraph.open(uri, actor="act-ben", durability="process")
    assert graph.recoveries().pending == ()
    assert graph.verify(quick=True).findings == []
    large = any(commit.message == "large" for commit in graph.commits())
    assert large or not committed
    before = graph.query(COUNT).rows()[0]["n"]
    graph.ingest([{"key": "after"}], type="Item")
    assert graph.query(COUNT).rows()[0]["n"] == before + 1
