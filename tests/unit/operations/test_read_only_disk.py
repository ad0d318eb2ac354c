"""A graph on a file system that is mounted read-only: everything reads, every write is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import StorageConfigurationError

SCHEMA = "node P { name: String @key }\n"
READ = "query q() { match { $p: P } return { $p.name } }"
WRITE = 'query w() { insert P { name: "y" } }'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a file system needs root")
    try:
        yield str(folder / "g")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_18_23_reads_work_and_writes_are_refused(place: str, tmp_path: Path) -> None:
    graph = og.init(place, SCHEMA)
    graph.mutate('query w() { insert P { name: "x" } }')
    subprocess.run(["mount", "-o", "remount,ro", str(Path(place).parent)], check=True)
    for reader in (graph, og.open(place, read_only=True), og.open(place)):
        assert reader.query(READ).rows() == [{"p.name": "x"}]
        assert reader.verify().is_clean
        reader.export(str(tmp_path / "out.jsonl"), overwrite=True)
        with pytest.raises((StorageConfigurationError, og.errors.DeniedError)):
            reader.mutate(WRITE)
    assert graph.query(READ).rows() == [{"p.name": "x"}]
