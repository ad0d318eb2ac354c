"""The external addresses that blobs may reference.

    AllowList.of(["s3://assets/scans/", "file:///srv/scans"]).admit("s3://assets/scans/1.pdf")

Guarantees: nothing is allowed by default; addresses are compared part by part, never as text; one
with credentials, a query, escapes or `..` is refused; a local file must exist, and is stored under
the name that it has once all links are followed, which must lie below the base.
Deliberately absent: reaching the places. Admitting an S3 address sends nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.errors import ExternalBlobError, InvalidArgumentError

_SCHEMES = ("s3", "file")
# Characters that one reader takes for themselves and another for something else.
_AMBIGUOUS = frozenset('%?#\\"<>|^`{}')


@dataclass(frozen=True, slots=True)
class _Place:
    scheme: str
    host: str
    parts: tuple[str, ...]

    def holds(self, other: _Place) -> bool:
        count = len(self.parts)
        same = (self.scheme, self.host) == (other.scheme, other.host)
        return same and len(other.parts) > count and other.parts[:count] == self.parts

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{'/'.join(self.parts)}"


@dataclass(frozen=True, slots=True)
class AllowList:
    """Bases below which references may lie. Empty: nowhere."""

    bases: tuple[_Place, ...] = ()

    @staticmethod
    def of(bases: Iterable[str]) -> AllowList:
        try:
            return AllowList(tuple(_canonical(_place(base)) for base in bases))
        except ValueError as error:
            raise InvalidArgumentError(
                f"A base for external blobs is not usable: {error}.",
                hint="Name a place such as s3://bucket/prefix/ or file:///srv/files/.",
            ) from error

    def admit(self, address: str) -> str:
        """The address as it is stored; ExternalBlobError when it is not allowed."""
        try:
            place = _canonical(_place(address))
        except ValueError as error:
            raise ExternalBlobError(
                f"A blob cannot refer to this address: {error}.", address=_shown(address)
            ) from error
        if not any(base.holds(place) for base in self.bases):
            raise ExternalBlobError(
                f"Blobs of this graph may not refer to {place}.", address=str(place)
            )
        if place.scheme == "file" and not os.path.isfile("/" + "/".join(place.parts)):
            raise ExternalBlobError(f"There is no file {place}.", address=str(place))
        return str(place)


NOWHERE = AllowList()


def _place(address: str) -> _Place:
    if any(character in _AMBIGUOUS or character < " " for character in address):
        raise ValueError("it has characters that programs interpret differently")
    found = urlsplit(address)
    if found.scheme not in _SCHEMES:
        raise ValueError(f"only {' and '.join(_SCHEMES)} addresses are supported")
    if "@" in found.netloc or ":" in found.netloc:
        raise ValueError("it names a user or a port")
    if bool(found.netloc) != (found.scheme == "s3"):
        raise ValueError("it should read s3://bucket/… or file:///…")
    parts = tuple(part for part in found.path.split("/") if part)
    if any(part in (".", "..") for part in parts):
        raise ValueError("it goes up and down")
    return _Place(found.scheme, found.netloc, parts)


def _canonical(place: _Place) -> _Place:
    if place.scheme != "file":
        return place
    real = os.path.realpath("/" + "/".join(place.parts))
    return _Place("file", "", tuple(part for part in real.split("/") if part))


def _shown(address: str) -> str:
    """Without what may be a secret."""
    scheme, separator, rest = address.partition("://")
    return f"{scheme}{separator}{rest.rsplit('@', 1)[-1].split('?')[0]}"
