"""Reads that fail with EIO on a real file system: an error of ours that names the file, and the
process continues to answer what does not need it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.badsectors import BadSectors, why_not
from tests.crash.lyingdisk import ALL, ask, names_it
from tests.crash.nursery import Nursery
from tests.crash.sizes import note
from tests.crash.test_lying_disk import Disk

import omnigraph
from omnigraph.errors import OmniGraphError

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(why_not() is not None, reason=f"reads do not fail here: {why_not()}"),
]

KINDS = (
    "__keys", "__merged", "__refs", "__schema", "__tags", "_schema.pg", "_settings.json",
    "audit data", "derived", "manifest data", "manifest version", "table data", "table deletion",
    "table index", "table version",
)  # fmt: skip
CITES = "match { $d: Doc $d cites $e } return { $d.key as d, $e.key as e }"


@pytest.fixture
def bad(tmp_path: Path) -> Iterator[BadSectors]:
    with BadSectors(tmp_path / "bad") as bad:
        yield bad


@pytest.fixture(scope="module")
def disk(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return Disk(nursery, tmp_path_factory.mktemp("disk"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_19_a_read_error_names_the_file(disk: Disk, bad: BadSectors, kind: str) -> None:
    path = disk.kinds[kind][-1]
    disk.put_back()
    bad.take(Path(disk.uri, path))
    ending = disk.nursery.run("probe_disk", disk.uri)
    assert not ending.signal, f"{path}: ended by signal {ending.signal}"
    seen = ending.result()
    assert seen["problems"] == []
    assert seen["wrong"] == []
    assert names_it(path, seen), seen
    note("read errors", kind=kind)


def test_19_other_reads_go_on_after_a_read_error(disk: Disk, bad: BadSectors) -> None:
    disk.put_back()
    edges = max(Path(disk.uri).glob("edges/*/data/*.lance"), key=lambda f: f.stat().st_mtime_ns)
    bad.take(edges)
    for cached in Path(disk.uri, "__derived").rglob("*.*"):
        os.unlink(cached)
    graph = omnigraph.open(disk.uri, read_only=True)
    expected = disk.facts["states"]["main"][0][ALL]
    for _ in range(2):
        assert ask(graph, ALL) == expected
        with pytest.raises(OmniGraphError) as raised:
            ask(graph, CITES)
        assert raised.value.code.startswith("storage")
        assert edges.name in raised.value.message
    found = [f"{each.where} {each.message}" for each in graph.verify().findings]
    assert any(edges.name in each for each in found)
