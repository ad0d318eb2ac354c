"""Nearest vectors: exact or by index, filtered before the ranking, complete, deterministic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    rows_as_they_lie,
    upsert,
    vector_column,
    vectors,
    write,
)

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.indexes import IndexKind
from omnigraph.storage import search
from omnigraph.storage.indexplan import IndexTask
from omnigraph.storage.search import VectorTuning, vector_topk
from omnigraph.storage.table import Table

ROWS = 3000
EXACT = VectorTuning(exact=True)


def names(count: int, start: int = 0) -> list[str]:
    return [f"x{number:05d}" for number in range(start, start + count)]


ALL = names(ROWS)


def table_of(values: Any, ids: list[str] | None = None) -> pa.Table:
    found = ids or names(len(values))
    years = pa.array([1990 + number % 30 for number in range(len(found))], pa.int32())
    return pa.table({"id": found, "year": years, "vec": vector_column(values)})


def index_task(table: Table, type_: str, partitions: int = 6) -> IndexTask:
    fragments = tuple(f.fragment_id for f in table.dataset.get_fragments())
    params = {"metric": "cosine", "num_partitions": partitions}
    name = "vec_coarse" if type_ == "IVF_RQ" else "vec_whole"
    return IndexTask(
        "vec", "vec", IndexKind.VECTOR, type_, name, table.rows, "missing", fragments, params=params
    )


def distances_of(hits: search.Hits) -> list[tuple[str, float]]:
    return list(zip(ids_of(hits), hits.rows.column("distance").to_pylist(), strict=True))


def truth(values: Any, query: Any, k: int | None, ids: list[str] | None = None) -> list[str]:
    found = ids or names(len(values))
    distances = search.cosine_distances(np.asarray(values, dtype=np.float32), query)
    ranked = sorted(zip(distances.tolist(), found, strict=True))
    return [name for distance, name in ranked if distance == distance][:k]


def assert_found(hits: search.Hits, expected: list[str]) -> None:
    """Exactly the expected ids; but an index with coarse codes may miss one in ten."""
    found = ids_of(hits)
    if "vec_coarse" in str(hits.access):
        assert len(found) == len(expected)
        assert len(set(found) & set(expected)) >= 0.8 * len(expected)
    else:
        assert found == expected


def ids_of(hits: search.Hits) -> list[str]:
    found: list[str] = hits.rows.column("id").to_pylist()
    return found


@pytest.fixture(scope="module", params=["none", "IVF_FLAT", "IVF_RQ"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("vectors") / request.param
    table = write(path, table_of(vectors(ROWS)))
    return table if request.param == "none" else build(path, index_task(table, request.param))


def test_the_nearest_come_first(indexed: Table) -> None:
    stored = vectors(ROWS)
    for query in vectors(10, seed=1):
        hits = vector_topk(indexed, "vec", query, 10)
        assert_found(hits, truth(stored, query, 10))
        assert hits.rows.column_names == ["_rowid", "id", "distance"]
        distances = hits.rows.column("distance").to_pylist()
        assert distances == sorted(distances)
    expected = search.Path.INDEX if indexed.indexes() else search.Path.SCAN
    assert hits.access.path is expected


def test_index_and_scan_say_the_same_distances(indexed: Table) -> None:
    query = vectors(1, seed=2)[0]
    exact = dict(distances_of(vector_topk(indexed, "vec", query, 50, tuning=EXACT)))
    found = dict(distances_of(vector_topk(indexed, "vec", query, 25)))
    assert found == {name: exact[name] for name in found}


@pytest.mark.parametrize("allowed", [0, 1, 7, 100, 399, 1200, ROWS])
def test_only_allowed_rows_and_as_many_as_there_are(indexed: Table, allowed: int) -> None:
    stored, query = vectors(ROWS), vectors(1, seed=3)[0]
    rows = np.random.default_rng(allowed).choice(ROWS, allowed, replace=False)
    expected = truth(stored[rows], query, 10, [ALL[row] for row in rows])
    assert_found(vector_topk(indexed, "vec", query, 10, rows=rows), expected)


def test_a_filter_applies_before_the_ranking(indexed: Table) -> None:
    stored, query = vectors(ROWS), vectors(1, seed=4)[0]
    kept = [number for number in range(ROWS) if 1990 + number % 30 == 1997]
    expected = truth(stored[kept], query, 10, [ALL[row] for row in kept])
    assert_found(vector_topk(indexed, "vec", query, 10, filter=pc.field("year") == 1997), expected)
    both = vector_topk(
        indexed, "vec", query, 10, filter=pc.field("year") == 1997, rows=np.arange(ROWS // 2)
    )
    kept = [number for number in kept if number < ROWS // 2]
    assert_found(both, truth(stored[kept], query, 10, [ALL[row] for row in kept]))


def test_few_probes_do_not_starve_the_answer(indexed: Table) -> None:
    rows = np.arange(0, ROWS, 6)
    tuning = VectorTuning(probes=1, exact=False)
    hits = vector_topk(indexed, "vec", vectors(1, seed=5)[0], 450, rows=rows, tuning=tuning)
    assert len(hits) == 450


def test_all_rows_can_be_ranked(indexed: Table) -> None:
    query = vectors(1, seed=6)[0]
    assert ids_of(vector_topk(indexed, "vec", query, None)) == truth(vectors(ROWS), query, None)
    assert len(vector_topk(indexed, "vec", query, ROWS + 5)) == ROWS
    assert len(vector_topk(indexed, "vec", query, 0)) == 0


def test_ids_are_left_out_when_nobody_wants_them(indexed: Table) -> None:
    query = vectors(1, seed=7)[0]
    hits = vector_topk(indexed, "vec", query, 5, tie_break=rows_as_they_lie)
    whole = vector_topk(indexed, "vec", query, 5)
    assert hits.rows.equals(whole.rows.select(["_rowid", "distance"]))
    nothing = vector_topk(indexed, "vec", query, 5, rows=[], tie_break=rows_as_they_lie)
    assert nothing.rows.column_names == ["_rowid", "distance"]


@pytest.mark.parametrize("allowed", [3, 400, 1200])
def test_vectors_that_memory_holds_are_not_read(indexed: Table, allowed: int) -> None:
    stored = vectors(ROWS)
    stored[ROWS // 2 :] = stored[0]  # ties, and another answer than the table itself would give
    column = vector_column([None if n == 0 else row for n, row in enumerate(stored)])
    rows = np.arange(0, ROWS, ROWS // allowed)[:allowed]
    asked: list[int] = []

    def holder(row_ids: Any) -> Any:
        asked.append(len(row_ids))
        return column.take(pa.array(row_ids))

    hits = vector_topk(
        indexed,
        "vec",
        stored[0],
        10,
        rows=rows,
        tuning=EXACT,
        tie_break=rows_as_they_lie,
        holder=holder,
    )
    assert hits.access.path is search.Path.MEMORY
    assert asked == [allowed]
    found = [ALL[row] for row in hits.rows.column("_rowid").to_pylist()]
    assert found == truth(stored[rows[1:]], stored[0], 10, [ALL[row] for row in rows[1:]])


def test_an_index_proposes_what_memory_decides(indexed: Table) -> None:
    stored = vectors(ROWS)
    query = vectors(1, seed=9)[0]
    column = vector_column(stored)
    whole = vector_topk(indexed, "vec", query, 10)
    hits = vector_topk(
        indexed,
        "vec",
        query,
        10,
        tie_break=rows_as_they_lie,
        holder=lambda row_ids: column.take(pa.array(row_ids)),
    )
    assert hits.access == whole.access
    assert hits.rows.equals(whole.rows.select(["_rowid", "distance"]))


@pytest.mark.parametrize("type_", ["none", "IVF_FLAT", "IVF_RQ"])
def test_ties_break_by_id_even_at_the_cut(tmp_path: Path, type_: str) -> None:
    # ledger: Q06
    stored = vectors(1500)
    stored[200:900] = stored[200] * np.linspace(0.5, 2, 700)[:, None].astype(np.float32)
    ids = names(1500)[::-1]
    table = write(tmp_path / "t", table_of(stored, ids))
    if type_ != "none":
        table = build(tmp_path / "t", index_task(table, type_, 3))
    hits = vector_topk(table, "vec", stored[200], 5)
    assert ids_of(hits) == sorted(ids[200:900])[:5]
    assert set(hits.rows.column("distance").to_pylist()) == {0.0}


@pytest.mark.parametrize("type_", ["none", "IVF_FLAT", "IVF_RQ"])
def test_rows_without_a_vector_never_match(tmp_path: Path, type_: str) -> None:
    stored: list[Any] = list(vectors(1200))
    stored[3], stored[4], stored[5] = None, [0.0] * DIM, [float("nan")] * DIM
    table = write(tmp_path / "t", table_of(stored))
    if type_ != "none":
        table = build(tmp_path / "t", index_task(table, type_, 3))
    query = vectors(1, seed=8)[0]
    for rows in (None, np.arange(800), [3, 4, 5, 6]):
        found = set(ids_of(vector_topk(table, "vec", query, 5000, rows=rows)))
        assert not found & {"x00003", "x00004", "x00005"}
    assert len(vector_topk(table, "vec", query, 5000)) == 1197
    assert len(vector_topk(table, "vec", query, 1200)) == 1197


@pytest.mark.parametrize("type_", ["IVF_FLAT", "IVF_RQ"])
def test_rows_that_no_index_covers_are_found(tmp_path: Path, type_: str) -> None:
    # ledger: I02
    path = tmp_path / "t"
    stored = vectors(2000)
    table = build(path, index_task(write(path, table_of(stored)), type_, 4))
    query = vectors(1, seed=9)[0]
    upsert(path, table_of([query, -query], ["x00007", "new1"]))
    append(path, table_of([query * 2], ["new2"]))
    table = delete(path, "x00008")
    hits = vector_topk(table, "vec", query, 3000)
    assert ids_of(hits)[:2] == ["new2", "x00007"]
    assert ids_of(hits)[-1] == "new1"
    assert len(hits) == 2001
    assert (hits.access.path, hits.access.scanned) == (search.Path.MIXED, 3)
    assert "3 rows without index" in str(hits.access)
    # The old vector of an updated row is gone, and so is a deleted row.
    assert ids_of(vector_topk(table, "vec", stored[7], 5))[0] != "x00007"
    assert ids_of(vector_topk(table, "vec", stored[8], 5))[0] != "x00008"
    known = dict(zip(ids_of(hits), hits.rows.column("_rowid").to_pylist(), strict=True))
    some = [known[name] for name in ("x00007", "new1", "x00500")] + list(range(1000, 1500))
    assert ids_of(vector_topk(table, "vec", query, 1000, rows=some))[0] == "x00007"


@pytest.mark.parametrize("type_", ["IVF_FLAT", "IVF_RQ"])
def test_many_uncovered_rows_do_not_crowd_out_the_index(tmp_path: Path, type_: str) -> None:
    path = tmp_path / "t"
    stored = vectors(4000)
    table = build(path, index_task(write(path, table_of(stored[:2000])), type_, 4))
    table = append(path, table_of(stored[2000:], names(2000, 2000)))
    for query in vectors(8, seed=10):
        assert_found(vector_topk(table, "vec", query, 10), truth(stored, query, 10))


def test_a_column_rewritten_in_place_is_searched_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    stored = vectors(1500)
    table = build(path, index_task(write(path, table_of(stored)), "IVF_RQ", 2))
    changed = pa.table({"id": ["x00010"], "vec": vector_column([-stored[10]])})
    merge = table.dataset.merge_insert("id").when_matched_update_all()
    merge.write_mode("rewrite_columns").execute(changed)
    table = reopen(path)
    assert ids_of(vector_topk(table, "vec", -stored[10], 1)) == ["x00010"]
    assert ids_of(vector_topk(table, "vec", stored[10], 1)) != ["x00010"]


def test_queries_that_make_no_sense(indexed: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="3 dimensions; 'vec' has 64"):
        vector_topk(indexed, "vec", [1, 2, 3], 5)
    with pytest.raises(InvalidArgumentError, match="no direction"):
        vector_topk(indexed, "vec", [0.0] * DIM, 5)
    with pytest.raises(InvalidArgumentError, match="no direction"):
        vector_topk(indexed, "vec", [float("nan")] * DIM, 5)
    with pytest.raises(InvalidArgumentError, match="no vectors"):
        vector_topk(indexed, "year", [1.0], 5)


def test_an_empty_table_has_no_neighbours(tmp_path: Path) -> None:
    table = write(tmp_path / "t", table_of([]))
    hits = vector_topk(table, "vec", vectors(1)[0], 5)
    assert (len(hits), hits.access.path) == (0, search.Path.NONE)
