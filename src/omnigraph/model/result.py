"""The result of a read query: Arrow batches, produced on demand.

    result.rows()          # list of dicts
    result.to_arrow()      # one table, kept
    for batch in result.stream(): ...
    polars.from_arrow(result.reader())     # or duckdb, or whatever reads Arrow streams

Guarantees: `schema` is known before the first batch; every accessor but `stream` and `reader` may
be called again and gives the same; `commit_id` names the commit that was read. JSON is exact: a
whole number that a double cannot hold is written as text, dates and times as ISO text in UTC.
Deliberately absent: how batches are made, and any hold on the graph once they all are.
"""

from __future__ import annotations

import base64
import importlib
import math
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.arguments import checked
from omnigraph.errors import EngineUnavailableError, InvalidArgumentError
from omnigraph.exhaustion import reports_exhaustion
from omnigraph.model.temporal import iso, python_rows

if TYPE_CHECKING:
    import pyarrow as pa

# The largest whole number up to which every double is exact; JSON readers in browsers need it.
SAFE_INTEGER = 2**53 - 1
_ROWS_SHOWN = 50  # in a notebook


@reports_exhaustion
@checked
class Result:
    """Rows of one query at one commit."""

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        commit_id: str,
        branch: str = "",
        explanation: Any = None,
    ) -> None:
        self.schema = schema
        self.commit_id = commit_id
        self.branch = branch
        self.explanation = explanation  # what `profile` measured, when it was asked for
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._table: pa.Table | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def stream(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are produced. Unless the result is materialized, this works once."""
        if self._table is not None:
            yield from self._table.to_batches()
            return
        yield from _closing(self._take())

    def reader(self) -> pa.RecordBatchReader:
        """The batches as an Arrow reader, made as they are read; once, as those of `stream`."""
        import pyarrow as pa

        if self._table is not None:
            return self._table.to_reader()
        return pa.RecordBatchReader.from_batches(self.schema, _closing(self._take()))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The batches of `reader`, for libraries that read Arrow streams (polars, DuckDB)."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """The columns, without reading a row."""
        return self.schema.__arrow_c_schema__()

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table."""
        if self._table is None:
            import pyarrow as pa

            self._table = pa.Table.from_batches(list(self._take()), schema=self.schema)
        return self._table

    def rows(self) -> list[dict[str, Any]]:
        """All rows as Python values by column name."""
        return python_rows(self.to_arrow())

    def to_pandas(self) -> Any:
        pandas = _module("pandas")
        try:
            return self.to_arrow().to_pandas()
        except (OverflowError, ValueError):  # a date outside the calendar
            return pandas.DataFrame(self.rows(), columns=list(self.columns))

    def to_polars(self) -> Any:
        return _module("polars").from_arrow(self.to_arrow())

    def to_json(self, *, indent: bool = False) -> str:
        """All rows as a JSON array of objects."""
        plain = [{name: plain_value(item) for name, item in row.items()} for row in self.rows()]
        return orjson.dumps(plain, option=orjson.OPT_INDENT_2 if indent else 0).decode()

    def close(self) -> None:
        """Discard unread rows."""
        if self._batches is not None:
            close = getattr(self._batches, "close", None)
            self._batches = None
            if close is not None:
                close()

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from omnigraph.model import html

        table = self.to_arrow()
        shown = [
            {name: plain_value(item) for name, item in row.items()}
            for row in python_rows(table.slice(0, _ROWS_SHOWN))
        ]
        rows = f"{table.num_rows} row{'' if table.num_rows == 1 else 's'}"
        first = f", the first {_ROWS_SHOWN} are shown" if table.num_rows > _ROWS_SHOWN else ""
        return html.table(self.columns, shown, f"{rows}{first}")

    def __repr__(self) -> str:
        held = "" if self._table is None else f", {self._table.num_rows} rows"
        return f"<Result of {', '.join(self.columns)} at {self.commit_id}{held}>"

    def _take(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            raise InvalidArgumentError(
                "The rows of this result were streamed or closed already.",
                hint="Run the query again, or call to_arrow() before stream().",
            )
        batches, self._batches = self._batches, None
        return batches


def _closing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; what makes them is closed when the reader stops early."""
    try:
        yield from batches
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def plain_value(value: Any) -> Any:
    """A value as JSON holds it without loss."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    return _plain_compound(value)


def _plain_compound(value: Any) -> Any:
    if isinstance(value, date):
        return iso(value)
    if isinstance(value, dict):
        return {name: plain_value(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [plain_value(item) for item in value]


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineUnavailableError(
            f"This needs the package {name}, which is not installed.",
            hint=f"Install it: pip install {name}",
        ) from error
