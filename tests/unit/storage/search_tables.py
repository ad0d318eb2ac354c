"""Small tables for the tests of search and indexes, written with Lance directly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.indexfiles import stage_index, transaction_of
from omnigraph.storage.indexplan import IndexTask
from omnigraph.storage.table import Table

DIM = 64


def vectors(rows: int, dim: int = DIM, seed: int = 0) -> np.ndarray[Any, Any]:
    """Directions without any structure: the hardest case for an index."""
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def vector_column(values: Iterable[Any], dim: int = DIM) -> pa.Array:
    lists = [None if value is None else [float(item) for item in value] for value in values]
    return pa.array(lists, pa.list_(pa.float32(), dim))


def write(path: Path, data: pa.Table, rows_per_file: int = 1000) -> Table:
    lance.write_dataset(
        data, str(path), enable_stable_row_ids=True, max_rows_per_file=rows_per_file
    )
    return reopen(path)


def append(path: Path, data: pa.Table) -> Table:
    lance.write_dataset(data, str(path), mode="append")
    return reopen(path)


def upsert(path: Path, data: pa.Table) -> Table:
    dataset = lance.dataset(str(path))
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)
    return reopen(path)


def delete(path: Path, *ids: str) -> Table:
    dataset = lance.dataset(str(path))
    keys = pa.table({"id": list(ids)})
    dataset.merge_insert("id").when_matched_delete().execute(keys)
    return reopen(path)


def rows_as_they_lie(row_ids: Any) -> Any:
    """A tie break for tables whose ids ascend with their rows."""
    return row_ids


def reopen(path: Path) -> Table:
    dataset = lance.dataset(str(path))
    version = TableVersion(1, path.name, None, dataset.version, 1, dataset.count_rows())
    return Table(dataset, version)


def build(path: Path, *tasks: IndexTask) -> Table:
    """Build and commit indexes, as the commit door would."""
    dataset = lance.dataset(str(path))
    staged = [stage_index(dataset, task) for task in tasks]
    transaction = transaction_of(dataset.version, staged)
    lance.LanceDataset.commit(dataset, transaction, read_version=dataset.version, max_retries=0)
    return reopen(path)
