"""Inputs cut into parts that tasks can read by themselves.

Plain JSONL is cut at bytes (a part owns the lines that begin in it), Parquet at row groups, Lance
at its files; what is compressed, CSV (a quoted cell may span lines) and Arrow files stay whole.

Every record belongs to exactly one part, and parts are in the order of the input; how many records
and lines come before a part is the sum over those before it, so nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from omnigraph.intake.sources import Assigned, SourceFormat
from omnigraph.storage.inputs import InputFile, open_input
from omnigraph.storage.lance_inputs import list_parts

LEAST_BYTES = 4 << 20
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Split:
    """A part of one file: bytes of a text, row groups of Parquet, files of Lance."""

    place: int
    file: str
    how: Assigned
    start: int = 0
    end: int | None = None  # None: to the end of the file
    size: int = 0
    scratch: bool = False  # a file of ours, which its reader has never heard of


def cut(files: Sequence[tuple[InputFile, Assigned]], parallelism: int) -> list[Split]:
    """The parts of all files, numbered in order."""
    total = sum(file.size for file, _ in files)
    size = min(MOST_BYTES, max(LEAST_BYTES, total // max(1, 2 * parallelism)))
    parts = [part for file, how in files for part in _cut_file(file, how, size)]
    return [replace(part, place=place) for place, part in enumerate(parts)]


def _cut_file(file: InputFile, how: Assigned, size: int) -> Iterator[Split]:
    if how.format is SourceFormat.LANCE:
        for first, last, part_bytes in list_parts(file.address, size):
            yield Split(0, file.address, how, first, last, part_bytes)
    elif how.format is SourceFormat.PARQUET and file.size > size:
        yield from _cut_parquet(file, how, size)
    elif how.format is SourceFormat.JSONL and how.compression is None and file.size > size:
        for start in range(0, file.size, size):
            end = min(start + size, file.size)
            yield Split(0, file.address, how, start, end, end - start)
    else:
        yield Split(0, file.address, how, size=file.size)


def _cut_parquet(file: InputFile, how: Assigned, size: int) -> Iterator[Split]:
    with open_input(file.address) as handle:
        footer = pq.ParquetFile(handle).metadata
        sizes = [
            footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)
        ]
    first, held = 0, 0
    for number, group in enumerate(sizes):
        held += group
        if held >= size or number == len(sizes) - 1:
            yield Split(0, file.address, how, first, number + 1, held)
            first, held = number + 1, 0
