"""Compaction under indexes: what Lance does with a transaction of ours, and that no row is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.compaction import (
    Group,
    plan_layout,
    rewrite,
    rewrite_transaction,
    still_valid,
)
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import forget_tables, open_table

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "INVERTED": ("text", {"with_position": True}),
    "IVF_FLAT": ("vec", {"metric": "cosine", "num_partitions": 2}),
    "BTREE": ("id", {}),
}


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    vectors = np.random.default_rng(first).normal(size=count * 16).astype(np.float32)
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "text": [f"hello{n}" for n in numbers],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16),
        }
    )


def make(place: Path, kind: str, covered: list[int]) -> tuple[GraphRoot, TableVersion]:
    """A table of five files, some of which an index covers."""
    root = GraphRoot.at(str(place))
    uri = str(place / "nodes/t-main-x")
    options: dict[str, Any] = {"enable_stable_row_ids": True, "data_storage_version": "2.2"}
    dataset = lance.write_dataset(rows(0, 300), uri, **options)
    for n in range(1, 5):
        dataset = lance.write_dataset(rows(n * 300, 300), dataset, mode="append")
    column, params = KINDS[kind]
    index = dataset.create_index_uncommitted(column, kind, name="x", fragment_ids=covered, **params)
    if kind == "INVERTED":
        index = dataset.merge_existing_index_segments([index])
    operation = lance.LanceOperation.CreateIndex(new_indices=[index], removed_indices=[])
    dataset = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    forget_tables()
    return root, TableVersion(1, "nodes/t-main-x", None, dataset.version, 1, 1500)


def land(dataset: Any, groups: tuple[Group, ...]) -> Any:
    transaction = rewrite_transaction(dataset.version, groups)
    return lance.LanceDataset.commit(
        dataset, transaction, read_version=dataset.version, max_retries=0
    )


def found(dataset: Any, kind: str, n: int) -> bool:
    """Whether the row of a number is found by way of the index."""
    if kind == "BTREE":
        return dataset.count_rows(filter=f"id = 'k{n}'") == 1
    if kind == "INVERTED":
        hits = dataset.to_table(full_text_query=f"hello{n}", columns=["id", "_score"])
    else:
        vector = dataset.to_table(filter=f"id = 'k{n}'").column("vec")[0].as_py()
        near = {"column": "vec", "q": np.array(vector, np.float32), "k": 1, "nprobes": 2}
        hits = dataset.to_table(nearest=near, columns=["id", "_distance"])
    return hits.column("id").to_pylist() == [f"k{n}"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("covered", [[0, 1, 2, 3, 4], [1, 2, 3, 4], [0, 1]])
def test_every_row_is_found_after_compaction(tmp_path: Path, kind: str, covered: list[int]) -> None:
    root, version = make(tmp_path, kind, covered)
    table = open_table(root.location, version)
    plan = plan_layout(table)
    assert not plan.is_empty
    groups = still_valid(table.dataset, rewrite(table.dataset, plan))
    compacted = land(table.dataset, groups)
    assert compacted.version == version.version + 1
    assert compacted.count_rows() == 1500
    assert all(found(compacted, kind, n) for n in (0, 299, 300, 650, 1100, 1499))
    there = {fragment.fragment_id for fragment in compacted.get_fragments()}
    (index,) = compacted.describe_indices()
    kept = set().union(*(set(segment.fragment_ids) for segment in index.segments))
    assert kept <= there
    if kind == "BTREE":  # knows rows by their place, so those that moved fall out
        moved = {int(old.id) for group in groups for old in group.old}
        assert kept == set(covered) - moved
    else:
        assert int(index.num_rows_indexed) == 300 * len(covered)


def test_numbers_that_are_given_stay_and_are_new(tmp_path: Path) -> None:
    root, version = make(tmp_path, "BTREE", [0])
    table = open_table(root.location, version)
    (group,) = still_valid(table.dataset, rewrite(table.dataset, plan_layout(table)))
    (given,) = [int(file.id) for file in group.new]
    assert given > 4, "above those of the files that are there"
    grown = lance.write_dataset(rows(1500, 1), lance.dataset(table.dataset.uri), mode="append")
    assert [fragment.fragment_id for fragment in grown.get_fragments()][-1] == 5
    assert given > 5, "writers have room for files of their own until it lands"
    compacted = land(grown, (group,))
    assert [fragment.fragment_id for fragment in compacted.get_fragments()] == [5, given]
    grown = lance.write_dataset(rows(1501, 1), compacted, mode="append")
    assert [fragment.fragment_id for fragment in grown.get_fragments()] == [5, given, given + 1]


def test_numbers_that_writers_have_reached_do_not_fit_any_more(tmp_path: Path) -> None:
    root, version = make(tmp_path, "BTREE", [0])
    table = open_table(root.location, version)
    rewritten = rewrite(table.dataset, plan_layout(table))
    newer = lance.dataset(table.dataset.uri)
    grown = lance.write_dataset(rows(1500, 1), newer, mode="append")
    assert still_valid(grown, replace(rewritten, first=6)) != ()
    assert still_valid(grown, replace(rewritten, first=5)) == ()


def test_lance_takes_a_file_without_number_for_the_first(tmp_path: Path) -> None:
    """Why the numbers are given: should this change, the care taken can go."""
    root, version = make(tmp_path, "INVERTED", [1, 2, 3, 4])
    table = open_table(root.location, version)
    rewritten = rewrite(table.dataset, plan_layout(table))
    plain = [Group(g.old, tuple(replace(file, id=0) for file in g.new)) for g in rewritten.groups]
    compacted = land(table.dataset, tuple(plain))
    assert not found(compacted, "INVERTED", 5)


def test_files_that_writers_changed_do_not_fit_any_more(tmp_path: Path) -> None:
    root, version = make(tmp_path, "BTREE", [0])
    table = open_table(root.location, version)
    rewritten = rewrite(table.dataset, plan_layout(table))
    newer = lance.dataset(table.dataset.uri)
    grown = lance.write_dataset(rows(1500, 10), newer, mode="append")
    assert len(still_valid(grown, rewritten)) == 1
    grown.delete("id = 'k7'")
    assert still_valid(lance.dataset(table.dataset.uri), rewritten) == ()
