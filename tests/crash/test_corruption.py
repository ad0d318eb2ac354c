"""Damaged control objects, damaged manifest rows, flipped bytes: errors of ours, nothing else."""

from __future__ import annotations

import base64
import random
import shutil
from pathlib import Path

import pytest
from tests.crash.corruption import control_objects, damages
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note

pytestmark = pytest.mark.crash


class Museum:
    """A graph with every kind of control object, put back after each damage."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self.nursery = nursery
        self.uri = str(folder / "graph")
        self._kept = folder / "kept"
        nursery.run("furnished", self.uri).result()
        shutil.copytree(self.uri, self._kept)

    def ask(self, what: str, *arguments: object) -> list[str]:
        shutil.rmtree(self.uri)
        shutil.copytree(self._kept, self.uri)
        found: list[str] = self.nursery.run(what, self.uri, *arguments).result()
        return found

    def read(self, path: str) -> bytes:
        return (self._kept / path).read_bytes()


@pytest.fixture(scope="module")
def museum(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Museum:
    return Museum(nursery, tmp_path_factory.mktemp("museum"))


KINDS = (
    "__recovery", "__refs", "__tags", "__schema", "__keys", "__deleted", "__merged", "_schema.pg",
)  # fmt: skip


# ledger: R10 R13 S02
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_damaged_control_objects(museum: Museum, kind: str) -> None:
    paths = [path for path in control_objects(str(museum._kept)) if path.startswith(kind)]
    assert paths, f"there is nothing of the kind {kind}"
    tried = 0
    for path in paths if FULL else paths[:1]:
        every = list(damages(museum.read(path), len(path)))
        for damaged in every if FULL else every[::4]:
            found = museum.ask("probe", path, base64.b64encode(damaged).decode())
            assert found == [], f"{path} with {damaged[:120]!r}: {found}"
            tried += 1
    note("damaged objects", kind=kind, tried=tried)


# ledger: R10 S05
@pytest.mark.slow
@pytest.mark.parametrize("branch", ["main"])
def test_damaged_manifest_rows(museum: Museum, branch: str) -> None:
    payloads = ["", "{}", "[]", "null", "17", '{"commit_id": 1}', "[" * 20_000, '"x"']
    places = range(8) if FULL else range(0, 8, 2)
    tried = 0
    for place in places:
        for payload in payloads if FULL else payloads[place % 2 :: 2]:
            found = museum.ask("probe_row", branch, place, payload)
            assert found == [], f"row {place} with {payload[:40]!r}: {found}"
            tried += 1
    note("damaged objects", kind="manifest rows", tried=tried)


# ledger: R10
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_flipped_bytes_in_files_of_lance(museum: Museum) -> None:
    """A flipped bit is an error of ours, or it is not noticed, since Lance keeps no checksums; it
    is never an error of somebody else's, nor a panic."""
    chance = random.Random(7)
    # Names are new each time, the order in which files were written is not.
    files = [
        path.relative_to(museum._kept).as_posix()
        for path in sorted(museum._kept.rglob("*"), key=lambda path: path.stat().st_mtime_ns)
        if path.suffix in (".manifest", ".lance") and path.is_file()
    ]
    tried = 200 if FULL else 24
    for _ in range(tried):
        path = chance.choice(files)
        at, mask = chance.randrange(1 << 20), 1 << chance.randrange(8)
        found = museum.ask("probe_bytes", path, at, mask)
        assert found == [], f"{path}, byte {at}, mask {mask}: {found}"
    note("damaged objects", kind="files of Lance", tried=tried)
