"""Every kind of file, damaged in every way: a right answer or an error of ours, nothing else.

Lance keeps no checksums of its data, so some damage cannot be noticed: a changed value in a data
file, and a data file of the same size put in the place of another. Those kinds are named below, and
how often it happened is counted. Everywhere else a wrong answer fails the test.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.lyingdisk import Facts, Way, facts_file, files_of, harm, names_it
from tests.crash.nursery import Nursery
from tests.crash.sizes import FULL, note

pytestmark = pytest.mark.crash

# Files without a checksum, and what can happen to them unnoticed. It was seen in data files; in the
# others a flipped bit may change a row number or a version just as well.
UNNOTICEABLE = {
    "table data": {Way.FLIP, Way.PAGE, Way.SWAP},
    "table deletion": {Way.FLIP},
    "table version": {Way.FLIP},
    "manifest data": {Way.FLIP},
    "manifest version": {Way.FLIP},
}
# Lost, empty or cut: `fsck`, opening or an error must name the newest file of every kind.
PLAIN = (Way.HALF, Way.EMPTY, Way.MISSING)
# Kinds that leave no trace when they are missing, or that need not be there.
TRACELESS = {
    "__tags", "_settings.json", "audit hint", "derived", "manifest hint", "table hint",
}  # fmt: skip
FILES = 6 if FULL else 1


class Disk:
    """A graph that is put back after each damage."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self.nursery = nursery
        self.uri = str(folder / "graph")
        self._kept = folder / "kept"
        nursery.run("furnish", self.uri).result()
        shutil.copytree(self.uri, self._kept)
        self.facts: Facts = json.loads(facts_file(self.uri).read_text())
        self.kinds = files_of(self.uri)

    def put_back(self) -> None:
        shutil.rmtree(self.uri)
        shutil.copytree(self._kept, self.uri)

    def damage(self, kind: str, way: Way) -> Iterator[tuple[str, Facts]]:
        """Damage the newest files of a kind, one after the other; what was seen each time."""
        paths = self.kinds[kind]
        for seed, path in enumerate(reversed(paths[-FILES:])):
            self.put_back()
            others = [other for other in paths if other != path]
            if not harm(self.uri, path, way, seed, self.facts, others):
                continue
            ending = self.nursery.run("probe_disk", self.uri)
            assert not ending.signal, f"{way}: {path}: ended by signal {ending.signal}"
            yield path, ending.result()


@pytest.fixture(scope="module")
def disk(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return Disk(nursery, tmp_path_factory.mktemp("disk"))


KINDS = (
    "__deleted", "__keys", "__merged", "__refs", "__schema", "__tags", "_schema.pg",
    "_settings.json", "audit data", "audit hint", "audit transaction", "audit version", "derived",
    "derived record", "manifest data", "manifest hint", "manifest transaction", "manifest version",
    "table data", "table deletion", "table fork", "table hint", "table index", "table transaction",
    "table version",
)  # fmt: skip


def test_every_kind_is_known(disk: Disk) -> None:
    assert tuple(disk.kinds) == KINDS


# ledger: R10 S02
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_never_a_wrong_answer(disk: Disk, kind: str) -> None:
    counts: Counter[str] = Counter()
    ways = list(Way) if FULL else _sample(kind)
    for way in ways:
        for path, seen in disk.damage(kind, way):
            assert seen["problems"] == [], f"{way}: {path}"
            if seen["wrong"]:
                unseen = way in UNNOTICEABLE.get(kind, set())
                assert unseen, f"{way}: {path}: {seen['wrong']}, fsck: {seen['findings']}"
            if way in PLAIN and path == disk.kinds[kind][-1]:
                traceless = way is Way.MISSING and kind in TRACELESS
                assert traceless or names_it(path, seen), f"{way}: {path}: {seen['findings']}"
            counts[_outcome(seen)] += 1
    assert counts, f"nothing of the kind {kind} was damaged"
    note("lying disk", kind=kind, tried=sum(counts.values()), **counts)


def _sample(kind: str) -> list[Way]:
    """Two ways per kind; over all kinds each way comes up."""
    ways = list(Way)
    at = KINDS.index(kind)
    return [ways[at % len(ways)], Way.EMPTY]


def _outcome(seen: Facts) -> str:
    if seen["wrong"]:
        return "found_by_fsck_only" if seen["findings"] else "unnoticed"
    if seen["errors"]:
        return "errors"
    return "reported" if seen["findings"] or seen["losses"] else "harmless"
