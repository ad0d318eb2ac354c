"""What queries do to the memory of a process: asked of a process of its own, for it is set once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engines.embedded import malloc

SCHEMA = "node Person {\n    name: String @key\n}\n"
ASK = """
import sys, omnigraph, pyarrow as pa
if sys.argv[2]:
    pa.set_memory_pool(getattr(pa, sys.argv[2])())
before = pa.default_memory_pool().backend_name
graph = omnigraph.open(sys.argv[1])
graph.query("query q() { match { $p: Person } return { count(*) as n } }").to_arrow()
print(before, pa.default_memory_pool().backend_name)
"""

pytestmark = pytest.mark.skipif(
    malloc._malloc_trim() is None or "mimalloc" not in pa.supported_memory_backends(),
    reason="glibc's allocator is preferred to mimalloc: both have to be there",
)


def _pools(folder: Path, chosen: str = "", **variables: str) -> list[str]:
    """The pool of a new process before its first query and after it."""
    uri = str(folder / "graph")
    omnigraph.init(uri, SCHEMA)
    clean = {k: v for k, v in os.environ.items() if k not in malloc._CHOSEN_BY}
    told = subprocess.run(
        [sys.executable, "-c", ASK, uri, chosen],
        env=clean | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout.split()


def test_queries_do_not_take_memory_in_huge_pages(tmp_path: Path) -> None:
    assert _pools(tmp_path) == ["mimalloc", "system"]


@pytest.mark.parametrize(
    "variables", [{"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, {"MIMALLOC_ALLOW_THP": "0"}]
)
def test_what_the_environment_chose_stands(tmp_path: Path, variables: dict[str, str]) -> None:
    assert _pools(tmp_path, **variables) == ["mimalloc", "mimalloc"]


def test_what_the_program_chose_stands(tmp_path: Path) -> None:
    assert _pools(tmp_path, "jemalloc_memory_pool") == ["jemalloc", "jemalloc"]
