"""Keys of staged and of committed rows, read column by column in tasks.

A staged row is known by its place: the number of its part and its number among the rows of its type
that were shaped there. Places ascend in the order of the input.

Guarantees: only the columns asked for are read; what is held at once is bounded by `MOST_KEYS`.
Deliberately absent: what is concluded from keys (`integrity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import ID_COLUMN
from omnigraph.model.keys import composite_keys
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.rows.columns import combined
from omnigraph.rows.findings import Numbers
from omnigraph.storage.distributed import StagedFile, Target, read_staged, scan_files

# So many keys are compared at once; with their texts and hashes they take a few hundred MB.
MOST_KEYS = 4_000_000
# Ends of edges are looked up, not compared with each other, which takes less.
MOST_ENDS = 2 * MOST_KEYS
_PART_BITS = 32

Sized = TypeVar("Sized")


@dataclass(frozen=True)
class RowSet:
    """Numbers of rows, as one bit for each row up to the last of them: of a large input the driver
    may have to remember rows by the million."""

    bits: bytes

    @staticmethod
    def of(rows: Numbers) -> RowSet:
        marks = np.zeros(int(rows.max()) + 1 if len(rows) else 0, bool)
        marks[rows] = True
        return RowSet(np.packbits(marks).tobytes())

    def numbers(self) -> Numbers:
        """The same, ascending."""
        return np.flatnonzero(np.unpackbits(np.frombuffer(self.bits, np.uint8)))

    def joined(self, rows: Numbers) -> RowSet:
        return RowSet.of(np.concatenate([self.numbers(), rows]))


@dataclass(frozen=True)
class KeyFile:
    """One staged file: its part, and the numbers of its rows there, from `first` on, without
    those that were `dropped` from the part."""

    part: int
    first: int
    dropped: RowSet | None
    file: StagedFile

    def places(self) -> Numbers:
        """The place of each row of the file."""
        rows = np.arange(self.first, self.first + self.file.rows, dtype=np.int64)
        if self.dropped is not None:
            before = self.dropped.numbers()
            # Counting from the rows that were kept to the rows that were shaped.
            rows = rows + np.searchsorted(before - np.arange(len(before)), rows, side="right")
        return (np.int64(self.part) << _PART_BITS) | rows


@dataclass(frozen=True)
class StagedKeys:
    """The staged rows of one table. `fresh`: all of their ids were made for them."""

    target: Target
    files: tuple[KeyFile, ...]
    fresh: bool

    @property
    def rows(self) -> int:
        return sum(each.file.rows for each in self.files)

    def read(self, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Numbers]]:
        """Columns and places, file by file."""
        for each in self.files:
            yield read_staged(self.target, each.file, columns), each.places()

    def ids(self) -> Iterator[pa.Array]:
        """All ids, in large pieces."""
        for piece, _ in gathered(self.read([ID_COLUMN])):
            yield combined(piece.column(ID_COLUMN))

    def shared_out(self, most: int, largest: int = MOST_KEYS) -> list[StagedKeys]:
        """The same rows in up to `most` shares of about one size; more, where one would exceed
        `largest`."""
        found = shares(self.files, _staged_rows, most, largest)
        return [replace(self, files=tuple(share)) for share in found]


@dataclass(frozen=True)
class CommittedKeys:
    """Committed rows of one table: some of its files, each with its number of rows."""

    location: Location
    version: TableVersion
    files: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.files)

    def read(self, columns: Sequence[str], *, with_address: bool = False) -> Iterator[pa.Table]:
        numbers = [number for number, _ in self.files]
        for batch in scan_files(
            self.location, self.version, numbers, columns, with_address=with_address
        ):
            yield pa.Table.from_batches([batch])

    def shared_out(self, most: int) -> list[CommittedKeys]:
        return [
            replace(self, files=tuple(s)) for s in shares(self.files, lambda file: file[1], most)
        ]


def _staged_rows(file: KeyFile) -> int:
    return file.file.rows


def shares(
    files: Sequence[Sized], rows_of: object, most: int, largest: int = MOST_KEYS
) -> list[list[Sized]]:
    """Neighbouring files in up to `most` shares; more, where one would exceed `largest`."""
    assert callable(rows_of)
    total = sum(rows_of(file) for file in files)
    wanted = min(largest, max(1, -(-total // max(1, most))))
    found: list[list[Sized]] = []
    held = 0
    for file in files:
        if not found or held >= wanted:
            found.append([])
            held = 0
        found[-1].append(file)
        held += rows_of(file)
    return found


def gathered(
    pieces: Iterable[tuple[pa.Table, Numbers]], most: int = MOST_KEYS
) -> Iterator[tuple[pa.Table, Numbers]]:
    """Small pieces put together into large ones."""
    tables: list[pa.Table] = []
    places: list[Numbers] = []
    held = 0
    for table, numbers in pieces:
        tables.append(table)
        places.append(numbers)
        held += table.num_rows
        if held >= most:
            yield pa.concat_tables(tables), np.concatenate(places)
            tables, places, held = [], [], 0
    if tables:
        yield pa.concat_tables(tables), np.concatenate(places)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `low` on and before `high`; None is open."""

    low: str | None = None
    high: str | None = None

    def mask(self, keys: pa.Array) -> pa.Array:
        inside = pc.is_valid(keys)
        if self.low is not None:
            inside = pc.and_(inside, pc.greater_equal(keys, self.low))
        if self.high is not None:
            inside = pc.and_(inside, pc.less(keys, self.high))
        return pc.fill_null(inside, False)


def spelled(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The one spelling of a key over columns."""
    return composite_keys([table.column(name) for name in columns])


@dataclass(frozen=True)
class SampleTask:
    """Find out how keys are spread, from a few files."""

    staged: StagedKeys | None
    committed: CommittedKeys | None
    columns: tuple[str, ...]
    rows: int

    def run(self) -> tuple[KeyRange, ...]:
        """Ranges of about equal numbers of keys."""
        wanted = -(-self.rows // MOST_KEYS)
        keys = np.sort(np.concatenate([self._sample(piece) for piece in self._pieces()]))
        places = [len(keys) * number // wanted for number in range(1, wanted)]
        bounds = sorted({str(keys[place]) for place in places}) if len(keys) else []
        edges: list[str | None] = [None, *bounds, None]
        return tuple(KeyRange(low, high) for low, high in pairwise(edges))

    def _pieces(self) -> Iterator[pa.Table]:
        if self.staged is not None:
            few = self.staged.files[:: max(1, len(self.staged.files) // 8)]
            for table, _ in replace(self.staged, files=few).read(self.columns):
                yield table
        if self.committed is not None:
            few_files = self.committed.files[:: max(1, len(self.committed.files) // 8)]
            yield from replace(self.committed, files=few_files).read(self.columns)

    def _sample(self, table: pa.Table) -> Numbers:
        keys = spelled(table, self.columns).drop_null()
        step = max(1, len(keys) // 10_000)
        return np.asarray(keys[::step].to_pylist() if len(keys) else [], dtype=object)
