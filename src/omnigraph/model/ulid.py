"""ULIDs: ids that sort by creation time.

Guarantees: 26 characters of Crockford's base 32; within a process each id is greater than the
one before, also between threads, within one millisecond and when the clock steps back; a forked
child never repeats one of its parent's. Batches come in ascending order.
Deliberately absent: parsing, but for the time of birth.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_ALPHABET = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26
_RANDOM_BITS = 80
_RANDOM_SIZE = 1 << _RANDOM_BITS


class _Clock:
    """Where the next id comes from. One per process."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.last_ms = 0
        self.next_random = 0

    def reserve(self, count: int) -> int:
        """The first of `count` consecutive 128-bit values, all greater than any before."""
        with self.guard:
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self.last_ms:
                self.renew(now_ms)
            elif self.next_random + count > _RANDOM_SIZE:
                self.renew(self.last_ms + 1)
            first = (self.last_ms << _RANDOM_BITS) | self.next_random
            self.next_random += count
        return first

    def renew(self, ms: int) -> None:
        # Half the room is left free above the random start, for the ids that follow in this ms.
        self.last_ms = ms
        self.next_random = int.from_bytes(os.urandom(10), "big") >> 1


_clock = _Clock()


def new_ulid() -> str:
    """A new id, greater than every one made before in this process."""
    value = _clock.reserve(1)
    return bytes([_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)]).decode()


def born_ms(ulid: str) -> int:
    """When an id was made, in milliseconds since the epoch. Small letters do as well."""
    value = 0
    for letter in ulid[:10].upper().encode():
        value = value << 5 | _ALPHABET.index(letter)
    return value


def new_ulids(count: int) -> list[str]:
    """Many new ids at once, in ascending order."""
    text = _spell(_clock.reserve(count), count).tobytes().decode("ascii")
    return [text[at : at + _LENGTH] for at in range(0, len(text), _LENGTH)]


def ulid_array(count: int) -> pa.StringArray:
    """Many new ids at once as an Arrow column, without making Python strings."""
    import numpy as np
    import pyarrow as pa

    rows = _spell(_clock.reserve(count), count)
    offsets = np.arange(0, (count + 1) * _LENGTH, _LENGTH, dtype=np.int64)
    small = count * _LENGTH < 2**31
    if small:
        offsets = offsets.astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows)]
    return pa.Array.from_buffers(pa.string() if small else pa.large_string(), count, buffers)


def _spell(first: int, count: int) -> np.ndarray:
    """The characters of consecutive values, one row each."""
    import numpy as np

    # The low 64 bits may wrap once; the high ones then count one further.
    low = np.uint64(first & (2**64 - 1)) + np.arange(count, dtype=np.uint64)
    high = np.full(count, first >> 64, dtype=np.uint64)
    high += low < np.uint64(first & (2**64 - 1))
    alphabet = np.frombuffer(_ALPHABET, dtype=np.uint8)
    rows = np.empty((count, _LENGTH), dtype=np.uint8)
    five = np.uint64(31)
    for place in range(_LENGTH):
        shift = 125 - 5 * place
        if shift >= 64:
            bits = high >> np.uint64(shift - 64)
        elif shift > 59:
            bits = (high << np.uint64(64 - shift)) | (low >> np.uint64(shift))
        else:
            bits = low >> np.uint64(shift)
        rows[:, place] = alphabet[bits & five]
    return rows


def _start_over() -> None:
    global _clock
    _clock = _Clock()  # a child that went on counting would repeat its parent's ids


os.register_at_fork(after_in_child=_start_over)
