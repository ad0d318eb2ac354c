"""Embeddings from Google's Gemini API, which distinguishes queries and documents.

As `provider` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.http import JsonEndpoint
from omnigraph.embedding.provider import Role
from omnigraph.embedding.retry import Deadline
from omnigraph.errors import EmbeddingError

_TASKS = {Role.QUERY: "RETRIEVAL_QUERY", Role.DOCUMENT: "RETRIEVAL_DOCUMENT"}


class GeminiBackend:
    batch = 100

    def __init__(self, config: EmbeddingConfig) -> None:
        self._model = config.model
        headers = {"x-goog-api-key": config.api_key}
        self._endpoint = JsonEndpoint(config.base_url, headers, config.timeout_ms, config.api_key)

    def embed(self, texts: Sequence[str], dim: int, role: Role, deadline: Deadline) -> Any:
        place = f"models/{quote(self._model, safe='')}"
        requests = [self._request(text, dim, role) for text in texts]
        if len(requests) == 1:
            answer = self._endpoint.post(f"{place}:embedContent", requests[0], deadline)
            return [_values(answer, "embedding")]
        body = {"requests": requests}
        answer = self._endpoint.post(f"{place}:batchEmbedContents", body, deadline)
        found = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(found, list):
            raise _malformed()
        return [_values({"embedding": item}, "embedding") for item in found]

    def close(self) -> None:
        self._endpoint.close()

    def _request(self, text: str, dim: int, role: Role) -> dict[str, Any]:
        return {
            "model": f"models/{self._model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _TASKS[role],
            "outputDimensionality": dim,
        }


def _values(answer: Any, name: str) -> Any:
    try:
        return answer[name]["values"]
    except (KeyError, TypeError) as error:
        raise _malformed() from error


def _malformed() -> EmbeddingError:
    return EmbeddingError("The embedding provider's answer does not hold one vector per text.")
