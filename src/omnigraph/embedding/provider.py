"""The interface of embedding providers.

One vector per text, in order; the client validates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from omnigraph.embedding.retry import Deadline


class Role(StrEnum):
    """What a text is for. Some models embed questions and documents differently."""

    QUERY = "query"
    DOCUMENT = "document"


class Backend(Protocol):
    batch: int
    """The most texts that one call takes."""

    def embed(self, texts: Sequence[str], dim: int, role: Role, deadline: Deadline) -> Any:
        """Something that converts to a matrix. May raise `Transient` to be called again."""

    def close(self) -> None: ...
