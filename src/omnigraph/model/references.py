"""References: blobs whose bytes lie outside of the graph, as values among other blobs.

A column of blobs holds bytes. A reference travels in it as bytes too: a mark that no file begins
with, and the address. There are two marks. What somebody hands in carries `GIVEN`, and has to be
admitted by the graph's allow-list before it is stored; what was read from a table carries `STORED`,
and was admitted once.

Guarantees: whatever comes in from outside with either mark counts as given.
Deliberately absent: which addresses are allowed (`storage.allowing`).
"""

from __future__ import annotations

import re

GIVEN = b"\x93omnigraph:given\x00"
STORED = b"\x93omnigraph:stored\x00"

_ADDRESS = re.compile(r"(s3|file)://\S+")


def given_reference(address: str) -> bytes:
    """A reference as a person names it; ValueError when it is no absolute address."""
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            "expected 'base64:' and the bytes in base 64, or an absolute address such as "
            "s3://bucket/scan.pdf"
        )
    return GIVEN + address.encode()


def stored_reference(address: str) -> bytes:
    return STORED + address.encode()


def address_of(value: bytes | None) -> str | None:
    """The address of a reference, None for bytes of a blob's own."""
    for mark in (GIVEN, STORED):
        if value is not None and value.startswith(mark):
            return value[len(mark) :].decode("utf-8", errors="replace")
    return None


def as_given(value: bytes) -> bytes:
    """Bytes from outside: a reference among them is not trusted to have been admitted."""
    address = address_of(value)
    return value if address is None else given_reference(address)
