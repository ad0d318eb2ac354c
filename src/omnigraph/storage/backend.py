"""What a place for control objects must be able to do: the border below `ObjectStore`.

Two places implement it: `disk` (POSIX files) and `buckets` (obstore's memory and S3 stores). Paths
that arrive here were checked; errors that leave here may be foreign, `ObjectStore` classifies
them. A lost condition is always raised as `StoragePreconditionError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from omnigraph.errors import StorageNotFoundError, StoragePreconditionError


@dataclass(frozen=True, slots=True)
class Object:
    """One whole control object as it was at one instant; `etag` names that state."""

    data: bytes = field(repr=False)
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class Stat:
    """What `head` knows: the object without its bytes."""

    etag: str
    size: int


class Expect(Enum):
    """What a write expects at its path, besides a certain etag."""

    ANYTHING = "anything"
    NOTHING = "nothing"


class Backend(Protocol):
    """The verbs that differ between places."""

    def read(self, path: str) -> Object: ...

    def stat(self, path: str) -> Stat: ...

    def has(self, path: str) -> bool: ...

    def write(
        self, path: str, data: bytes | memoryview, expected: Expect | str, forced: bool = True
    ) -> str:
        """Write atomically if what is there matches `expected`; return the new etag. Unless
        `forced`, the caller forces it to the medium along with what else it writes."""
        ...

    def remove(self, path: str, forced: bool = True) -> None:
        """Remove an object; an absent one is fine."""
        ...

    def remove_many(self, paths: Sequence[str], prefix: str) -> None:
        """Remove objects below `prefix`, and what the place keeps for the prefix itself."""
        ...

    def move(self, source: str, target: str) -> None: ...

    def names(self, prefix: str) -> list[str]:
        """Paths of all objects strictly below `prefix` ("" is everything), in any order."""
        ...

    def reclaim(self, older_than_s: float) -> int:
        """Remove what interrupted writes left behind; return how many there were."""
        ...


def absent(path: str) -> StorageNotFoundError:
    return StorageNotFoundError(f"There is no object {path!r}.", path=path)


def lost(path: str, expected: Expect | str, actual: str | None) -> StoragePreconditionError:
    """The error of a write whose condition did not hold."""
    if expected is Expect.NOTHING:
        message = f"The object {path!r} exists already."
    else:
        message = f"The object {path!r} is not in the expected state any more."
    wanted = expected.value if isinstance(expected, Expect) else expected
    return StoragePreconditionError(message, path=path, expected=wanted, actual=actual)
