"""A BERT encoder in numpy: word pieces in, one vector per text out.

Small sentence models run well enough on it, and it spares a user the gigabytes of a deep-learning
framework. Reads the folder layout of sentence-transformers: `config.json`, `model.safetensors`,
`vocab.txt`, and `1_Pooling/config.json`.

Guarantees: the reference implementation's vectors up to rounding (about 1e-6); thread-safe.
Deliberately absent: training, other architectures, other devices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnigraph.embedding.wordpiece import WordPiece

Floats = NDArray[np.float32]

_TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


class BertEncoder:
    """A model read from a folder."""

    def __init__(self, folder: Path) -> None:
        config = _json(folder / "config.json")
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise ValueError("it is no BERT encoder")
        self.dim = int(config["hidden_size"])
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        limits = _json(folder / "sentence_bert_config.json")
        longest = min(int(config["max_position_embeddings"]), int(limits["max_seq_length"]))
        self._mean = bool(_json(folder / "1_Pooling" / "config.json")["pooling_mode_mean_tokens"])
        self._pieces = WordPiece.read(folder / "vocab.txt", longest)
        self._weights = read_safetensors(folder / "model.safetensors")

    def embed(self, texts: Sequence[str]) -> Floats:
        """Vectors of texts, as the model pools them; not yet of length one."""
        numbers = [self._pieces.numbers(text) for text in texts]
        width = max(len(row) for row in numbers)
        pieces = np.zeros((len(numbers), width), dtype=np.intp)
        present = np.zeros((len(numbers), width), dtype=np.float32)
        for place, row in enumerate(numbers):
            pieces[place, : len(row)] = row
            present[place, : len(row)] = 1.0
        states = self._encode(pieces, present)
        if not self._mean:
            return states[:, 0]
        total = np.einsum("bth,bt->bh", states, present)
        return np.asarray(total / present.sum(axis=1, keepdims=True))

    def _encode(self, pieces: NDArray[np.intp], present: Floats) -> Floats:
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][pieces]
        states = states + weights["embeddings.position_embeddings.weight"][: pieces.shape[1]]
        states = states + weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normalize(states, "embeddings.LayerNorm")
        # Padding must not be attended to.
        mask = (1.0 - present)[:, None, None, :] * np.float32(-1e9)
        for number in range(self._layers):
            states = self._layer(states, mask, f"encoder.layer.{number}")
        return states

    def _layer(self, states: Floats, mask: Floats, name: str) -> Floats:
        attended = self._linear(self._attend(states, mask, name), f"{name}.attention.output.dense")
        states = self._normalize(states + attended, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        outer = self._linear(inner, f"{name}.output.dense")
        return self._normalize(states + outer, f"{name}.output.LayerNorm")

    def _attend(self, states: Floats, mask: Floats, name: str) -> Floats:
        batch, length, _ = states.shape

        def heads(part: str) -> Floats:
            made = self._linear(states, f"{name}.attention.self.{part}")
            return made.reshape(batch, length, self._heads, -1).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scale = np.float32(1 / np.sqrt(query.shape[-1]))
        scores = query @ key.transpose(0, 1, 3, 2) * scale + mask
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Floats = scores @ value
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, self.dim)

    def _linear(self, states: Floats, name: str) -> Floats:
        made = states @ self._weights[f"{name}.weight"].T
        return np.asarray(made + self._weights[f"{name}.bias"])

    def _normalize(self, states: Floats, name: str) -> Floats:
        centered = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        scaled = centered / spread * self._weights[f"{name}.weight"]
        return np.asarray(scaled + self._weights[f"{name}.bias"], dtype=np.float32)


def read_safetensors(path: Path) -> dict[str, Floats]:
    """The floating-point tensors of a file, mapped rather than read."""
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_size))
    data = np.memmap(path, mode="r", offset=8 + header_size)
    found: dict[str, Floats] = {}
    for name, item in header.items():
        kind = _TYPES.get(item.get("dtype", ""))
        if kind is not None:
            start, end = item["data_offsets"]
            values = data[start:end].view(kind).reshape(item["shape"])
            found[name] = np.asarray(values, dtype=np.float32)
    return found


def _gelu(values: Floats) -> Floats:
    return np.asarray(0.5 * values * (1.0 + _erf(values * np.float32(2**-0.5))), dtype=np.float32)


def _erf(values: Floats) -> Floats:
    """The error function, off by at most 1.5e-7 (numpy has none)."""
    size = np.abs(values)
    t = 1.0 / (1.0 + 0.3275911 * size)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.asarray(np.sign(values) * (1.0 - series * np.exp(-size * size)), dtype=np.float32)


def _json(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return found
