"""References: blobs whose bytes lie outside of the graph, as values among other blobs.

A column of blobs holds bytes. A reference travels in it as bytes too: a mark that no file begins
with, and the address. A value given by a caller has the mark `GIVEN`, a value read from a table
carries `STORED`. Rows that are read in order to be written again carry `STORED` and a proof: a
keyed hash of the address under a key that only this process has. A reference with a valid proof was
in a table already and may stay there; every other one has to be admitted by the graph's allow-list,
whatever its mark.

No bytes from outside have a valid proof of an address that this process did not read from a table;
whatever comes in from outside with either mark counts as given.
Not included: which addresses are allowed (`storage.blobpolicy`), and where that is checked
(`storage.tableschema`).
"""

from __future__ import annotations

import hmac
import os
import re
from hashlib import blake2b

GIVEN = b"\x93omnigraph:given\x00"
STORED = b"\x93omnigraph:stored\x00"

# Between the address and its proof. No address has it.
_END = b"\x00"
_KEY = os.urandom(32)
_ADDRESS = re.compile(r"(s3|file)://\S+")


def given_reference(address: str) -> bytes:
    """A reference as a person names it; ValueError when it is no absolute address."""
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            "expected 'base64:' and the bytes in base 64, or an absolute address such as "
            "s3://bucket/scan.pdf"
        )
    return GIVEN + address.encode()


def stored_reference(address: str, *, proven: bool = False) -> bytes:
    """A reference as it is read from a table, with its proof if the row is to be written again."""
    plain = STORED + address.encode()
    return plain + _END + _proof(address) if proven else plain


def is_proven(value: bytes) -> bool:
    """Whether this process read the reference from a table."""
    if not value.startswith(STORED):
        return False
    address, _, proof = value[len(STORED) :].partition(_END)
    return hmac.compare_digest(proof, _proof(address.decode("utf-8", errors="replace")))


def _proof(address: str) -> bytes:
    return blake2b(address.encode(), key=_KEY, digest_size=16).digest()


def address_of(value: bytes | None) -> str | None:
    """The address of a reference, None for bytes of a blob's own."""
    for mark in (GIVEN, STORED):
        if value is not None and value.startswith(mark):
            address, _, _ = value[len(mark) :].partition(_END)
            return address.decode("utf-8", errors="replace")
    return None


def as_given(value: bytes) -> bytes:
    """Bytes from outside: a reference among them is not trusted to have been admitted."""
    address = address_of(value)
    return value if address is None else given_reference(address)
