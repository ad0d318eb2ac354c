"""The client against a provider on this machine: shapes, retries, deadlines, memory, checks."""

from __future__ import annotations

import email.utils
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.embedding.provider import Answer, FakeProvider, provider

from omnigraph.embedding import EmbeddingClient, EmbeddingConfig, config_from_parts
from omnigraph.embedding.retry import Deadline, Retry, Transient
from omnigraph.errors import EmbeddingError, InvalidArgumentError

KEY = "sk-very-secret"
MOCK_EXAMPLE = [
    0.4523245,
    0.1228612,
    0.4238039,
    -0.2993605,
    -0.0630222,
    -0.6437099,
    -0.231549,
    -0.1978181,
]


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with provider() as running:
        yield running


def config_for(fake: FakeProvider, spelling: str = "openai", **changes: Any) -> EmbeddingConfig:
    config = config_from_parts(spelling, fake.url, "some/model", KEY)
    return replace(config, backoff_ms=1, **changes)


def openai_answer(body: Any) -> Answer:
    """Vectors that tell which text they are of, in reverse order."""
    items = [
        {"index": place, "embedding": [float(len(text)), 1.0, 0.0]}
        for place, text in enumerate(body["input"])
    ]
    return Answer(body={"data": items[::-1]})


def failure(client: EmbeddingClient, text: str = "hello", dim: int = 3) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        client.embed_query(text, dim)
    assert KEY not in str(caught.value.to_dict())
    return caught.value


def test_openai_shape(fake: FakeProvider) -> None:
    fake.answers = [openai_answer]
    with EmbeddingClient(config_for(fake)) as client:
        vector = client.embed_query("hello", 3)
    assert vector.dtype == np.float32
    assert np.allclose(vector, np.array([5, 1, 0]) / np.sqrt(26))
    (asked,) = fake.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "some/model", "input": ["hello"], "dimensions": 3}


def test_no_key_sends_no_header(fake: FakeProvider) -> None:
    fake.answers = [openai_answer]
    with EmbeddingClient(replace(config_for(fake), api_key="")) as client:
        client.embed_query("hello", 3)
    assert "authorization" not in fake.asked[0].headers


def test_documents_go_in_batches_and_keep_their_order(fake: FakeProvider) -> None:
    fake.answers = [openai_answer]
    texts = ["x" * number for number in range(600)]
    with EmbeddingClient(config_for(fake)) as client:
        found = client.embed_documents(texts, 3)
        assert client.embed_documents([], 3).shape == (0, 3)
    assert [len(asked.body["input"]) for asked in fake.asked] == [256, 256, 88]
    lengths = found[:, 0] / found[:, 1]
    assert np.allclose(lengths, np.arange(600), atol=0.01)


def test_gemini_tells_queries_from_documents(fake: FakeProvider) -> None:
    one = Answer(body={"embedding": {"values": [3, 4]}})
    two = Answer(body={"embeddings": [{"values": [3, 4]}, {"values": [0, 1]}]})
    fake.answers = [one, two]
    with EmbeddingClient(config_for(fake, "gemini")) as client:
        assert np.allclose(client.embed_query("q", 2), [0.6, 0.8])
        assert np.allclose(client.embed_documents(["a", "b"], 2), [[0.6, 0.8], [0.0, 1.0]])
    query, batch = fake.asked
    assert query.path == "/v1/models/some%2Fmodel:embedContent"
    assert query.headers["x-goog-api-key"] == KEY
    assert query.body == {
        "model": "models/some/model",
        "content": {"parts": [{"text": "q"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 2,
    }
    assert batch.path.endswith(":batchEmbedContents")
    assert [item["taskType"] for item in batch.body["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2


def test_queries_are_remembered(fake: FakeProvider) -> None:
    fake.answers = [openai_answer]
    with EmbeddingClient(config_for(fake)) as client:
        first = client.embed_query("hello", 3)
        assert client.embed_query("hello", 3) is first
        client.embed_query("other", 3)
        client.embed_documents(["hello"], 3)
    assert len(fake.asked) == 3
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_failures_that_pass_are_tried_again(fake: FakeProvider, status: int) -> None:
    fake.answers = [Answer(status, {"error": {"message": "busy"}}), openai_answer]
    with EmbeddingClient(config_for(fake)) as client:
        client.embed_query("hello", 3)
    assert len(fake.asked) == 2


def test_attempts_are_bounded(fake: FakeProvider) -> None:
    fake.answers = [Answer(503, {"error": {"message": "still busy"}})]
    with EmbeddingClient(config_for(fake, attempts=3)) as client:
        error = failure(client)
    assert len(fake.asked) == 3
    assert "still busy" in error.message
    assert error.details["attempts"] == 3
    assert error.details["retryable"] is True
    assert error.details["provider"] == "openai-compatible"


@pytest.mark.parametrize(
    ("status", "hint"), [(400, "model"), (401, "API key"), (403, "API key"), (404, "model")]
)
def test_refusals_are_final(fake: FakeProvider, status: int, hint: str) -> None:
    fake.answers = [Answer(status, {"error": {"message": f"no, {KEY} is wrong"}})]
    with EmbeddingClient(config_for(fake)) as client:
        error = failure(client)
    assert len(fake.asked) == 1
    assert "no, *** is wrong" in error.message
    assert hint in str(error.hint)
    assert error.details["status"] == status


def test_redirects_are_not_followed(fake: FakeProvider) -> None:
    fake.answers = [Answer(302, {}, {"location": f"{fake.url}/elsewhere"})]
    with EmbeddingClient(config_for(fake)) as client:
        assert "moved" in str(failure(client).hint)
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        {},
        [],
        {"data": []},
        {"data": [{"index": 1, "embedding": [1, 2, 3]}]},
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": ["a", 2, 3]}]},
        {"data": [{"index": 0, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [0, 0, 0]}]},
        b'{"data": [{"index": 0, "embedding": [1e999, 2, 3]}]}',
    ],
)
def test_answers_that_are_no_vectors(fake: FakeProvider, body: Any) -> None:
    fake.answers = [Answer(body=body)]
    with EmbeddingClient(config_for(fake)) as client:
        failure(client)
    assert len(fake.asked) == 1


@pytest.mark.parametrize("body", [{}, {"embedding": {}}, [], {"embedding": 3}])
def test_gemini_answers_that_are_no_vectors(fake: FakeProvider, body: Any) -> None:
    fake.answers = [Answer(body=body)]
    with EmbeddingClient(config_for(fake, "gemini")) as client:
        failure(client)
        with pytest.raises(EmbeddingError):
            client.embed_documents(["a", "b"], 3)


def test_the_wrong_dimension_says_which(fake: FakeProvider) -> None:
    fake.answers = [openai_answer]
    with EmbeddingClient(config_for(fake)) as client:
        assert "3 dimensions; 5 are needed" in failure(client, dim=5).message


def test_a_slow_provider_meets_the_deadline(fake: FakeProvider) -> None:
    fake.answers = [Answer(delay_s=0.5)]
    with EmbeddingClient(config_for(fake, deadline_ms=60, attempts=50)) as client:
        assert "deadline" in failure(client).message
    assert len(fake.asked) < 50


def test_a_request_has_a_timeout_of_its_own(fake: FakeProvider) -> None:
    fake.answers = [Answer(delay_s=0.3), openai_answer]
    with EmbeddingClient(config_for(fake, timeout_ms=50)) as client:
        client.embed_query("hello", 3)
    assert len(fake.asked) == 2


def test_nobody_at_the_address() -> None:
    with provider() as gone:
        pass
    with EmbeddingClient(config_for(gone, attempts=2)) as client:
        assert "could not be reached" in failure(client).message


def test_addresses_without_a_scheme_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="not an address"):
        EmbeddingClient(config_from_parts("openai", "localhost:1234"))


class Waits:
    """A retry that records its waits instead of making them."""

    def __init__(self, attempts: int = 4, chance: float = 1.0) -> None:
        self.waits: list[float] = []
        self.retry = Retry(attempts, 0.2, sleep=self.waits.append, chance=lambda: chance)


def test_waits_grow_with_chance_in_them() -> None:
    def fail() -> None:
        raise Transient("busy")

    for chance, expected in ((1.0, [0.2, 0.4, 0.8]), (0.0, [0.1, 0.2, 0.4])):
        recorded = Waits(chance=chance)
        with pytest.raises(EmbeddingError, match="failed 4 times"):
            recorded.retry.run(fail, Deadline.after(0))
        assert recorded.waits == pytest.approx(expected)


def test_the_server_says_when_to_return(fake: FakeProvider) -> None:
    later = email.utils.formatdate(time.time() + 100, usegmt=True)
    fake.answers = [
        Answer(429, {}, {"retry-after": "7"}),
        Answer(503, {}, {"retry-after": later}),
        Answer(503, {}, {"retry-after": "soon"}),
        openai_answer,
    ]
    recorded = Waits()
    config = config_for(fake, deadline_ms=0)
    with EmbeddingClient(config, retry=recorded.retry) as client:
        client.embed_query("hello", 3)
    assert recorded.waits[0] == 7
    assert 90 < recorded.waits[1] <= 100
    assert recorded.waits[2] == pytest.approx(0.8)


def test_no_wait_passes_the_deadline(fake: FakeProvider) -> None:
    fake.answers = [Answer(429, {"error": "slow down"}, {"retry-after": "3600"})]
    recorded = Waits()
    with EmbeddingClient(config_for(fake), retry=recorded.retry) as client:
        assert "deadline" in failure(client).message
    assert recorded.waits == []
    assert len(fake.asked) == 1


def test_models_must_agree() -> None:
    client = EmbeddingClient(config_from_parts("mock", model="one"))
    client.require_model(None, "Doc.vec")
    client.require_model("one", "Doc.vec")
    with pytest.raises(EmbeddingError, match=r"Doc\.vec .* 'two'.* 'one'") as caught:
        client.require_model("two", "Doc.vec")
    assert "OMNIGRAPH_EMBED_MODEL" in str(caught.value.hint)
    assert np.array_equal(client.embed_for("x", "one", 4), client.embed_query("x", 4))
    with pytest.raises(EmbeddingError, match="of the property were made"):
        client.embed_for("x", "two", 4)
    with pytest.raises(EmbeddingError, match="no named model"):
        EmbeddingClient(config_from_parts("mock")).require_model("two", "Doc.vec")


def test_mock_vectors_are_the_same_everywhere() -> None:
    client = EmbeddingClient(config_from_parts("mock"))
    vector = client.embed_query("graph databases", 8)
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert vector.tolist() == pytest.approx(MOCK_EXAMPLE, abs=1e-6)
    assert np.array_equal(client.embed_documents(["graph databases"], 8)[0], vector)


def test_mock_texts_that_share_words_are_near() -> None:
    client = EmbeddingClient(config_from_parts("mock"))
    texts = ["a red fox", "the red fox runs", "quarterly tax report", "", "!?"]
    found = client.embed_documents(texts, 256)
    assert found[0] @ found[1] > 0.4 > abs(found[0] @ found[2])
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


def test_a_vector_has_a_dimension() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one dimension"):
        EmbeddingClient(config_from_parts("mock")).embed_query("x", 0)


def test_calls_are_logged_without_text_or_key(
    fake: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    fake.answers = [openai_answer]
    with (
        caplog.at_level(logging.INFO, "omnigraph.embedding"),
        EmbeddingClient(config_for(fake)) as client,
    ):
        client.embed_query("confidential", 3)
    record = caplog.records[-1]
    fields = vars(record)["omnigraph_fields"]
    assert (fields["outcome"], fields["texts"], fields["dim"]) == ("ok", 1, 3)
    assert "confidential" not in str(fields)
    assert KEY not in str(fields)
