"""Indexes and layout: what is built, what is left alone, and that content never changes."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.schemachanges import content, new_graph

import omnigraph
from omnigraph import faults
from omnigraph.commit import door
from omnigraph.errors import (
    CommitOutcomeUnknownError,
    DeniedError,
    RecoveryRequiredError,
    StorageTransientError,
    TypeNotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.history.log import BranchLog
from omnigraph.history.resolve import head_snapshot
from omnigraph.model.commit import CommitKind, Proposal
from omnigraph.operations import maintain
from omnigraph.storage import compaction
from omnigraph.storage.indexplan import coverage
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.upkeep import fit, plan_upkeep, prepare

SCHEMA = """
node Thing {
    key: String @key
    mood: enum(a, b) @index
    number: I64? @index
    flag: Bool? @index
    day: Date? @index
    at: DateTime? @index
    text: String? @index
    vec: Vector(4)? @index
    names: [String]?
    @index(names)
    data: Blob?
    plain: String?
}
edge Link: Thing -> Thing
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


def add_cities(graph: Graph, first: int, count: int, times: int = 1) -> None:
    for turn in range(times):
        start = first + turn * count
        graph.ingest(
            [
                {"type": "City", "data": {"id": f"x{n}", "title": f"x {n}"}}
                for n in range(start, start + count)
            ]
        )


def table_of(graph: Graph, name: str) -> Table:
    snapshot = graph.snapshot()
    found = snapshot.catalog.node(name) or snapshot.catalog.edge(name)
    assert found is not None
    return open_table(snapshot.location, snapshot.tables[found.id])


def covered(graph: Graph, name: str) -> dict[tuple[str, str], int]:
    """Rows that each index lacks, by column and kind."""
    return {(i.column, i.type.upper()): i.unindexed_rows for i in coverage(table_of(graph, name))}


# ledger: I01
def test_the_index_follows_the_type(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    lines: list[dict[str, Any]] = [
        {
            "type": "Thing",
            "data": {
                "key": f"k{n}",
                "mood": "a",
                "number": n,
                "text": f"some words {n}",
                "vec": [n, 1, 2, 3],
                "names": ["x"],
            },
        }
        for n in range(50)
    ]
    lines += [{"edge": "Link", "from": f"k{n}", "to": "k0"} for n in range(50)]
    graph.ingest(lines)
    done = graph.ensure_indices()
    things = {column for column, _ in covered(graph, "Thing")}
    assert {c for c, kind in covered(graph, "Thing") if kind == "BTREE"} == {
        "id", "key", "mood", "number", "flag", "day", "at", "text",
    }  # fmt: skip
    assert {c for c, kind in covered(graph, "Thing") if kind == "INVERTED"} == {"key", "text"}
    assert not things & {"names", "data", "plain", "vec"}
    assert {column for column, _ in covered(graph, "Link")} == {"id", "src", "dst"}
    (table,) = [t for t in done.tables if t.type_name == "Thing"]
    (pending,) = table.pending
    assert (pending.property, pending.kind) == ("vec", "vector")
    assert "as fast" in str(pending.pending)


# ledger: I01
def test_a_vector_index_is_built_once_it_is_worth_it(tmp_path: Path) -> None:
    graph = omnigraph.init(
        str(tmp_path / "g"), "node Doc { key: String @key\n vec: Vector(64)? @index }"
    )
    rows = 21_000
    vectors = np.random.default_rng(0).normal(size=(rows, 64)).astype(np.float32)
    data = pa.table(
        {
            "key": [f"d{n}" for n in range(rows)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64),
        }
    )
    graph.ingest(data, type="Doc")
    graph.ensure_indices()
    kinds = {kind for column, kind in covered(graph, "Doc") if column == "vec"}
    assert len(kinds) == 1
    assert kinds.pop().startswith("IVF")


# ledger: I02
def test_ensuring_indexes_builds_only_what_is_missing(graph: Graph) -> None:
    said = "query q($t: String) { match { $c: City { title: $t } } return { $c.size } }"
    plain = graph.query(said, params={"t": "city 2"}).rows()
    first = graph.ensure_indices()
    assert len(first.commits) == 1
    assert first.commits[0].kind is CommitKind.MAINTENANCE
    assert graph.query(said, params={"t": "city 2"}).rows() == plain
    assert graph.ensure_indices().commits == ()
    add_cities(graph, 0, 1)
    assert covered(graph, "City")["id", "BTREE"] == 1
    assert graph.query(said, params={"t": "x 0"}).rows() == [{"c.size": None}]
    (work,) = [t for t in graph.ensure_indices().tables if t.built]
    assert work.type_name == "City"
    assert set(covered(graph, "City").values()) == {0}
    assert graph.query(said, params={"t": "x 0"}).rows() == [{"c.size": None}]


# ledger: I04
def test_a_second_optimize_does_nothing(graph: Graph) -> None:
    add_cities(graph, 0, 2, times=6)
    graph.mutate('query d() { delete City where title = "x 3" }')
    before, head = content(graph), graph.snapshot()
    plan = graph.plan_optimize()
    assert graph.snapshot().commit_id == head.commit_id
    assert not plan.is_empty
    done = graph.optimize()
    assert [commit.details["maintenance"] for commit in done.commits] == ["optimize"]
    assert content(graph) == before
    assert len(table_of(graph, "City").dataset.get_fragments()) == 1
    assert set(covered(graph, "City").values()) == {0}
    again = graph.optimize()
    assert again.is_empty
    assert again.commits == ()
    assert content(graph, commit=head.commit_id) == before, "optimize removed history"
    assert graph.verify().findings == []


def test_only_the_named_types(graph: Graph) -> None:
    done = graph.optimize(types=["City"])
    assert [table.type_name for table in done.tables] == ["City"]
    assert covered(graph, "Person") == {}
    with pytest.raises(TypeNotFoundError):
        graph.optimize(types=["Nobody"])


def test_a_reader_may_plan_but_not_optimize(graph: Graph) -> None:
    reader = omnigraph.open(graph.uri, read_only=True)
    assert not reader.plan_optimize().is_empty
    with pytest.raises(DeniedError):
        reader.optimize()


def test_progress_is_told(graph: Graph) -> None:
    told: list[str] = []
    graph.optimize(report=told.append)
    assert any("index of id built" in line for line in told)


def test_a_branch_leaves_what_it_inherits_alone(graph: Graph) -> None:
    branch = graph.create_branch("b")
    branch.ingest([{"type": "City", "data": {"id": "b", "title": "b"}}])
    done = branch.optimize()
    skipped = {table.type_name: table.skipped for table in done.tables}
    assert skipped["Person"] == maintain.SHARED
    assert skipped["City"] is None
    assert branch.optimize().is_empty
    assert covered(graph, "City") == {}


@pytest.mark.parametrize("compact", [True, False])
def test_what_a_merge_brought_from_a_branch_that_is_gone_is_looked_after(
    graph: Graph, compact: bool
) -> None:
    branch = graph.create_branch("b")
    add_cities(branch, 0, 2, times=5)
    assert graph.merge("b", delete_branch=True).outcome == "fast_forward"
    before = content(graph)
    assert "City" in [table.type_name for table in graph.lag().tables]
    done = graph.optimize() if compact else graph.ensure_indices()
    (city,) = [table for table in done.tables if table.type_name == "City"]
    assert city.skipped is None
    assert (city.files_moved > 0) == compact
    assert all(lacking == 0 for lacking in covered(graph, "City").values())
    assert covered(graph, "City")
    assert (graph.optimize() if compact else graph.ensure_indices()).is_empty
    assert content(graph) == before
    add_cities(graph, 100, 1)
    assert graph.verify().findings == []


# ledger: I04
def test_it_refuses_while_a_recovery_is_pending(graph: Graph) -> None:
    handle = omnigraph.open(graph.uri)
    lost = faults.Raise(StorageTransientError("lost"))
    with (
        faults.armed("commit.before_publish", lost),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        add_cities(graph, 0, 1)
    with pytest.raises(RecoveryRequiredError):
        handle.optimize()
    omnigraph.open(graph.uri).optimize()
    assert graph.verify().findings == []


# ledger: I04
def test_a_crash_before_the_publish_rolls_forward(graph: Graph) -> None:
    add_cities(graph, 0, 2, times=5)
    before = content(graph)
    lost = faults.Raise(StorageTransientError("lost"))
    with (
        faults.armed("commit.before_publish", lost),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        graph.optimize()
    opened = omnigraph.open(graph.uri)
    assert [row["outcome"] for row in opened.recoveries().audit] == ["rolled_forward"]
    assert content(opened) == before
    opened.optimize()
    assert opened.optimize().is_empty
    assert opened.verify().findings == []


# ledger: I07
def test_what_a_writer_changed_meanwhile_stays(graph: Graph) -> None:
    """A writer updates, deletes and adds rows after the new files were written."""
    add_cities(graph, 0, 2, times=6)

    class _Write(faults.Action):
        done = False

        def perform(self, point: str) -> None:
            if not _Write.done and threading.current_thread() is threading.main_thread():
                _Write.done = True
                thread = threading.Thread(target=write)
                thread.start()
                thread.join()

    def write() -> None:
        other = omnigraph.open(graph.uri)
        other.mutate('query u() { update City set { size: 99 } where title = "x 1" }')
        other.mutate('query d() { delete City where title = "x 2" }')
        add_cities(other, 100, 1)

    with faults.armed("commit.before_lock", _Write()):
        graph.optimize()
    shown = {row["id"]: row for row in content(graph)["City"]}
    assert shown["x1"]["size"] == 99
    assert "x2" not in shown
    assert "x100" in shown
    assert len(shown) == 3 + 12 - 1 + 1
    assert graph.verify().findings == []
    graph.optimize()
    assert graph.optimize().is_empty


# ledger: I02 I07
def test_an_index_never_knows_rows_of_files_that_did_not_land(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two groups of files a writer changes one. The numbers of those that were to take their
    place go to files of other writers, in which an index must not look for the old rows."""
    monkeypatch.setattr(compaction, "ROWS_PER_FILE", 50)
    graph = omnigraph.init(
        str(tmp_path / "g"), "node Doc { key: String @key\n text: String @index }"
    )
    for part, count in enumerate((9, 9, 9, 9, 60, 9, 9, 9, 9)):
        graph.ingest(texts(100 * part, count), "append", type="Doc")
    root, snapshot = graph._context.root, graph.snapshot()
    (doc,) = snapshot.catalog.tables()
    plan = plan_upkeep(doc, open_table(snapshot.location, snapshot.tables[doc.id]))
    assert len(plan.layout.groups) == 2
    work = prepare(root, doc, plan, lambda text: None)
    graph.mutate('query u() { update Doc set { text: "new" } where key = "k00701" }')

    def assemble(line: BranchLog) -> Proposal:
        now = head_snapshot(root, "main", line)
        fitted = fit(root, now.tables[doc.id], work)
        assert fitted.staged is not None
        assert not fitted.is_whole
        return Proposal(now, (fitted.staged,), "act-anna", CommitKind.MAINTENANCE)

    door.commit(root, "main", "act-anna", CommitKind.MAINTENANCE, assemble)
    numbers = {f.fragment_id for f in table_of(graph, "Doc").dataset.get_fragments()}
    assert max(numbers) > 500, "one of the groups fitted"
    for n in range(3):  # the next file gets the number of the one that did not land
        graph.ingest(texts(5000 + 10 * n, 2), "append", type="Doc")
    asked = "query q($k: String) { match { $d: Doc { key: $k } } return { $d.text } }"
    want = {row["key"]: row["text"] for row in content(graph)["Doc"]}
    assert len(want) == 9 * 8 + 60 + 6
    for _ in range(2):
        for key, said in want.items():
            assert graph.query(asked, params={"k": key}).rows() == [{"d.text": said}]
        assert graph.verify().findings == []
        graph.optimize()
    assert graph.optimize().is_empty


# ledger: I07
def test_a_large_table_that_writers_are_always_faster_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are left and told as overtaken, its indexes are built all the same; once the
    writers rest, all is done."""
    monkeypatch.setattr(maintain, "_ROWS_UNDER_LOCK", 10)
    graph = omnigraph.init(str(tmp_path / "g"), "node Doc { key: String @key\n text: String }")
    for part in range(6):
        graph.ingest(texts(100 * part, 5), "append", type="Doc")
    other = omnigraph.open(graph.uri)
    main, turns = threading.current_thread(), iter(range(1000))

    def write() -> None:  # in another file each time
        turn = next(turns)
        key = f"k{100 * (turn % 6) + turn // 6:05d}"
        other.mutate(f'query u() {{ update Doc set {{ text: "n" }} where key = "{key}" }}')

    class _Always(faults.Action):
        def perform(self, point: str) -> None:
            if threading.current_thread() is main:
                thread = threading.Thread(target=write)
                thread.start()
                thread.join()

    with faults.armed("commit.before_lock", _Always()):
        (table,) = graph.optimize().tables
    assert table.skipped == maintain.OVERTAKEN
    assert {index.property for index in table.built} == {"id", "key"}
    assert graph.verify().findings == []
    (table,) = graph.optimize().tables
    assert table.skipped is None
    assert table.files_moved > 1
    assert graph.optimize().is_empty
    assert graph.verify().findings == []


# ledger: S06
@pytest.mark.slow
def test_blobs_and_row_ids_survive_update_and_compaction(graph: Graph) -> None:
    def photos() -> dict[str, bytes | None]:
        return {row["id"]: row["photo"] for row in content(graph)["Person"]}

    before = photos()
    assert {None, b""} < set(before.values())
    for n in range(12):
        graph.mutate(f'query u() {{ update Person set {{ age: 50 }} where name = "p{n:02d}" }}')
    assert photos() == before
    opened = table_of(graph, "Person")
    assert opened.dataset.has_stable_row_ids
    numbers = opened.read(["id"], with_row_id=True).to_pydict()
    graph.optimize()
    moved = table_of(graph, "Person")
    assert len(moved.dataset.get_fragments()) < len(opened.dataset.get_fragments())
    after = moved.read(["id"], with_row_id=True).to_pydict()
    assert dict(zip(after["id"], after["_rowid"], strict=True)) == dict(
        zip(numbers["id"], numbers["_rowid"], strict=True)
    )
    assert photos() == before


def test_a_large_file_is_not_written_again_for_a_few_rows(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), "node N { key: String @key }")
    graph.ingest(pa.table({"key": [f"k{n}" for n in range(5000)]}), type="N")
    graph.optimize()
    graph.ingest([{"type": "N", "data": {"key": "one more"}}])
    (table,) = graph.plan_optimize().tables
    assert table.files_moved == 0
    assert [work.rows for work in table.built] == [1, 1, 1]


def texts(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    keys = [f"k{n:05d}" for n in numbers]
    return pa.table({"key": keys, "text": [f"word{n % 7} tale{n}" for n in numbers]})


# ledger: I04
def test_one_publish_however_much_there_is_to_do(tmp_path: Path) -> None:
    """Missing indexes, then a text index that is built anew over files that it kept apart."""
    graph = omnigraph.init(
        str(tmp_path / "g"),
        "node Doc { key: String @key\n text: String @index }\nedge L: Doc -> Doc",
    )
    asked = 'query q() { match { $d: Doc\n search($d.text, "word3") } return { count($d) as n } }'
    for turn, count in enumerate((40, 40, 400)):
        for part in range(5):
            first = turn * 1000 + part * count
            graph.ingest(texts(first, count), "append", type="Doc")
        was = graph.query(asked).rows()
        planned = graph.plan_optimize()
        assert not planned.is_empty
        done = graph.optimize()
        assert len(done.commits) == 1, turn
        assert graph.optimize().commits == ()
        assert set(covered(graph, "Doc").values()) == {0}
        assert graph.query(asked).rows() == was
        assert graph.verify().findings == []
    assert len(table_of(graph, "Doc").dataset.get_fragments()) == 1
    assert not list(Path(graph.uri).rglob("_versions/d*")), "a detached version was left"


# ledger: I04 R14
def test_a_crash_between_the_steps_of_a_table_is_undone(graph: Graph) -> None:
    add_cities(graph, 0, 2, times=5)
    before, head = content(graph), graph.snapshot().commit_id
    lost = faults.Raise(StorageTransientError("lost"))
    with faults.armed("commit.between_steps", lost), pytest.raises(RecoveryRequiredError):
        graph.optimize()
    assert graph.snapshot().commit_id == head
    opened = omnigraph.open(graph.uri)
    assert [row["outcome"] for row in opened.recoveries().audit] == ["rolled_back"]
    assert content(opened) == before
    opened.optimize()
    assert content(opened) == before
    assert opened.optimize().is_empty
    assert opened.verify().findings == []


def test_space_of_dropped_properties_comes_back(tmp_path: Path) -> None:
    """The column goes when its files are written anew; older commits show it until cleanup."""
    uri = str(tmp_path / "g")
    both = "node Doc { key: String @key\n note: String?\n scan: Blob?\n size: I64? }"
    graph = omnigraph.init(uri, both)
    rng = np.random.default_rng(0)
    rows = [
        {"key": f"k{n}", "note": rng.bytes(2000).hex(), "scan": rng.bytes(4000), "size": n}
        for n in range(300)
    ]
    graph.ingest(rows, type="Doc")
    full = graph.snapshot().commit_id
    graph.optimize()
    less = "node Doc { key: String @key\n size: I64? }"
    graph.apply_schema(less)
    (planned,) = graph.plan_optimize().tables
    assert planned.columns == ("note", "scan")
    before = size_of(uri)
    done = graph.optimize()
    assert len(done.commits) == 1
    assert graph.optimize().is_empty
    assert table_of(graph, "Doc").schema.names == ["id", "key", "size"]
    old = {row["key"]: (row["note"], row["scan"]) for row in content(graph, commit=full)["Doc"]}
    assert old == {row["key"]: (row["note"], row["scan"]) for row in rows}
    graph.cleanup(keep=1, grace=timedelta(0), confirm=True)
    assert size_of(uri) < before - 300 * 5000
    assert graph.verify().findings == []
    # Columns that come later never show what lay in the place of those that went.
    graph.apply_schema(less.replace("size", 'note: String?\n kind: String @default("new")\n size'))
    graph.ingest([{"type": "Doc", "data": {"key": "k7", "note": "hi"}}], "merge")
    shown = {row["key"]: (row["note"], row["kind"], row["size"]) for row in content(graph)["Doc"]}
    assert (shown["k7"], shown["k8"]) == (("hi", "new", None), (None, "new", 8))
    assert graph.verify().findings == []


def size_of(place: str) -> int:
    return sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
