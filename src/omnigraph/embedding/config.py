"""Which provider, model and endpoint to embed with.

Read from the environment (`config_from_environment`) or from values that the caller resolved
(`config_from_parts`, for a cluster file). Both apply the same defaults.

Guarantees: an unknown provider, a missing key and a malformed number are errors here, before any
text is sent anywhere; the key is not part of the printed form.
Deliberately absent: files. The environment is handed in, so that tests need not change it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from omnigraph import logs
from omnigraph.errors import EmbeddingError, InvalidArgumentError

PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
BASE_URL = "OMNIGRAPH_EMBED_BASE_URL"
MODEL = "OMNIGRAPH_EMBED_MODEL"
DEADLINE = "OMNIGRAPH_EMBED_DEADLINE_MS"
TIMEOUT = "OMNIGRAPH_EMBED_TIMEOUT_MS"
ATTEMPTS = "OMNIGRAPH_EMBED_RETRY_ATTEMPTS"
BACKOFF = "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"
MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"

log = logs.logger(__name__)


class Provider(StrEnum):
    OPENAI_COMPATIBLE = "openai-compatible"
    GEMINI = "gemini"
    LOCAL = "local"
    MOCK = "mock"


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """How to embed. `base_url` is a folder for the local provider. A deadline of 0 is none."""

    provider: Provider
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 30_000
    deadline_ms: int = 60_000
    attempts: int = 4
    backoff_ms: int = 200


@dataclass(frozen=True, slots=True)
class _Profile:
    """What a provider's spelling stands for. `keys` are variables, the preferred one first."""

    provider: Provider
    base_url: str = ""
    model: str = ""
    keys: tuple[str, ...] = ()


_DEFAULT_PROVIDER = "openai-compatible"
_PROFILES = {
    "openai-compatible": _Profile(
        Provider.OPENAI_COMPATIBLE,
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    "openai": _Profile(
        Provider.OPENAI_COMPATIBLE,
        "https://api.openai.com/v1",
        "text-embedding-3-large",
        ("OPENAI_API_KEY",),
    ),
    "gemini": _Profile(
        Provider.GEMINI,
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
    "local": _Profile(Provider.LOCAL, model="sentence-transformers/all-MiniLM-L6-v2"),
    "mock": _Profile(Provider.MOCK),
}


def config_from_environment(environ: Mapping[str, str] | None = None) -> EmbeddingConfig:
    """The configuration that the environment describes."""
    known = _Environment(os.environ if environ is None else environ)
    spelling = known.get(PROVIDER)
    if known.flag(MOCK):
        if spelling not in (None, "mock"):
            # Mock vectors look like real ones, so a leaked test setting must not be silent.
            log.warning(
                "mock embeddings override the configured provider",
                extra=logs.fields(variable=MOCK, overridden=spelling),
            )
        spelling = "mock"
    profile = _profile(spelling)
    endpoint = known.get(BASE_URL)
    key = next((value for name in profile.keys if (value := known.get(name))), None)
    if profile.keys and key is None and endpoint is None:
        raise EmbeddingError(
            f"The embedding provider {spelling or _DEFAULT_PROVIDER!r} needs an API key.",
            hint=f"Set {' or '.join(profile.keys)}, or choose another {PROVIDER}.",
        )
    config = config_from_parts(spelling, endpoint, known.get(MODEL), key or "")
    return replace(
        config,
        timeout_ms=known.number(TIMEOUT, config.timeout_ms, 1),
        deadline_ms=known.number(DEADLINE, config.deadline_ms, 0),
        attempts=known.number(ATTEMPTS, config.attempts, 1),
        backoff_ms=known.number(BACKOFF, config.backoff_ms, 1),
    )


def config_from_parts(
    provider: str | None = None,
    base_url: str | None = None,
    model: str | None = None,
    api_key: str = "",
) -> EmbeddingConfig:
    """A configuration from what is given, the rest by the provider's defaults."""
    profile = _profile(provider)
    return EmbeddingConfig(
        profile.provider,
        model or profile.model,
        (base_url or profile.base_url).rstrip("/"),
        api_key,
    )


def _profile(spelling: str | None) -> _Profile:
    profile = _PROFILES.get(spelling or _DEFAULT_PROVIDER)
    if profile is None:
        raise InvalidArgumentError(
            f"There is no embedding provider {spelling!r}.",
            hint=f"Choose one of {', '.join(_PROFILES)}.",
        )
    return profile


class _Environment:
    """Variables; blank counts as unset."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get(self, name: str) -> str | None:
        return self._values.get(name, "").strip() or None

    def flag(self, name: str) -> bool:
        return (self.get(name) or "").lower() in {"1", "true", "yes", "on"}

    def number(self, name: str, default: int, least: int) -> int:
        text = self.get(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < least:
            raise InvalidArgumentError(
                f"{name} must be a whole number of at least {least}, not {text!r}."
            )
        return int(text)
