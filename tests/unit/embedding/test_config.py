"""Configuration from the environment and from parts."""

from __future__ import annotations

import logging

import pytest

from omnigraph.embedding import Provider, config_from_environment, config_from_parts
from omnigraph.errors import EmbeddingError, InvalidArgumentError


def test_a_key_alone_is_enough() -> None:
    config = config_from_environment({"OPENROUTER_API_KEY": "k1", "OPENAI_API_KEY": "k2"})
    assert config.provider is Provider.OPENAI_COMPATIBLE
    assert config.base_url == "https://openrouter.ai/api/v1"
    assert config.model == "openai/text-embedding-3-large"
    assert config.api_key == "k1"
    assert (config.deadline_ms, config.timeout_ms) == (60_000, 30_000)
    assert (config.attempts, config.backoff_ms) == (4, 200)


@pytest.mark.parametrize(
    ("spelling", "key", "host", "model"),
    [
        ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "text-embedding-3-large"),
        (
            "gemini",
            "GEMINI_API_KEY",
            "https://generativelanguage.googleapis.com/v1beta",
            "gemini-embedding-2",
        ),
    ],
)
def test_known_providers(spelling: str, key: str, host: str, model: str) -> None:
    config = config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": spelling, key: "k"})
    assert (config.base_url, config.model, config.api_key) == (host, model, "k")


def test_everything_can_be_overridden() -> None:
    config = config_from_environment(
        {
            "OMNIGRAPH_EMBED_PROVIDER": " openai-compatible ",
            "OMNIGRAPH_EMBED_BASE_URL": "http://localhost:11434/v1/",
            "OMNIGRAPH_EMBED_MODEL": "nomic",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "5",
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "1",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "7",
        }
    )
    # A server of one's own needs no key.
    assert (config.base_url, config.model, config.api_key) == (
        "http://localhost:11434/v1",
        "nomic",
        "",
    )
    assert (config.deadline_ms, config.timeout_ms, config.attempts, config.backoff_ms) == (
        0,
        5,
        1,
        7,
    )


@pytest.mark.parametrize("spelling", ["openai-compatible", "openai", "gemini", ""])
def test_a_missing_key_names_its_variable(spelling: str) -> None:
    with pytest.raises(EmbeddingError, match="API_KEY"):
        config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": spelling, "OPENAI_API_KEY": " "})


def test_an_unknown_provider_names_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match=r"gemini, local, mock"):
        config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "acme"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMNIGRAPH_EMBED_TIMEOUT_MS", "0"),
        ("OMNIGRAPH_EMBED_DEADLINE_MS", "-1"),
        ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "many"),
    ],
)
def test_malformed_numbers_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "mock", name: value})


def test_the_mock_flag_wins_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1", "OMNIGRAPH_EMBED_PROVIDER": "gemini"}
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert config_from_environment(environ).provider is Provider.MOCK
    assert "override" in caplog.text
    caplog.clear()
    assert config_from_environment({"OMNIGRAPH_EMBEDDINGS_MOCK": "true"}).provider is Provider.MOCK
    assert caplog.text == ""


def test_parts_take_the_same_defaults() -> None:
    config = config_from_parts("gemini", api_key="k")
    assert config == config_from_environment(
        {"OMNIGRAPH_EMBED_PROVIDER": "gemini", "GEMINI_API_KEY": "k"}
    )
    assert config_from_parts("mock", model="m").model == "m"


def test_the_key_is_not_printed() -> None:
    assert "hush" not in repr(config_from_parts("openai", api_key="hush"))
