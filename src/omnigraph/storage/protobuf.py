"""A minimal protobuf codec to read and change records of Lance.

Lance offers no call for three things that we need: the greatest number that a table gave to a file,
a schema that keeps the numbers of its columns, and the addresses that a fork's manifest names.

Guarantees: unknown fields are preserved byte for byte; bytes that are no record are refused with an
error of ours.
Deliberately absent: any knowledge of what the fields mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from omnigraph.errors import StoragePermanentError

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def fields(message: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """Every field in order: its number, its value (bytes for what has a length), and its whole
    spelling."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        if at > len(message):
            raise _cut_off()
        yield tag >> 3, value, message[start:at]


def first_number(message: bytes, wanted: int) -> int:
    """A numeric field, 0 when it is absent."""
    for number, value, _ in fields(message):
        if number == wanted and isinstance(value, int):
            return value
    return 0


def signed(value: int) -> int:
    """A number as Lance means it where it may be negative."""
    return value - (1 << 64) if value >= 1 << 63 else value


def with_bytes(message: bytes, wanted: int, change: Callable[[bytes], bytes]) -> bytes:
    """The message with every field of this number, which must have a length, changed."""
    out = bytearray()
    for number, value, spelling in fields(message):
        if number == wanted and isinstance(value, bytes):
            changed = change(value)
            out += _spelled(wanted << 3 | _BYTES) + _spelled(len(changed)) + changed
        else:
            out += spelling
    return bytes(out)


def with_numbers(message: bytes, numbers: Mapping[int, int]) -> bytes:
    """The message with these numeric fields, whatever they were."""
    out = bytearray()
    for number, _, spelling in fields(message):
        if number not in numbers:
            out += spelling
    for number, value in numbers.items():
        out += _spelled(number << 3 | _VARINT) + _spelled(value % (1 << 64))
    return bytes(out)


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _cut_off()


def _cut_off() -> StoragePermanentError:
    return StoragePermanentError("A record of Lance's ends within a field: its file is damaged.")


def _spelled(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
