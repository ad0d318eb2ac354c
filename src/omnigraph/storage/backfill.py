"""Adds columns to a stored table in several processes: one task per file, combined here.

    fill_columns(root, branch_id, table, version, {"p7": 0}, spread)

Guarantees: what `Stager.add_columns` and `Stager.reshape` would stage, rows in the same order;
nothing here moves a table's head. A task opens the very version that it was planned on, streams its
files and answers with their names; one that runs twice leaves litter and nothing else.
Deliberately absent: Spark, and which tables need this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import lance
import pyarrow as pa
from lance.dataset import Transaction
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.commit import StagedWrite
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.columnchange import fill_files, reshaped
from omnigraph.storage.distributed import StagedFile, Target, finish_target, prepare_target
from omnigraph.storage.failures import translated
from omnigraph.storage.maintenancetasks import Spread, TableAt
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import Prepared
from omnigraph.storage.tableschema import FILE_FORMAT, ROWS_PER_FILE, physical_schema

TableType = NodeType | EdgeType
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class FilesTask:
    """Some files of a table that is to get the columns of its type."""

    at: TableAt
    target: Target
    files: tuple[int, ...]
    fills: Mapping[str, Any]


@dataclass(frozen=True)
class Filled:
    """Files with more columns, as JSON, and the schema that they have now."""

    files: tuple[str, ...]
    schema: Any


def fill_columns(
    root: GraphRoot,
    branch_id: str,
    table: TableType,
    base: TableVersion,
    fills: Mapping[str, Any],
    spread: Spread,
) -> StagedWrite:
    """Columns that the type has and the data lacks, of which some have a value in every row."""
    target = prepare_target(root, branch_id, table, base, replaces=False)
    dataset, parts = _run(target, fills, _fill, spread, f"fill {table.name}")
    fragments = [FragmentMetadata.from_json(text) for part in parts for text in part.files]
    operation = lance.LanceOperation.Merge(fragments, parts[0].schema)
    prepared = Prepared(Transaction(read_version=dataset.version, operation=operation), dataset)
    return StagedWrite(table.id, base.path, target.fork, base, prepared, base.rows)


def rewrite_table(
    root: GraphRoot,
    branch_id: str,
    table: TableType,
    base: TableVersion,
    fills: Mapping[str, Any],
    spread: Spread,
) -> StagedWrite:
    """Rewrite all rows in the columns of the type."""
    target = prepare_target(root, branch_id, table, base, replaces=True)
    _, parts = _run(target, fills, _rewrite, spread, f"rewrite {table.name}")
    return finish_target(target, [file for part in parts for file in part])


def _run(
    target: Target,
    fills: Mapping[str, Any],
    function: Callable[[FilesTask], _Answer],
    spread: Spread,
    what: str,
) -> tuple[Any, list[_Answer]]:
    """The line that is written to, and what the tasks answer."""
    assert target.base is not None
    at = TableAt(target.location, target.path, target.fork, target.base.version)
    dataset = at.open()
    tasks = [FilesTask(at, target, files, fills) for files in _shares(dataset)]
    return dataset, spread(function, tasks, what)


def _shares(dataset: Any) -> Iterator[tuple[int, ...]]:
    """Files that lie beside each other, about as many rows in each share as a file may have."""
    share: list[int] = []
    rows = 0
    for file in dataset.get_fragments():
        share.append(int(file.fragment_id))
        rows += file.metadata.num_rows
        if rows >= ROWS_PER_FILE:
            yield tuple(share)
            share, rows = [], 0
    if share:
        yield tuple(share)


# On workers.


def _fill(task: FilesTask) -> Filled:
    dataset = task.at.open()
    there = set(dataset.schema.names)
    missing = [field for field in physical_schema(task.target.table) if field.name not in there]
    with translated("stage", dataset.uri):
        files, schema = fill_files(_opened(dataset, task), missing, task.fills)
    return Filled(tuple(json.dumps(file.to_json()) for file in files), schema)


def _rewrite(task: FilesTask) -> list[StagedFile]:
    dataset = task.at.open()
    schema = physical_schema(task.target.table)
    with translated("stage", dataset.uri):
        rows = reshaped(dataset, schema, task.fills, files=_opened(dataset, task))
        written = write_fragments(
            pa.RecordBatchReader.from_batches(schema, rows),
            task.target.uri,
            mode="overwrite",
            data_storage_version=FILE_FORMAT,
            max_rows_per_file=ROWS_PER_FILE,
            enable_stable_row_ids=True,
            allow_external_blob_outside_bases=True,
            storage_options=dict(task.target.location.storage_options) or None,
        )
    return [StagedFile(json.dumps(file.to_json()), int(file.physical_rows)) for file in written]


def _opened(dataset: Any, task: FilesTask) -> Sequence[Any]:
    return [dataset.get_fragment(number) for number in task.files]
