"""Mock embeddings: vectors computed from the words of a text, equal on every machine.

Texts that share words are near each other, so that examples and tests work offline. They do not
represent meaning.

Deterministic across processes, platforms and releases.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnigraph.embedding.provider import Role
from omnigraph.embedding.retry import Deadline

_WORD = re.compile(r"\w+")


class MockBackend:
    batch = 1024

    def embed(self, texts: Sequence[str], dim: int, role: Role, deadline: Deadline) -> Any:
        return np.stack([mock_vector(text, dim) for text in texts])

    def close(self) -> None:
        """Holds nothing."""


def mock_vector(text: str, dim: int) -> NDArray[np.float64]:
    words = _WORD.findall(text.lower()) or [text]
    total = np.sum([_direction(word, dim) for word in words], axis=0)
    return np.asarray(total / np.linalg.norm(total))


def _direction(word: str, dim: int) -> NDArray[np.float64]:
    digest = hashlib.shake_256(word.encode()).digest(4 * dim)
    return np.frombuffer(digest, dtype="<u4") / 2**31 - 1.0
