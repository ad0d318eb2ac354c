"""The embedding client: batches, deadlines, a cache of queries, and validation, for every provider.

Guarantees: as the package says. Safe to share between threads.
Deliberately absent: which provider to use; that is configuration.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from omnigraph import logs
from omnigraph.caches import Cache
from omnigraph.embedding.answers import Vectors, unit_vectors
from omnigraph.embedding.config import EmbeddingConfig, Provider
from omnigraph.embedding.gemini import GeminiBackend
from omnigraph.embedding.local import LocalBackend
from omnigraph.embedding.mock import MockBackend
from omnigraph.embedding.openai import OpenAiBackend
from omnigraph.embedding.provider import Backend, Role
from omnigraph.embedding.retry import Deadline, Retry
from omnigraph.errors import EmbeddingError, InvalidArgumentError

log = logs.logger(__name__)

_REMEMBERED_QUERIES = 1024


class EmbeddingClient:
    """Embeds text as one configuration says."""

    def __init__(
        self,
        config: EmbeddingConfig,
        *,
        backend: Backend | None = None,
        retry: Retry | None = None,
    ) -> None:
        self.config = config
        self._backend = backend or _backend(config)
        self._retry = retry or Retry(config.attempts, config.backoff_ms / 1000)
        self._queries: Cache[tuple[str, int], Vectors] = Cache(entries=_REMEMBERED_QUERIES)

    @property
    def model(self) -> str:
        return self.config.model

    def require_model(self, recorded: str | None, property: str = "the property") -> None:
        """Refuse to compare with vectors of another model. None: no model is recorded."""
        if recorded is None or recorded == self.model:
            return
        raise EmbeddingError(
            f"The vectors of {property} were made by the model {recorded!r}, and queries would be "
            f"embedded with {self.model or 'no named model'!r}: their distances are meaningless.",
            hint="Set OMNIGRAPH_EMBED_MODEL, and its provider, to the recorded model.",
            property=property,
            recorded=recorded,
            model=self.model,
        )

    def embed_query(self, text: str, dim: int) -> Vectors:
        """The vector of one query text. Read-only, for it is remembered."""
        found = self._queries.peek((text, dim))
        if found is None:
            found = self._embed([text], dim, Role.QUERY)[0]
            found.flags.writeable = False
            self._queries.put((text, dim), found, 4 * dim)
        return found

    def embed_for(self, text: str, recorded: str | None, dim: int) -> Vectors:
        """The vector of a query text, to be compared with vectors of the recorded model."""
        self.require_model(recorded)
        return self.embed_query(text, dim)

    def embed_documents(self, texts: Sequence[str], dim: int) -> Vectors:
        """One row per text. Each batch has a deadline of its own."""
        size = self._backend.batch
        starts = range(0, len(texts), size)
        parts = [self._embed(texts[at : at + size], dim, Role.DOCUMENT) for at in starts]
        return np.concatenate(parts) if parts else np.empty((0, dim), dtype=np.float32)

    def close(self) -> None:
        """Close kept connections; the client stays usable."""
        self._backend.close()

    def __enter__(self) -> EmbeddingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed(self, texts: Sequence[str], dim: int, role: Role) -> Vectors:
        if dim < 1:
            raise InvalidArgumentError(f"A vector has at least one dimension, not {dim}.")
        started = time.perf_counter()
        deadline = Deadline.after(self.config.deadline_ms)
        outcome = "error"
        try:
            raw = self._retry.run(lambda: self._backend.embed(texts, dim, role, deadline), deadline)
            vectors = unit_vectors(raw, len(texts), dim)
            outcome = "ok"
        except EmbeddingError as error:
            error.details.setdefault("provider", str(self.config.provider))
            error.details.setdefault("model", self.model)
            raise
        finally:
            self._tell(len(texts), dim, started, outcome)
        return vectors

    def _tell(self, texts: int, dim: int, started: float, outcome: str) -> None:
        log.info(
            "embedded text",
            extra=logs.fields(
                provider=str(self.config.provider),
                model=self.model,
                texts=texts,
                dim=dim,
                elapsed_ms=round((time.perf_counter() - started) * 1000, 1),
                outcome=outcome,
            ),
        )


def _backend(config: EmbeddingConfig) -> Backend:
    match config.provider:
        case Provider.OPENAI_COMPATIBLE:
            return OpenAiBackend(config)
        case Provider.GEMINI:
            return GeminiBackend(config)
        case Provider.LOCAL:
            return LocalBackend(config)
        case Provider.MOCK:
            return MockBackend()
