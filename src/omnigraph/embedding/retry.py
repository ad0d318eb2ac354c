"""Retries with a maximum number of attempts and a deadline.

Guarantees: waits grow, with chance in them, so that many clients do not return together; a server
that says when to return (`Retry-After`) is believed; no wait begins that would pass the deadline.
Deliberately absent: knowing which failures are worth another try. Callers raise `Transient` for
those.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from omnigraph import logs
from omnigraph.errors import EmbeddingError

log = logs.logger(__name__)

T = TypeVar("T")
_LONGEST_BACKOFF_S = 30.0


class Transient(Exception):  # noqa: N818  # not an error yet: it may pass
    """A failure that may pass. `after_s`: how long the server asked us to wait."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time, None for never."""

    at_s: float | None

    @staticmethod
    def after(limit_ms: int) -> Deadline:
        return Deadline(time.monotonic() + limit_ms / 1000 if limit_ms else None)

    def remaining_s(self) -> float:
        return float("inf") if self.at_s is None else self.at_s - time.monotonic()


@dataclass(frozen=True, slots=True)
class Retry:
    """How often to try and how long to wait between."""

    attempts: int
    backoff_s: float
    sleep: Callable[[float], None] = field(default=time.sleep)
    chance: Callable[[], float] = field(default=random.random)

    def run(self, request: Callable[[], T], deadline: Deadline) -> T:
        for attempt in range(1, self.attempts + 1):
            try:
                return request()
            except Transient as failure:
                if attempt == self.attempts:
                    raise _gave_up(failure, attempt) from failure
                wait_s = self._wait_s(failure, attempt)
                if wait_s >= deadline.remaining_s():
                    raise _too_late(failure, attempt) from failure
                log.warning(
                    "embedding attempt failed",
                    extra=logs.fields(attempt=attempt, wait_s=wait_s, reason=failure.message),
                )
                self.sleep(wait_s)
        raise AssertionError("a retry needs at least one attempt")

    def _wait_s(self, failure: Transient, attempt: int) -> float:
        if failure.after_s is not None:
            return failure.after_s
        longest = min(_LONGEST_BACKOFF_S, self.backoff_s * 2.0 ** (attempt - 1))
        return longest * (0.5 + 0.5 * self.chance())


def _gave_up(failure: Transient, attempts: int) -> EmbeddingError:
    return EmbeddingError(
        f"Embedding failed {attempts} times: {failure.message}",
        hint="Try again later, or look at the provider's status.",
        attempts=attempts,
        retryable=True,
    )


def _too_late(failure: Transient, attempts: int) -> EmbeddingError:
    return EmbeddingError(
        f"Embedding did not finish before its deadline: {failure.message}",
        hint="Try again later, or raise OMNIGRAPH_EMBED_DEADLINE_MS.",
        attempts=attempts,
        retryable=True,
    )
