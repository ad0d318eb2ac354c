"""Rows in every format: table, key and value, CSV, JSON lines, Arrow, Parquet.

Guarantees: nothing is lost but in a table, which is cut to the terminal; bytes never go to one.
Deliberately absent: what the rows mean, and JSON, whose shape is each command's own.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from omnigraph.cli.terminal import binary_output, echo
from omnigraph.cli.texttables import Layout, table
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[Mapping[str, Any]]


class Format(StrEnum):
    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"


BINARY = (Format.ARROW, Format.PARQUET)


def print_rows(columns: Sequence[str], rows: Rows, format: Format, layout: Layout) -> None:
    """Rows of plain values as text."""
    match format:
        case Format.CSV:
            echo(_csv(columns, rows), nl=False)
        case Format.KV:
            echo(_key_values(columns, rows), nl=False)
        case Format.JSONL:
            for row in rows:
                echo(json.dumps(row, ensure_ascii=False, default=str))
        case _:
            cells = [[cell(row.get(name)) for name in columns] for row in rows]
            echo(table(columns, cells, layout))


def cell(value: Any) -> str:
    """A value as one line of text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return _escaped(str(value))


def _escaped(text: str) -> str:
    """Text as one harmless line: what a terminal would obey is written out."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _csv(columns: Sequence[str], rows: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(name) for name in columns)
        writer.writerow([value if isinstance(value, str) else cell(value) for value in values])
    return text.getvalue()


def _key_values(columns: Sequence[str], rows: Rows) -> str:
    width = max((len(name) for name in columns), default=0)
    blocks = [
        "".join(f"{name:<{width}}  {cell(row.get(name))}".rstrip() + "\n" for name in columns)
        for row in rows
    ]
    return "\n".join(blocks)


def write_binary(batches: pa.RecordBatchReader, format: Format) -> None:
    """Rows as an Arrow stream or a Parquet file, on standard output."""
    if sys.stdout.isatty():
        raise InvalidArgumentError(
            f"The format {format} is binary.", hint="Send the output to a file: … > rows.out"
        )
    out = binary_output()
    if format is Format.ARROW:
        import pyarrow as pa

        with pa.ipc.new_stream(out, batches.schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
    else:
        import pyarrow.parquet as pq

        pq.write_table(batches.read_all(), out)
