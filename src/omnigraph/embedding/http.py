"""One JSON request to an embedding provider.

Guarantees: every outcome is the parsed answer, `Transient` (worth another try) or `EmbeddingError`;
redirects are not followed, so that a key goes only where it was configured to go; no message holds
the key.
Deliberately absent: retries (`retry`) and the providers' shapes (`openai`, `gemini`).
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

import orjson
import urllib3

from omnigraph.embedding.retry import Deadline, Transient
from omnigraph.errors import EmbeddingError

_EXCERPT = 300
_LONGEST_WAIT_S = 3600.0


class JsonEndpoint:
    """A provider's base address, with the headers that every request carries."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], timeout_ms: int, secret: str
    ) -> None:
        if not base_url.startswith(("https://", "http://")):
            raise EmbeddingError(f"{base_url!r} is not an address of an embedding provider.")
        self._base_url = base_url
        self._headers = {"content-type": "application/json", **headers}
        self._timeout_s = timeout_ms / 1000
        self._secret = secret
        self._pool = urllib3.PoolManager(retries=False)

    def post(self, path: str, body: Any, deadline: Deadline) -> Any:
        left_s = deadline.remaining_s()
        if left_s <= 0:
            raise Transient("the deadline passed before the request was sent")
        try:
            answer = self._pool.request(
                "POST",
                f"{self._base_url}/{path}",
                body=orjson.dumps(body),
                headers=self._headers,
                timeout=urllib3.Timeout(total=min(self._timeout_s, left_s)),
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Transient(self._clean(f"the provider could not be reached ({error})")) from error
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        try:
            return orjson.loads(answer.data)
        except orjson.JSONDecodeError as error:
            raise EmbeddingError(
                "The embedding provider sent a response that is not JSON."
            ) from error

    def close(self) -> None:
        self._pool.clear()

    def _refusal(self, answer: urllib3.BaseHTTPResponse) -> Exception:
        said = self._clean(_message(answer.data))
        if answer.status in (408, 429) or answer.status >= 500:
            waits = _retry_after_s(answer.headers.get("retry-after"))
            return Transient(f"the provider answered {answer.status}: {said}", waits)
        return EmbeddingError(
            f"The embedding provider refused the request ({answer.status}): {said}",
            hint=_hint(answer.status),
            status=answer.status,
            retryable=False,
        )

    def _clean(self, text: str) -> str:
        return text.replace(self._secret, "***") if self._secret else text


def _hint(status: int) -> str:
    if status in (401, 403):
        return "Check the API key and what it may do."
    if 300 <= status < 400:
        return "The provider moved; set OMNIGRAPH_EMBED_BASE_URL to its new address."
    return "Check the model and the address of the provider."


def _message(data: bytes) -> str:
    """What the provider says is wrong: both known providers answer {"error": {"message": …}}."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    text = error.get("message") if isinstance(error, dict) else error
    if not isinstance(text, str) or not text.strip():
        text = data.decode("utf-8", "replace") or "no explanation"
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"


def _retry_after_s(header: str | None) -> float | None:
    """Seconds, or a date; anything else is ignored."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return min(float(header), _LONGEST_WAIT_S)
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    return min(max(0.0, moment.timestamp() - time.time()), _LONGEST_WAIT_S)
