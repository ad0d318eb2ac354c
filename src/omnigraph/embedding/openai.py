"""Embeddings from a server with the API of OpenAI: OpenRouter, OpenAI, vLLM, Ollama …

As `provider` says. Vectors come back in the order of the texts, whatever the order of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.http import JsonEndpoint
from omnigraph.embedding.provider import Role
from omnigraph.embedding.retry import Deadline
from omnigraph.errors import EmbeddingError


class OpenAiBackend:
    batch = 256

    def __init__(self, config: EmbeddingConfig) -> None:
        self._model = config.model
        key = config.api_key
        # A server of one's own may need no key.
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._endpoint = JsonEndpoint(config.base_url, headers, config.timeout_ms, key)

    def embed(self, texts: Sequence[str], dim: int, role: Role, deadline: Deadline) -> Any:
        body = {"model": self._model, "input": list(texts), "dimensions": dim}
        answer = self._endpoint.post("embeddings", body, deadline)
        try:
            found = {int(item["index"]): item["embedding"] for item in answer["data"]}
            return [found[place] for place in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            raise EmbeddingError(
                "The embedding provider's answer does not hold one vector per text."
            ) from error

    def close(self) -> None:
        self._endpoint.close()
