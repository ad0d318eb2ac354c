"""The embedder that queries use when the caller gives none: what the environment configures.

Nothing is read or connected before the first text must be embedded; one client per configuration in
a process, so that its memory of query texts is shared.
Not included: providers (`embedding`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.embedding import EmbeddingClient, EmbeddingConfig

_guard = threading.Lock()
_clients: dict[EmbeddingConfig, EmbeddingClient] = {}


def embed_by_environment(text: str, model: str | None, dim: int) -> Sequence[float]:
    """A query text as a vector, checked against the model that the property records."""
    vector: list[float] = _client().embed_for(text, model, dim).tolist()
    return vector


def _client() -> EmbeddingClient:
    from omnigraph.embedding import EmbeddingClient, config_from_environment

    config = config_from_environment()
    with _guard:
        if config not in _clients:
            _clients[config] = EmbeddingClient(config)
        return _clients[config]
