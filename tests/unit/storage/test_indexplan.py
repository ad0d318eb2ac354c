"""Index plans follow the type and the size; builds are staged, grow, and change no answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.storage.search_tables import (
    DIM,
    append,
    build,
    delete,
    reopen,
    vector_column,
    vectors,
    write,
)

from omnigraph.ir.expr import TextMode
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.indexes import IndexKind
from omnigraph.model.types import BOOL, I64, STRING, Kind, enum_of, list_of, vector
from omnigraph.storage import indexplan
from omnigraph.storage.indexfiles import stage_index, stage_indexes, transaction_of
from omnigraph.storage.indexplan import IndexTask, coverage, plan_indexes
from omnigraph.storage.nprobes import ALL_PARTITIONS, ProbeCurve, calibrate, sample_queries
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.search import VectorTuning, text_topk, vector_topk
from omnigraph.storage.stagedwrites import Stager
from omnigraph.storage.table import Table, open_table
from omnigraph.storage.tableforks import new_path
from omnigraph.storage.tablehead import land


def doc_type(dim: int = DIM) -> NodeType:
    types = {
        "title": STRING,
        "state": enum_of(("open", "done")),
        "year": I64,
        "live": BOOL,
        "tags": list_of(Kind.STRING),
        "vec": vector(dim, nullable=True),
    }
    props = tuple(
        Property(number, name, type_, name)
        for number, (name, type_) in enumerate(types.items(), 10)
    )
    return NodeType(1, "Doc", props, indexes=tuple((name,) for name in types))


def docs(count: int, start: int = 0, dim: int = DIM, seed: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    stored = vectors(start + count, dim, seed)[start:]
    return pa.table(
        {
            "id": [f"d{number:06d}" for number in numbers],
            "title": [f"word{number % 40} and title {number}" for number in numbers],
            "state": ["open" if number % 3 else "done" for number in numbers],
            "year": pa.array([number % 50 for number in numbers], pa.int64()),
            "live": [number % 2 == 0 for number in numbers],
            "tags": pa.array([["a"] for _ in numbers], pa.list_(pa.string())),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), dim),
        }
    )


@pytest.fixture
def small_vectors_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexplan, "_EXACT_BYTES", 0)


def kinds(tasks: list[IndexTask]) -> dict[str, str]:
    return {f"{task.column} {task.kind}": task.type for task in tasks}


def test_the_index_follows_the_type(tmp_path: Path, small_vectors_are_indexed: None) -> None:
    # ledger: I01
    table = write(tmp_path / "t", docs(300))
    assert kinds(plan_indexes(doc_type(), table)) == {
        "id btree": "BTREE",
        "title fts": "INVERTED",
        "title btree": "BTREE",
        "state btree": "BTREE",
        "year btree": "BTREE",
        "live btree": "BTREE",
        "vec vector": "IVF_FLAT",
    }


def test_ends_of_edges_are_indexed_unasked(tmp_path: Path) -> None:
    # ledger: I01
    data = pa.table({"id": ["e"], "src": ["a"], "dst": ["b"]})
    tasks = plan_indexes(EdgeType(2, "Knows", ()), write(tmp_path / "t", data))
    assert [(task.column, task.property, task.type) for task in tasks] == [
        ("id", "id", "BTREE"),
        ("src", "src", "BTREE"),
        ("dst", "dst", "BTREE"),
    ]


def test_a_renamed_property_is_named_as_users_know_it(tmp_path: Path) -> None:
    renamed = NodeType(
        1, "Doc", (Property(10, "heading", STRING, "title"),), indexes=(("heading",),)
    )
    tasks = plan_indexes(renamed, write(tmp_path / "t", docs(10)))
    assert {(task.property, task.column) for task in tasks} == {("id", "id"), ("heading", "title")}


def test_building_all_leaves_nothing_to_build(
    tmp_path: Path, small_vectors_are_indexed: None
) -> None:
    # ledger: I02
    table = write(tmp_path / "t", docs(500), rows_per_file=200)
    tasks = plan_indexes(doc_type(), table)
    built = build(tmp_path / "t", *tasks)
    assert built.version.version == table.version.version + 1
    assert plan_indexes(doc_type(), built) == []
    assert {(item.indexed_rows, item.unindexed_rows) for item in coverage(built)} == {(500, 0)}


def test_new_rows_extend_an_index(tmp_path: Path, small_vectors_are_indexed: None) -> None:
    path = tmp_path / "t"
    table = write(path, docs(500))
    build(path, *plan_indexes(doc_type(), table))
    table = append(path, docs(60, 500))
    assert {item.unindexed_rows for item in coverage(table)} == {60}
    tasks = plan_indexes(doc_type(), table)
    assert len(tasks) == 7
    assert all(task.extends and task.rows == 60 and not task.replaces for task in tasks)
    table = build(path, *tasks)
    assert {(item.segments, item.unindexed_rows) for item in coverage(table)} == {(2, 0)}
    assert plan_indexes(doc_type(), table) == []
    check_reads(table, 560)


def test_an_index_is_built_anew_when_most_rows_are_new(
    tmp_path: Path, small_vectors_are_indexed: None
) -> None:
    path = tmp_path / "t"
    table = write(path, docs(200))
    build(path, *plan_indexes(doc_type(), table))
    table = append(path, docs(400, 200))
    tasks = plan_indexes(doc_type(), table)
    assert all(len(task.replaces) == 1 and not task.extends for task in tasks)
    table = build(path, *tasks)
    assert {(item.segments, item.unindexed_rows) for item in coverage(table)} == {(1, 0)}
    check_reads(table, 600)


def test_segments_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "t"
    node = NodeType(1, "Doc", ())
    table = build(path, *plan_indexes(node, write(path, docs(100))))
    for round_ in range(12):
        append(path, docs(5, 100 + 5 * round_))
        table = build(path, *plan_indexes(node, reopen(path)))
        assert coverage(table)[0].segments <= 8
    assert coverage(table)[0].unindexed_rows == 0


def check_reads(table: Table, rows: int) -> None:
    """Answers through indexes are those of a scan."""
    plan = table.dataset.scanner(columns=["id"], filter="year = 7").explain_plan(True)
    assert "ScalarIndexQuery" in plan
    assert table.count(pc.field("year") == 7) == sum(number % 50 == 7 for number in range(rows))
    assert len(text_topk(table, "title", "word7")) == sum(n % 40 == 7 for n in range(rows))
    query = vectors(1, seed=5)[0]
    exact = vector_topk(table, "vec", query, 10, tuning=VectorTuning(exact=True))
    assert vector_topk(table, "vec", query, 10).rows.equals(exact.rows)


def test_indexes_are_invisible_until_committed(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs(50))
    staged = [stage_index(table.dataset, t) for t in plan_indexes(doc_type(), table)[:3]]
    assert reopen(tmp_path / "t").indexes() == ()
    transaction = transaction_of(table.version.version, staged)
    lance.LanceDataset.commit(table.dataset, transaction, read_version=1, max_retries=0)
    assert len(reopen(tmp_path / "t").indexes()) == 3
    known = lance.dataset(str(tmp_path / "t")).read_transaction(2)
    assert known is not None
    assert str(known.uuid) == str(transaction.uuid)


def test_text_and_tree_on_one_column_serve_their_own_queries(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs(200))
    table = build(tmp_path / "t", *plan_indexes(doc_type(), table)[:3])
    for text in ("title = 'word7 and title 7'", "starts_with(title, 'word7')"):
        assert "title_btree" in table.dataset.scanner(filter=text).explain_plan(True)
    assert "title_fts" in str(text_topk(table, "title", "word7").access)


def test_a_fork_of_a_fork_reads_inherited_indexes(
    tmp_path: Path, small_vectors_are_indexed: None
) -> None:
    path = tmp_path / "t"
    table = build(path, *plan_indexes(doc_type(), write(path, docs(300))))
    child = table.dataset.create_branch("one", ("main", table.version.version))
    child = lance.write_dataset(docs(20, 300), str(path / "tree" / "one"), mode="append")
    child.create_branch("two", ("one", child.version))
    forked = path / "tree" / "two"
    assert len(coverage(reopen(forked))) == 7
    check_reads(reopen(forked), 320)
    built = build(forked, *plan_indexes(doc_type(), reopen(forked)))
    assert {item.unindexed_rows for item in coverage(built)} == {0}
    check_reads(built, 320)
    check_reads(reopen(path), 300)


def test_indexes_survive_compaction(tmp_path: Path, small_vectors_are_indexed: None) -> None:
    path = tmp_path / "t"
    build(path, *plan_indexes(doc_type(), write(path, docs(400), rows_per_file=100)))
    delete(path, *(f"d{number:06d}" for number in range(390, 400)))
    lance.dataset(str(path)).optimize.compact_files()
    table = reopen(path)
    assert len(table.dataset.get_fragments()) == 1
    assert plan_indexes(doc_type(), table) == []
    check_reads(table, 390)


def only_vector(table: Table, dim: int = DIM) -> IndexTask:
    return next(t for t in plan_indexes(doc_type(dim), table) if t.kind is IndexKind.VECTOR)


def test_few_vectors_are_better_compared(tmp_path: Path) -> None:
    task = only_vector(write(tmp_path / "t", docs(500)))
    assert task.pending == "comparing every row is as fast while there are so few"


def test_an_index_that_is_there_grows_however_few_rows_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    with monkeypatch.context() as patch:
        patch.setattr(indexplan, "_EXACT_BYTES", 0)
        build(path, only_vector(write(path, docs(500))))
    task = only_vector(append(path, docs(3, 500)))
    assert task.pending is None
    build(path, task)
    check = vector_topk(reopen(path), "vec", vectors(503)[501], 1)
    assert check.rows.column("id").to_pylist() == ["d000501"]


@pytest.mark.parametrize("values", [[None] * 30, [[0.0] * DIM] * 30])
def test_vectors_that_cannot_be_trained_on_wait(
    tmp_path: Path, small_vectors_are_indexed: None, values: list[list[float] | None]
) -> None:
    ids = [f"d{number:06d}" for number in range(30)]
    table = write(tmp_path / "t", pa.table({"id": ids, "vec": vector_column(values)}))
    tasks = plan_indexes(doc_type(), table)
    waiting = {task.column: task.pending for task in tasks}
    assert waiting["vec"] == "there is no vector to train on"
    assert waiting["title"] == "the table holds no such column yet"
    assert waiting["id"] is None


def test_few_vectors_among_many_rows_still_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_vectors_are_indexed: None
) -> None:
    monkeypatch.setattr(indexplan, "_ROWS_PER_PARTITION", 256)
    stored = [value if number % 100 == 0 else None for number, value in enumerate(vectors(4000))]
    ids = [f"d{number:06d}" for number in range(4000)]
    table = write(tmp_path / "t", pa.table({"id": ids, "vec": vector_column(stored)}))
    table = build(tmp_path / "t", only_vector(table))
    assert len(vector_topk(table, "vec", vectors(1, seed=1)[0], 100)) == 40


def test_an_empty_table_waits_for_rows(tmp_path: Path) -> None:
    table = write(tmp_path / "t", docs(0))
    assert {task.pending for task in plan_indexes(doc_type(), table)} == {"the table has no rows"}


def test_size_decides_how_vectors_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_vectors_are_indexed: None
) -> None:
    table = write(tmp_path / "t", docs(600))
    odd = write(tmp_path / "odd", docs(600, dim=4))
    assert only_vector(table).type == "IVF_FLAT"
    monkeypatch.setattr(indexplan, "_FLAT_BYTES", 1000)
    assert only_vector(table).type == "IVF_RQ"
    assert only_vector(odd, 4).type == "IVF_FLAT"
    monkeypatch.setattr(indexplan, "_ROWS_PER_PARTITION", 60)
    assert only_vector(table).params["num_partitions"] == 10


@pytest.mark.parametrize("type_", ["IVF_FLAT", "IVF_RQ"])
@pytest.mark.parametrize("clusters", [0, 30])
def test_measured_probes_keep_the_recall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, clusters: int
) -> None:
    monkeypatch.setattr(indexplan, "_EXACT_BYTES", 0)
    monkeypatch.setattr(indexplan, "_FLAT_BYTES", 0 if type_ == "IVF_RQ" else 1 << 40)
    monkeypatch.setattr(indexplan, "_ROWS_PER_PARTITION", 256)
    stored = vectors(6000)
    if clusters:
        centers = vectors(clusters, seed=1) * 3
        stored = stored + centers[np.arange(6000) % clusters]
    ids = [f"d{number:06d}" for number in range(6000)]
    column = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), DIM)
    path = tmp_path / "t"
    table = write(path, pa.table({"id": ids, "vec": column}), 3000)
    table = build(path, only_vector(table))
    (info,) = table.indexes()
    curve = ProbeCurve.from_name(info.name)
    assert curve is not None
    assert list(curve.probes) == sorted(curve.probes)
    assert curve.at(10) <= (8 if clusters else 30)
    chance = np.random.default_rng(2)
    queries = stored[chance.integers(0, 6000, 25)] + vectors(25, seed=3) * 0.5
    for rows in (None, chance.choice(6000, 3000, False), chance.choice(6000, 600, False)):
        assert recall(table, queries, rows) >= 0.98


def recall(table: Table, queries: np.ndarray, rows: np.ndarray | None) -> float:
    found = 0
    for query in queries:
        exact = vector_topk(table, "vec", query, 10, rows=rows, tuning=VectorTuning(exact=True))
        hits = vector_topk(table, "vec", query, 10, rows=rows)
        assert len(hits) == 10
        found += len(set(hits.rows["id"].to_pylist()) & set(exact.rows["id"].to_pylist()))
    return found / (10 * len(queries))


def test_the_curve_travels_in_the_name() -> None:
    curve = ProbeCurve((4, 9, 31))
    assert ProbeCurve.from_name("vec_vector" + curve.suffix) == curve
    assert ProbeCurve.from_name("vec_vector") is None
    assert [curve.at(depth) for depth in (1, 10, 100, 1000)] == [4, 4, 9, 31]
    assert 9 < curve.at(300) < 31
    assert curve.at(1001) == ALL_PARTITIONS


def test_too_few_rows_leave_nothing_to_measure() -> None:
    stored = vectors(500)
    assert calibrate([stored], sample_queries(stored[:64]), stored[:8]) is None


def test_staged_indexes_land_through_the_door(tmp_path: Path) -> None:
    root = GraphRoot.at(str(tmp_path / "graph"))
    node = replace(doc_type(), indexes=(("title",), ("year",)))
    base = land(root, Stager(root, "b1").create(node, docs(80)))
    table = open_table(root.location, base)
    staged = stage_indexes(root, "b1", base, plan_indexes(node, table))
    assert staged is not None
    assert not staged.logical
    landed = land(root, staged)
    assert (landed.version, landed.logical, landed.rows) == (base.version + 1, base.logical, 80)
    indexed = open_table(root.location, landed)
    assert len(indexed.indexes()) == 4
    assert stage_indexes(root, "b1", landed, plan_indexes(node, indexed)) is None
    hits = text_topk(indexed, "title", "word7", mode=TextMode.MATCH_TEXT)
    assert hits.rows["id"].to_pylist() == ["d000007", "d000047"]


def test_another_branch_indexes_its_own_line(tmp_path: Path) -> None:
    root = GraphRoot.at(str(tmp_path / "graph"))
    node = replace(doc_type(), indexes=(("title",),))
    base = land(root, Stager(root, "b1").create(node, docs(80)))
    assert base.path.startswith(new_path(node, "b1")[:10])
    staged = stage_indexes(root, "b2", base, plan_indexes(node, open_table(root.location, base)))
    assert staged is not None
    landed = land(root, staged)
    assert landed.fork is not None
    assert len(open_table(root.location, landed).indexes()) == 3
    assert open_table(root.location, base).indexes() == ()
