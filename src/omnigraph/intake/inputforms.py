"""What `ingest` accepts, taken into memory in one of three forms.

    b'{"type": "Person", "data": {…}}\\n…'      envelopes: bytes, lines, dicts or a file
    a table, reader or frame, and a type        Arrow, pandas, polars, Parquet
    [{"name": "Ada"}, …], and a type            plain rows
    {"Person": …, "Knows": …}                   any of the two above, by type

Guarantees: an input is read once, and no further than the bound. A file may be read again, as long
as it stays the same, so that its bytes need not be held beside the rows that they became.
Deliberately absent: the schema. What the rows mean is decided later (`typedrows`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import InvalidArgumentError, LimitExceededError
from omnigraph.intake.dataframes import from_pandas, open_stream

MOST_BYTES = 256 << 20
_LINES = frozenset({".jsonl", ".ndjson", ".json"})
_ARROW = frozenset({".arrow", ".feather", ".ipc"})


@dataclass(frozen=True)
class Lines:
    """Envelopes, one to a line."""

    data: bytes
    file: str | None = None

    @property
    def nbytes(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Records:
    """Dicts: rows of a type, or envelopes when there is none."""

    items: tuple[Mapping[str, Any], ...]
    type_name: str | None

    @property
    def nbytes(self) -> int:
        return 0  # known once they are written down


@dataclass(frozen=True)
class Columns:
    """Rows of one type as Arrow."""

    rows: pa.Table
    type_name: str

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)


Part: TypeAlias = Lines | Records | Columns
# Gives an input, as often as it is wanted.
Supply: TypeAlias = Callable[[], tuple[Part, ...]]


def supply(data: Any, type_name: str | None, most_bytes: int = MOST_BYTES) -> Supply:
    """A way to an input: a file is read when it is wanted, anything else is held in memory."""
    path = Path(data) if _is_path(data) else None
    if path is None or not os.path.isfile(path):  # also of what no path can be
        held = take_in(data, type_name, most_bytes)
        return lambda: held
    state = _state(path)

    def read() -> tuple[Part, ...]:
        if _state(path) != state:
            raise InvalidArgumentError(
                f"The file {path} changed while it was ingested.", hint="Ingest it again."
            )
        return take_in(path, type_name, most_bytes)

    return read


def _state(path: Path) -> tuple[int, int, int] | None:
    """What differs if a file was written or replaced; None if it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def take_in(data: Any, type_name: str | None, most_bytes: int = MOST_BYTES) -> tuple[Part, ...]:
    """Hold an input in memory."""
    parts = tuple(_take_in(data, type_name, most_bytes))
    refuse_more(sum(part.nbytes for part in parts), most_bytes)
    return parts


def refuse_more(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise LimitExceededError(
            f"The input has {size:,} bytes; in one go {most_bytes:,} are taken.",
            resource="input_bytes",
            limit=float(most_bytes),
            actual=float(size),
            hint="Use `load`, which takes files of any size (`omnigraph load`, `graph.load`), or "
            "send it in parts.",
        )


def _take_in(data: Any, type_name: str | None, most: int) -> Iterator[Part]:
    if isinstance(data, Mapping):
        for name, part in data.items():
            yield from _take_in(part, _one_name(name, type_name), most)
    elif _is_path(data):
        yield _read_file(Path(data), type_name, most)
    elif isinstance(data, str | bytes | bytearray | memoryview):
        yield _lines(data, type_name)
    elif (rows := _as_arrow(data, most)) is not None:
        yield Columns(rows, _required(type_name))
    elif hasattr(data, "read"):
        yield _lines(data.read(most + 1), type_name)
    elif isinstance(data, Iterable):
        yield _iterated(data, type_name, most)
    else:
        raise InvalidArgumentError(
            f"A {type(data).__name__} cannot be ingested.",
            hint="Give envelopes, rows, an Arrow table, a frame or a file.",
        )


def _one_name(name: Any, outer: str | None) -> str:
    if outer is not None or not isinstance(name, str):
        raise InvalidArgumentError("Rows by type are given as a dict of type names.")
    return name


def _is_path(data: Any) -> bool:
    return isinstance(data, os.PathLike) or (isinstance(data, str) and not _is_text(data))


def _is_text(data: str) -> bool:
    """Whether a text is envelopes rather than a path."""
    return not data.strip() or data.lstrip().startswith("{") or "\n" in data


def _lines(data: str | bytes | bytearray | memoryview, type_name: str | None) -> Lines:
    if type_name is not None:
        raise InvalidArgumentError("Envelopes contain their types.", hint="Leave out the type.")
    return Lines(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data))


def _required(type_name: str | None) -> str:
    if type_name is None:
        raise InvalidArgumentError(
            "The type of the rows is not given.",
            hint="Name the type: type='Person', or --type Person.",
        )
    return type_name


def _read_file(path: Path, type_name: str | None, most: int) -> Part:
    suffix = path.suffix.lower()
    if "\0" in str(path):
        raise InvalidArgumentError("The name of a file cannot hold a NUL character.")
    try:
        refuse_more(path.stat().st_size, most)
        if suffix in _LINES:
            return Lines(_lines(path.read_bytes(), type_name).data, str(path))
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return Columns(pq.read_table(path), _required(type_name))
        if suffix in _ARROW:
            from pyarrow import feather

            return Columns(feather.read_table(path), _required(type_name))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InvalidArgumentError(f"The file {path} cannot be read: {reason}.") from error
    raise InvalidArgumentError(
        f"The file {path} has a format that cannot be ingested.",
        hint="Supported file extensions are "
        f"{', '.join(sorted(_LINES | _ARROW))} and .parquet. "
        "Use `load` for CSV, with the embedded engine for small files.",
    )


def _as_arrow(data: Any, most: int) -> pa.Table | None:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return _read_batches(data, most)
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "columns"):
        # Not through the stream below: that would keep NaN, which in a frame means nothing.
        return from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _read_batches(open_stream(data), most)
    return None


def _read_batches(reader: pa.RecordBatchReader, most: int) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        size += int(batch.nbytes)
        refuse_more(size, most)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)


def _iterated(items: Iterable[Any], type_name: str | None, most: int) -> Part:
    """Dicts, or lines of text, whichever the first item is."""
    rest = iter(items)
    first = next(rest, None)
    if isinstance(first, str | bytes):
        return _joined(chain([first], rest), type_name, most)
    found = [] if first is None else [first, *rest]
    for number, item in enumerate(found):
        if not isinstance(item, Mapping):
            raise InvalidArgumentError(
                f"Record {number} is a {type(item).__name__}.",
                hint="Give dicts, or lines of text, and not both.",
            )
    return Records(tuple(found), type_name)


def _joined(items: Iterable[Any], type_name: str | None, most: int) -> Lines:
    lines: list[bytes] = []
    size = 0
    for number, item in enumerate(items):
        if not isinstance(item, str | bytes):
            raise InvalidArgumentError(
                f"Record {number} is a {type(item).__name__}.",
                hint="Give dicts, or lines of text, and not both.",
            )
        line = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item
        lines.append(line.rstrip(b"\r\n"))
        size += len(line) + 1
        refuse_more(size, most)
    return _lines(b"\n".join(lines), type_name)
