"""Turning text into vectors: one client for several providers.

    client = EmbeddingClient(config_from_environment())
    client.require_model(recorded, "Doc.embedding")
    client.embed_query("graph databases", dim=384)

Providers: `openai-compatible` (OpenRouter, OpenAI, or a server of one's own), `gemini`, `local` (a
model that runs in this process from weights on disk) and `mock` (deterministic, for tests).

A vector has the asked dimension, finite values and length one, or there is an `EmbeddingError`; no
call outlives its deadline by more than one request's timeout; keys are never logged or shown. Query
texts are embedded once and remembered.
"""

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import (
    EmbeddingConfig,
    Provider,
    config_from_environment,
    config_from_parts,
)

__all__ = [
    "EmbeddingClient",
    "EmbeddingConfig",
    "Provider",
    "config_from_environment",
    "config_from_parts",
]
