"""Dense row numbers of a table version, and their storage row ids.

A version that is numbered from nothing has its numbers in the order of row ids. A later version may
continue the numbers of an earlier one: a row keeps its number for as long as its id lives, new rows
come at the end, and removed rows leave a hole that `alive` marks.

So a version can have several numberings. Those from nothing are all equal and have the serial
`FROM_NOTHING`; every other one has a serial of its own. Whatever is cached by number has the serial
in its key.

Guarantees: arrays by number have `size` places; equal row ids have equal numbers; a value that is
looked up and not there is an error, never the value beside it.
Deliberately absent: what the rows hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from omnigraph.errors import InvariantViolationError

if TYPE_CHECKING:
    from omnigraph.engines.embedded.lineage import Delta

Array: TypeAlias = np.ndarray[Any, Any]

NOBODY = -1  # the number of no row
FROM_NOTHING = 0  # the serial of a numbering that continues no other

_serials = count(FROM_NOTHING + 1)


class Label(NamedTuple):
    """Names one numbering of one table version: what arrays by number are cached under."""

    version: Hashable
    serial: int


@dataclass(frozen=True, eq=False)
class Origin:
    """The numbering that another one continues, and what has changed since."""

    label: Label
    delta: Delta


@dataclass(frozen=True, eq=False)
class Numbering:
    """`row_ids` None: number and row id are the same. `alive` None: there are no holes."""

    size: int
    row_ids: Array | None = None
    alive: Array | None = None
    # The numbering that this one continues: what is known by its numbers holds here, too.
    origin: Origin | None = None
    serial: int = FROM_NOTHING

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.size < 2**31 else np.int64)

    @cached_property
    def rows(self) -> int:
        return self.size if self.alive is None else int(np.count_nonzero(self.alive))

    @property
    def is_from_nothing(self) -> bool:
        return self.serial == FROM_NOTHING

    @property
    def nbytes(self) -> int:
        held = (self.row_ids, self.alive, None if self.origin is None else self.origin.delta)
        return 64 + sum(each.nbytes for each in held if each is not None)

    def everything(self) -> Array:
        """The numbers of all rows, ascending."""
        if self.alive is not None:
            return np.flatnonzero(self.alive).astype(self.dtype)
        return np.arange(self.size, dtype=self.dtype)

    def to_numbers(self, row_ids: Array) -> Array:
        """Numbers of row ids, those of holes included. A row id without a number is an error."""
        if self.row_ids is None:
            if len(row_ids) and int(row_ids.max()) >= self.size:
                raise _unknown(int(row_ids.max()))
            return row_ids.astype(self.dtype)
        ascending, numbers = self._by_row_id
        places = places_of(ascending, row_ids)
        return (places if numbers is None else numbers.take(places)).astype(self.dtype)

    @cached_property
    def _by_row_id(self) -> tuple[Array, Array | None]:
        """The row ids, ascending, and their numbers; None when the numbers ascend as well."""
        assert self.row_ids is not None
        if bool(np.all(self.row_ids[1:] > self.row_ids[:-1])):
            return self.row_ids, None
        # Almost in order already, which a stable sort is quick with.
        numbers = np.argsort(self.row_ids, kind="stable")
        return self.row_ids[numbers], numbers

    def all_row_ids(self) -> Array:
        """The row id of every number, those of holes included."""
        return np.arange(self.size, dtype=np.uint64) if self.row_ids is None else self.row_ids

    def to_row_ids(self, numbers: Array) -> Array:
        if self.row_ids is None:
            return numbers.astype(np.uint64)
        found: Array = self.row_ids[numbers]
        return found


class Placing:
    """Where values go that are read in parts. While they come in place, nothing is held."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._count = 0
        self._numbers: list[Array] = []  # of everything, once something came out of place

    def add(self, row_ids: Array) -> None:
        """The next values are of the rows with these ids."""
        numbers = self._numbering.to_numbers(row_ids)
        expected = np.arange(self._count, self._count + len(numbers), dtype=numbers.dtype)
        if self._numbers:
            self._numbers.append(numbers)
        elif not np.array_equal(numbers, expected):
            self._numbers = [np.arange(self._count, dtype=numbers.dtype), numbers]
        self._count += len(numbers)

    def places(self) -> Array | None:
        """For each number, the place of its value among those that were read; None when each is
        at its number already."""
        size = self._numbering.size
        if not self._numbers and self._count == size:
            return None
        places = np.full(size, NOBODY, np.int64)
        numbers = np.concatenate(self._numbers) if self._numbers else np.arange(self._count)
        places[numbers] = np.arange(len(numbers))
        return places


def continuing(size: int, row_ids: Array | None, alive: Array | None, origin: Origin) -> Numbering:
    """A numbering that continues another one, with a serial that no other has."""
    return Numbering(size, row_ids, alive, origin, next(_serials))


def number_parts(parts: Iterator[Array]) -> Numbering:
    """The same from row ids that come in parts. As long as they count from 0 on, none is held."""
    count = 0
    for part in parts:
        if not np.array_equal(part, np.arange(count, count + len(part), dtype=np.uint64)):
            return number_rows(np.concatenate([np.arange(count, dtype=np.uint64), part, *parts]))
        count += len(part)
    return Numbering(count)


def number_rows(row_ids: Array) -> Numbering:
    """A numbering from the row ids of a version, in any order."""
    size = len(row_ids)
    if size == 0:
        return Numbering(0)
    if not bool(np.all(row_ids[1:] > row_ids[:-1])):
        row_ids = np.sort(row_ids)
    dense = int(row_ids[0]) == 0 and int(row_ids[-1]) == size - 1
    return Numbering(size, None if dense else row_ids)


def places_of(ascending: Array, wanted: Array) -> Array:
    """The place of each wanted value in an ascending array. A value that is not there is an error:
    the place where it would be inserted belongs to another value."""
    places = np.searchsorted(ascending, wanted)
    if not len(wanted):
        return places
    if not len(ascending):
        raise _unknown(int(wanted[0]))
    differs = ascending.take(places, mode="clip") != wanted
    if bool(differs.any()):
        raise _unknown(int(wanted[int(np.argmax(differs))]))
    return places


def _unknown(value: int) -> InvariantViolationError:
    return InvariantViolationError(
        f"The number {value} is not among those that are known here.",
        hint="An index or a derived file may be wrong: run `omnigraph fsck`, then `optimize`.",
    )


def distinct(numbers: Array) -> tuple[Array, Array | None]:
    """Each number once, ascending, and each row's place among them; None when it is its own."""
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return numbers, None
    return np.unique(numbers, return_inverse=True)


def pick(values: Array, numbers: Array, missing: int) -> Array:
    """`values` by number, with `missing` for `NOBODY`."""
    if not len(values):
        return np.full(len(numbers), missing, values.dtype)
    found = values.take(numbers, mode="clip")
    absent = numbers < 0
    return np.where(absent, missing, found) if bool(absent.any()) else found
