"""Staging and landing: nothing moves until it lands, and it lands one version up or not at all."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import ConflictError, VersionConflictError
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.snapshot import TableVersion
from omnigraph.model.types import Kind, ValueType
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.stagedwrites import Stager
from omnigraph.storage.table import open_table
from omnigraph.storage.tableforks import line_path, open_line, owner_of
from omnigraph.storage.tablehead import (
    has_drifted,
    is_fresh,
    land,
    landed_version,
    observe,
    restore,
    transaction_id,
    version_exists,
)
from omnigraph.storage.tableschema import PROPERTY_KEY, physical_schema

TABLE = NodeType(1, "A", (Property(2, "n", ValueType(Kind.I64, nullable=True), "n"),))
EDGE = EdgeType(3, "E", (), src_type="A", dst_type="A")


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> GraphRoot:
    if request.param == "memory":
        return GraphRoot.at(f"memory://{tmp_path.name}")
    return GraphRoot.at(str(tmp_path / "g"))


def data(**rows: int) -> pa.Table:
    return pa.table({"id": list(rows), "n": pa.array(list(rows.values()), pa.int64())})


def read(root: GraphRoot, version: TableVersion) -> dict[str, int]:
    found = open_table(root.location, version).read(["id", "n"]).to_pydict()
    assert len(found["id"]) == version.rows
    return dict(sorted(zip(found["id"], found["n"], strict=True)))


def test_every_kind_of_write_lands_as_it_says(root: GraphRoot) -> None:
    stager = Stager(root, "main")
    staged = stager.insert(TABLE, None, data(a=1, b=2))
    assert observe(root, staged.path, None, 0).version == 0
    v1 = land(root, staged)
    assert v1 == landed_version(staged)
    assert (v1.version, v1.logical, v1.rows, v1.epoch) == (1, 1, 2, 0)
    v2 = land(root, stager.insert(TABLE, v1, data(c=3)))
    v3 = land(root, stager.upsert(TABLE, v2, data(c=4, d=5)))
    v4 = land(root, stager.delete(TABLE, v3, ["a", "nobody"]))
    v5 = land(root, stager.overwrite(TABLE, v4, data(z=9)))
    v6 = land(root, stager.overwrite(TABLE, v5, data()))
    assert [each.version for each in (v1, v2, v3, v4, v5, v6)] == [1, 2, 3, 4, 5, 6]
    assert read(root, v2) == {"a": 1, "b": 2, "c": 3}
    assert read(root, v3) == {"a": 1, "b": 2, "c": 4, "d": 5}
    assert read(root, v4) == {"b": 2, "c": 4, "d": 5}
    assert read(root, v5) == {"z": 9}
    assert read(root, v6) == {}
    assert (v4.epoch, v5.epoch, v6.epoch) == (0, 1, 2)


# ledger: S04
def test_staging_moves_no_head(root: GraphRoot) -> None:
    stager = Stager(root, "main")
    v1 = land(root, stager.create(TABLE, data(a=1)))
    for staged in (
        stager.insert(TABLE, v1, data(b=2)),
        stager.upsert(TABLE, v1, data(a=2)),
        stager.delete(TABLE, v1, ["a"]),
        stager.overwrite(TABLE, v1, data(c=3)),
    ):
        assert observe(root, v1.path, None, 1).version == 1
        assert not has_drifted(root, staged)
    assert read(root, v1) == {"a": 1}


# ledger: S06
def test_tables_have_stable_row_ids_and_marked_columns(root: GraphRoot) -> None:
    stager = Stager(root, "main")
    v1 = land(root, stager.create(TABLE, data(a=1, b=2)))
    dataset = open_line(root, v1.path, None)
    assert dataset.has_stable_row_ids
    assert dataset.schema.field("n").metadata[PROPERTY_KEY] == b"2"
    before = open_table(root.location, v1).lookup(["b"], ["id"]).column("_rowid").to_pylist()
    v2 = land(root, stager.upsert(TABLE, v1, data(a=5)))
    after = open_table(root.location, v2).lookup(["b"], ["id"]).column("_rowid").to_pylist()
    assert before == after
    assert physical_schema(EDGE).names == ["id", "src", "dst"]


@pytest.mark.parametrize("write", ["insert", "upsert", "delete", "overwrite"])
def test_what_lance_would_rebase_is_a_conflict(root: GraphRoot, write: str) -> None:
    stager = Stager(root, "main")
    v1 = land(root, stager.create(TABLE, data(a=1)))
    argument = ["a"] if write == "delete" else data(b=2)
    staged = getattr(stager, write)(TABLE, v1, argument)
    land(root, stager.insert(TABLE, v1, data(c=3)))
    assert has_drifted(root, staged)
    with pytest.raises(ConflictError):
        land(root, staged)


def test_a_rebased_append_names_the_versions(root: GraphRoot) -> None:
    stager = Stager(root, "main")
    v1 = land(root, stager.create(TABLE, data(a=1)))
    first, second = (stager.insert(TABLE, v1, data(**{name: 2})) for name in "bc")
    land(root, first)
    with pytest.raises(VersionConflictError) as caught:
        land(root, second)
    assert (caught.value.expected, caught.value.actual) == (2, 3)


@pytest.mark.parametrize("write", ["insert", "upsert", "delete", "overwrite"])
def test_nothing_lands_across_a_restore(root: GraphRoot, write: str) -> None:
    """What fences a paused writer off: recovery leans on it."""
    stager = Stager(root, "main")
    v1 = land(root, stager.create(TABLE, data(a=1)))
    argument = ["a"] if write == "delete" else data(b=2)
    staged = getattr(stager, write)(TABLE, v1, argument)
    assert restore(root, v1.path, None, 1) == 2
    with pytest.raises(ConflictError):
        land(root, staged)
    seen = observe(root, v1.path, None, 1)
    assert (seen.version, seen.restored) == (2, True)
    assert seen.transaction != transaction_id(staged)


def test_what_is_seen_of_a_line_says_who_moved_it(root: GraphRoot) -> None:
    stager = Stager(root, "main")
    born = stager.create(TABLE, data(a=1))
    v1 = land(root, born)
    assert observe(root, v1.path, None, 0).transaction == transaction_id(born)
    staged = stager.upsert(TABLE, v1, data(a=2))
    assert observe(root, v1.path, None, 1) == observe(root, v1.path, None, 1)
    assert observe(root, v1.path, None, 1).transaction is None
    land(root, staged)
    assert observe(root, v1.path, None, 1).transaction == transaction_id(staged)
    assert restore(root, v1.path, None, 1) == 3
    seen = observe(root, v1.path, None, 1)
    assert (seen.version, seen.transaction, seen.restored) == (3, transaction_id(staged), False)
    assert version_exists(root, v1.path, None, 3)
    assert not version_exists(root, v1.path, None, 4)


def test_a_branch_writes_to_a_fork_of_its_own(root: GraphRoot) -> None:
    v1 = land(root, Stager(root, "main").create(TABLE, data(a=1)))
    assert owner_of(v1) == "main"
    other = Stager(root, "01branch")
    staged = other.upsert(TABLE, v1, data(b=2))
    assert is_fresh(staged)
    forked = land(root, staged)
    assert owner_of(forked) == "01branch"
    assert line_path(forked.path, forked.fork) == f"{v1.path}/tree/{forked.fork}"
    later = other.upsert(TABLE, forked, data(b=3))
    assert not is_fresh(later)
    last = land(root, later)
    assert last.fork == forked.fork
    v2 = land(root, Stager(root, "main").insert(TABLE, v1, data(c=3)))
    assert read(root, v2) == {"a": 1, "c": 3}
    assert read(root, last) == {"a": 1, "b": 3}
    third = land(root, Stager(root, "02branch").delete(TABLE, last, ["a"]))
    assert read(root, third) == {"b": 3}
    assert restore(root, last.path, last.fork, forked.version) == last.version + 1
    assert observe(root, v1.path, None, 2).version == 2
    assert read(root, last) == {"a": 1, "b": 3}


def test_a_fork_that_nobody_landed_on_is_harmless(root: GraphRoot) -> None:
    v1 = land(root, Stager(root, "main").create(TABLE, data(a=1)))
    for _ in range(3):
        Stager(root, "01branch").upsert(TABLE, v1, data(a=2))
    assert read(root, v1) == {"a": 1}
    dataset = lance.dataset(root.location.lance_uri(v1.path))
    assert len(dataset.branches.list()) == 3
    assert dataset.version == 1
