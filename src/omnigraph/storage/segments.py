"""Rows of a manifest, and what each sealed segment of them spans.

The directory is one row of the tail. It says for every segment which sequences, times and ids lie
in it, so that a reader of history opens the few segments that matter, however many there are.

Guarantees: pure; spans are inclusive and never too narrow.
Deliberately absent: I/O, and the meaning of any row but the directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import InvariantViolationError

DIRECTORY_ROW = "segments"

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("sequence", pa.int64()),
        pa.field("created_at_us", pa.int64()),
        pa.field("actor", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("payload", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class ManifestRow:
    object_id: str
    object_type: str
    payload: str
    sequence: int | None = None
    created_at_us: int | None = None
    actor: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """The range of sequences in a segment, and of times and ids of its rows that have a time."""

    first: int
    last: int
    since_us: int
    until_us: int
    low_id: str
    high_id: str


def span(rows: Sequence[ManifestRow]) -> Segment:
    sequences = [row.sequence for row in rows if row.sequence is not None]
    timed = [(row.created_at_us, row.object_id) for row in rows if row.created_at_us is not None]
    times = [time for time, _ in timed]
    ids = [object_id for _, object_id in timed]
    return Segment(min(sequences), max(sequences), min(times), max(times), min(ids), max(ids))


def join(segments: Sequence[Segment]) -> Segment:
    return Segment(
        min(s.first for s in segments),
        max(s.last for s in segments),
        min(s.since_us for s in segments),
        max(s.until_us for s in segments),
        min(s.low_id for s in segments),
        max(s.high_id for s in segments),
    )


def encode_directory(segments: Sequence[Segment]) -> ManifestRow:
    # Not `astuple`, which copies every value: this runs in each publish.
    fields = [(s.first, s.last, s.since_us, s.until_us, s.low_id, s.high_id) for s in segments]
    payload = json.dumps(fields, separators=(",", ":"))
    return ManifestRow(DIRECTORY_ROW, DIRECTORY_ROW, payload)


def decode_directory(rows: Iterable[ManifestRow]) -> tuple[Segment, ...]:
    for row in rows:
        if row.object_type == DIRECTORY_ROW:
            return _segments(row.payload)
    raise InvariantViolationError("The manifest's tail has no directory of its segments.")


def _segments(payload: str) -> tuple[Segment, ...]:
    try:
        return tuple(Segment(*item) for item in json.loads(payload))
    except (ValueError, TypeError, RecursionError) as error:
        raise InvariantViolationError(
            "The segment directory of the manifest is invalid."
        ) from error


def to_table(rows: Sequence[ManifestRow]) -> pa.Table:
    columns = [[getattr(row, name) for row in rows] for name in SCHEMA.names]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def to_rows(table: pa.Table) -> list[ManifestRow]:
    return [ManifestRow(**row) for row in table.select(SCHEMA.names).to_pylist()]
