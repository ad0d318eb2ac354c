"""Columns that come and go without their files being touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.columnchange import build_columns, drop_transaction


def made(place: Path) -> Any:
    rows = {"id": ["a", "b"], "first": [1, 2], "scan": lance.blob_array([b"x", None])}
    data = pa.table({**rows, "last": ["p", "q"]})
    return lance.write_dataset(
        data, str(place / "t"), data_storage_version="2.2", enable_stable_row_ids=True
    )


def land(dataset: Any, transaction: Any) -> Any:
    assert transaction is not None
    return lance.LanceDataset.commit(
        dataset, transaction, read_version=dataset.version, max_retries=0
    )


@pytest.mark.parametrize("gone", [{"last"}, {"first"}, {"scan"}, {"scan", "last"}])
def test_the_others_keep_their_values(tmp_path: Path, gone: set[str]) -> None:
    dataset = made(tmp_path)
    was = dataset.to_table(blob_handling="all_binary").to_pylist()
    left = land(dataset, drop_transaction(dataset, dataset.version, gone))
    shown = left.to_table(blob_handling="all_binary").to_pylist()
    assert shown == [{k: v for k, v in row.items() if k not in gone} for row in was]
    assert drop_transaction(left, left.version, gone) is None


@pytest.mark.parametrize("fill", [None, "new"])
@pytest.mark.parametrize("gone", [{"last"}, {"first"}, {"scan", "last"}])
def test_a_new_column_never_shows_what_lies_in_old_files(
    tmp_path: Path, gone: set[str], fill: str | None
) -> None:
    dataset = made(tmp_path)
    left = land(dataset, drop_transaction(dataset, dataset.version, gone))
    fields = [pa.field("more", pa.string()), pa.field("count", pa.int64())]
    wider = land(left, build_columns(left, fields, {"more": fill}))
    files = [[file.path for file in f.metadata.files] for f in left.get_fragments()]
    now = [[file.path for file in f.metadata.files] for f in wider.get_fragments()]
    assert (now == files) == (fill is None), "columns without values are metadata alone"
    rows = wider.to_table(blob_handling="all_binary").to_pylist()
    assert [(row["more"], row["count"]) for row in rows] == [(fill, None)] * 2
    assert {"id", "more", "count"} < set(rows[0])
    wider.validate()


def test_columns_of_every_kind_come_without_a_file(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    fields = [
        lance.blob_field("photo"),
        pa.field("vec", pa.list_(pa.float32(), 4)),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("day", pa.date32()),
    ]
    wider = land(dataset, build_columns(dataset, fields, {}))
    assert len(wider.get_fragments()[0].metadata.files) == 1
    assert wider.schema.names == [*dataset.schema.names, *(field.name for field in fields)]
    new = {"id": ["c"], "first": [3], "scan": lance.blob_array([b"s"]), "last": ["r"]}
    rows = pa.table(
        {
            **new,
            "photo": lance.blob_array([b"p"]),
            "vec": pa.array([[1.0, 2, 3, 4]], pa.list_(pa.float32(), 4)),
            "tags": [["x"]],
            "day": pa.array([1], pa.date32()),
        }
    )
    grown = lance.write_dataset(rows, wider, mode="append")
    shown = grown.to_table(blob_handling="all_binary").to_pylist()
    assert [(row["id"], row["scan"], row["photo"], row["vec"], row["tags"]) for row in shown] == [
        ("a", b"x", None, None, None),
        ("b", None, None, None, None),
        ("c", b"s", b"p", [1.0, 2.0, 3.0, 4.0], ["x"]),
    ]
    grown.validate()
