"""Printing: lists of records as an aligned table or as JSON, query results in every format.

Guarantees: data goes to standard output; a table fits the terminal; without a terminal there is
no colour and nothing is cut.
Deliberately absent: deciding what to print.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from omnigraph.cli import callstate
from omnigraph.cli.elder import read_fields
from omnigraph.cli.rowformats import BINARY, Format, cell, print_rows, write_binary
from omnigraph.cli.targets import operator
from omnigraph.cli.terminal import echo
from omnigraph.cli.texttables import DEFAULT, Layout
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.model.result import Result

__all__ = [
    "Format",
    "cell",
    "chosen_format",
    "moment",
    "print_json",
    "print_records",
    "print_remark",
    "print_result",
]


def chosen_format(
    format: Format | None, *, as_json: bool = False, alias: str | None = None
) -> Format:
    """How to print rows: `--json`, else `--format`, the alias's, the configuration's, a table."""
    if as_json:
        return Format.JSON
    if format is not None:
        return format
    named = alias or operator().defaults.output or Format.TABLE
    try:
        return Format(named)
    except ValueError:
        raise InvalidArgumentError(
            f"The configuration asks for the format {named!r}, which does not exist.",
            hint=f"Use one of {', '.join(Format)}.",
        ) from None


def _layout() -> Layout:
    defaults = operator().defaults
    widest = defaults.table_max_column_width or DEFAULT.widest
    return Layout(widest, defaults.table_cell_layout == "wrap")


def print_json(value: Any) -> None:
    echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_records(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Records as a table, one line each, or as `--format` says."""
    format = callstate.current().format or Format.TABLE
    if format in BINARY:
        import pyarrow as pa

        named = {name: [each.get(name) for each in records] for name in columns}
        write_binary(pa.table(named).to_reader(), format)
        return
    if format is Format.TABLE and sys.stdout.isatty():
        records = [{name: _brief(name, each.get(name)) for name in columns} for each in records]
    print_rows(columns, records, format, _layout())


def _brief(name: str, value: Any) -> Any:
    """A moment to the second, as people read it; where there is a terminal, room is scarce."""
    if name.endswith("_at") and isinstance(value, str) and "." in value:
        return value.partition(".")[0] + "Z"
    return value


def print_remark(text: str) -> None:
    """A sentence beside a table; other formats hold rows alone."""
    if callstate.current().format in (None, Format.TABLE):
        echo(text)


def moment(created_at_us: int) -> str:
    """Microseconds since the epoch as ISO text in UTC."""
    when = datetime.fromtimestamp(created_at_us / 1_000_000, UTC)
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


def print_result(result: Result, format: Format, state: Mapping[str, Any] | None = None) -> None:
    """A query's rows in the format asked for. `state`: how an older state was named."""
    if format is Format.JSON:
        echo(_envelope(result, state or {}))
    elif format is Format.JSONL:
        _print_lines(result, state or {})
    elif format in BINARY:
        import pyarrow as pa

        write_binary(pa.RecordBatchReader.from_batches(result.schema, result.stream()), format)
    else:
        print_rows(result.columns, _json_rows(result), format, _layout())


def _json_rows(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result.to_json())
    return rows


def _envelope(result: Result, state: Mapping[str, Any]) -> str:
    value = {
        "graph_commit_id": result.commit_id,
        "branch": result.branch,
        **read_fields(result, state),
        "columns": list(result.columns),
        "rows": _json_rows(result),
    }
    return json.dumps(value, indent=2, ensure_ascii=False)


def _print_lines(result: Result, state: Mapping[str, Any]) -> None:
    head = {
        "graph_commit_id": result.commit_id,
        **read_fields(result, state),
        "columns": list(result.columns),
    }
    lines: Iterable[Mapping[str, Any]] = [head, *_json_rows(result)]
    for line in lines:
        echo(json.dumps(line, ensure_ascii=False))
