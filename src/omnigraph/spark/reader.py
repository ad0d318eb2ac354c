"""Reading one type of a snapshot as a Spark table.

Guarantees: partitions are groups of the table's own files; only the columns of the asked schema are
read; filters that are taken over, on request, mean exactly what they mean in Spark.
Deliberately absent: column pruning by Spark itself. It asks for all columns of the schema, so give
`.schema(…)` when few are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSourceReader, InputPartition

from omnigraph.bulk.stagedkeys import shares
from omnigraph.engines.snapshotreader import visible_ids
from omnigraph.engines.spark.sparktypes import column_types, physical_names, to_spark
from omnigraph.engines.spark.workergc import spare_collector
from omnigraph.errors import InvalidArgumentError
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.types import Kind
from omnigraph.rows.checks import TableType
from omnigraph.storage.distributed import list_files, scan_files

# Files are grouped into as many partitions as tasks run side by side; twice as many from so many
# rows for each on, and so forth. A task costs about as much as reading 100,000 rows.
_PARTITION_ROWS = 4_000_000
_COMPARISONS: dict[type[Any], Any] = {
    ds.EqualTo: lambda field, value: field == value,
    ds.GreaterThan: lambda field, value: field > value,
    ds.GreaterThanOrEqual: lambda field, value: field >= value,
    ds.LessThan: lambda field, value: field < value,
    ds.LessThanOrEqual: lambda field, value: field <= value,
}
# Compared the same way on both sides; times and floats are left to Spark.
_ALIKE = frozenset({Kind.STRING, Kind.BOOL, Kind.I32, Kind.I64, Kind.DATE})


class PinnedTableReader(DataSourceReader):
    """Reads a pinned version of one table."""

    def __init__(
        self,
        snapshot: Snapshot,
        table: TableType,
        columns: Sequence[str],
        parallelism: int,
    ) -> None:
        self._location = snapshot.location
        self._version = snapshot.table(table.id)
        self._ids = visible_ids(snapshot, table)
        self._table = table
        self._columns = list(columns)
        self._parallelism = parallelism
        self._filter: pc.Expression | None = None
        unknown = [name for name in columns if name not in column_types(table)]
        if unknown:
            raise InvalidArgumentError(f"{table.name} has no property {unknown[0]!r}.")

    def partitions(self) -> list[InputPartition]:
        if self._version is None or self._version.rows == 0:
            return [InputPartition(())]
        files = list_files(self._location, self._version)
        rounds = -(-self._version.rows // (_PARTITION_ROWS * self._parallelism))
        groups = shares(files, lambda file: file[1], rounds * self._parallelism)
        return [InputPartition(tuple(number for number, _ in group)) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not partition.value or self._version is None:
            return
        spare_collector()
        for batch in scan_files(
            self._location,
            self._version,
            partition.value,
            physical_names(self._table, self._columns),
            filter=self._filter,
            whole_blobs=bool(self._table.blob_properties),
            ids=self._ids,
        ):
            yield to_spark(self._table, batch, self._columns)


class FilteringReader(PinnedTableReader):
    """The same, and filters are tested where the rows are read.

    Spark keeps what was pushed with the relation: a DataFrame that is planned again, with other
    filters that cannot be pushed, meets those of the first time. So this is for frames that are
    used once, and has to be asked for.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        for filter_ in filters:
            taken = self._translate(filter_)
            if taken is None:
                yield filter_
            else:
                self._filter = taken if self._filter is None else self._filter & taken

    def _translate(self, filter_: Any) -> pc.Expression | None:
        if isinstance(filter_, ds.Not):
            return None  # null makes `not` differ between the two
        attribute = getattr(filter_, "attribute", None)
        if attribute is None or len(attribute) != 1:
            return None
        type_ = column_types(self._table).get(attribute[0])
        if type_ is None:
            return None
        field = pc.field(physical_names(self._table, attribute)[0])
        if isinstance(filter_, ds.IsNull | ds.IsNotNull):
            if type_.kind in (Kind.BLOB, Kind.U32, Kind.U64):
                return None  # storage takes no filters on unsigned columns
            return field.is_null() if isinstance(filter_, ds.IsNull) else field.is_valid()
        if type_.kind not in _ALIKE:
            return None
        wanted = type_.to_arrow()
        if isinstance(filter_, ds.In):
            return field.isin(pa.array([v for v in filter_.value if v is not None], wanted))
        compare = _COMPARISONS.get(type(filter_))
        if compare is None:
            return None
        return compare(field, pa.scalar(filter_.value, wanted))
