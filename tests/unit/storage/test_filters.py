"""Filtered scans of tables with columns that Substrait cannot describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.storage.filters import scanner

COLUMNS: dict[str, pa.Array] = {
    "unsigned": pa.array([1, None, 3], pa.uint64()),
    "strings": pa.array([["x"], None, []], pa.list_(pa.string())),
    "u32s": pa.array([[1], None, []], pa.list_(pa.uint32())),
    "u64s": pa.array([[1], None, []], pa.list_(pa.uint64())),
    "times": pa.array([[1], None, []], pa.list_(pa.timestamp("us", "UTC"))),
    "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "vectors": pa.array([[[1.0, 2.0]], None, []], pa.list_(pa.list_(pa.float32(), 2))),
}


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({**COLUMNS, "id": ["a", "b", "c"], "n": pa.array([1, 2, None], pa.int32())})
    made = lance.write_dataset(table, tmp_path / "t.lance")
    made.create_scalar_index("id", "BTREE")
    return lance.dataset(tmp_path / "t.lance")


def ids(dataset: Any, chosen: pc.Expression, **options: Any) -> list[str]:
    found = scanner(dataset, columns=["id"], filter=chosen, **options).to_table()
    return [str(each) for each in found.column("id").to_pylist()]


def test_columns_that_a_filter_does_not_name_do_not_matter(dataset: Any) -> None:
    assert ids(dataset, pc.field("id") == "b") == ["b"]
    assert ids(dataset, pc.field("id").isin(["a", "c"])) == ["a", "c"]
    assert ids(dataset, (pc.field("n") > 1) & pc.field("id").is_valid()) == ["b"]


@pytest.mark.parametrize("name", sorted(set(COLUMNS) - {"unsigned"}))
def test_any_nested_column_can_be_tested_for_null(dataset: Any, name: str) -> None:
    assert ids(dataset, pc.field(name).is_null()) == ["b"]
    assert ids(dataset, pc.field(name).is_valid()) == ["a", "c"]
    assert ids(dataset, pc.field(name).is_valid() & (pc.field("n") == 1)) == ["a"]


def test_an_index_is_used(dataset: Any) -> None:
    plan = scanner(dataset, columns=["id"], filter=pc.field("id") == "a").explain_plan()
    assert "ScalarIndexQuery" in plan


def test_options_mean_what_they_mean_to_lance(dataset: Any) -> None:
    fragments = dataset.get_fragments()
    assert ids(dataset, pc.field("id") != "a", limit=1, fragments=fragments) == ["b"]
    assert scanner(dataset, filter="id = 'c'").to_table().column("id").to_pylist() == ["c"]
    found = scanner(dataset, columns=[], filter=None, limit=None, with_row_id=True).to_table()
    assert found.column_names == ["_rowid"]
    assert found.num_rows == 3
