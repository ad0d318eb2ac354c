"""Writing the files of indexes, without making them visible.

    staged = stage_indexes(root, branch_id, table.version, plan_indexes(table_type, table))

Guarantees: all indexes of a table become visible in one version, or none; nothing here moves a
table's head. Every kind of index goes through the same Lance transaction: a text index must be
merged first, even when it is one segment, and then commits like the others.
Deliberately absent: deciding what to build (`indexplan`) and publishing (`commit`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import lance
import numpy as np
import pyarrow.compute as pc
from lance.dataset import Index
from lance.indices import IndicesBuilder
from numpy.typing import NDArray

from omnigraph.model.commit import StagedWrite
from omnigraph.model.indexes import IndexKind
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.indexplan import IndexTask, partitions_for, sound_vectors
from omnigraph.storage.nprobes import calibrate, sample_queries
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import Prepared, writable_line

# With fewer partitions all of them are probed, and there is nothing to measure.
_MEASURED_PARTITIONS = 8
_CALIBRATION_ROWS = 128


@dataclass(frozen=True, slots=True)
class StagedIndex:
    """Index files that are written and not yet visible, and the segments that they replace."""

    task: IndexTask
    index: Any
    removed: tuple[Any, ...]


def stage_indexes(
    root: GraphRoot, branch_id: str, base: TableVersion, tasks: Iterable[IndexTask]
) -> StagedWrite | None:
    """Build all tasks that are not pending; one staged write for them, or None for nothing."""
    due = [task for task in tasks if task.pending is None]
    if not due:
        return None
    fork, dataset = writable_line(root, base, branch_id)
    staged = [stage_index(dataset, task) for task in due]
    prepared = Prepared(transaction_of(base.version, staged), dataset)
    return StagedWrite(base.table_id, base.path, fork, base, prepared, base.rows, logical=False)


def transaction_of(version: int, staged: Sequence[StagedIndex], removed: Sequence[Any] = ()) -> Any:
    """One Lance transaction that makes staged indexes visible together, and lets go of segments."""
    operation = lance.LanceOperation.CreateIndex(
        new_indices=[item.index for item in staged],
        removed_indices=[*removed, *(segment for item in staged for segment in item.removed)],
    )
    return lance.Transaction(read_version=version, operation=operation)


def stage_index(dataset: Any, task: IndexTask) -> StagedIndex:
    """Write the files of one index."""
    with translated("stage", dataset.uri):
        removed = tuple(segments_of(dataset, set(task.replaces)))
        name, params = task.name, dict(task.params)
        if task.kind is IndexKind.VECTOR:
            name, params = _train(dataset, task)
        index = dataset.create_index_uncommitted(
            task.column,
            task.type,
            name=f"{name}__staged",  # the final name may be taken by what this extends
            fragment_ids=list(task.fragments),
            **params,
        )
        if task.kind is IndexKind.FTS:
            # Only this turns the parts of a text index into the files that a reader expects.
            index = dataset.merge_existing_index_segments([index])
        return StagedIndex(task, replace(index, name=name), removed)


def _train(dataset: Any, task: IndexTask) -> tuple[str, dict[str, Any]]:
    """Centroids of a vector index; a new one also learns how many to probe, kept in its name."""
    params = dict(task.params)
    # The plan counted rows; many of them may have no vector.
    sound = sum(len(batch) for batch in sound_vectors(dataset, task))
    params["num_partitions"] = min(params["num_partitions"], partitions_for(sound))
    if task.extends or params["num_partitions"] < _MEASURED_PARTITIONS:
        return task.name, params
    model = IndicesBuilder(dataset, task.column).train_ivf(
        params["num_partitions"], distance_type="cosine", fragment_ids=list(task.fragments)
    )
    params["ivf_centroids"] = model.centroids
    centroids = np.asarray(model.centroids.flatten()).reshape(len(model.centroids), -1)
    queries = sample_queries(_sample(dataset, task))
    curve = calibrate(sound_vectors(dataset, task), queries, centroids)
    return task.name + (curve.suffix if curve else ""), params


def _sample(dataset: Any, task: IndexTask) -> NDArray[np.float32]:
    """Some rows from everywhere in the table."""
    rows = dataset.count_rows()
    places = np.random.default_rng(0).choice(rows, min(rows, _CALIBRATION_ROWS), replace=False)
    found = dataset.take(np.sort(places).tolist(), columns=[task.column]).column(0)
    values = pc.drop_null(found).combine_chunks()
    return np.asarray(values.flatten(), dtype=np.float32).reshape(len(values), -1)


def segments_of(dataset: Any, wanted: Collection[str]) -> Iterator[Any]:
    """Segments as Lance names them when they are removed."""
    for index in dataset.describe_indices():
        for segment in index.segments:
            if str(segment.uuid) in wanted:
                yield Index(
                    uuid=str(segment.uuid),
                    name=index.name,
                    fields=list(index.fields),
                    dataset_version=segment.dataset_version_at_last_update,
                    fragment_ids=segment.fragment_ids,
                    index_version=segment.index_version,
                    base_id=segment.base_id,
                )
