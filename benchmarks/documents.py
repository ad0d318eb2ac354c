"""Documents as Arrow tables, from a seed: a text, a vector and a topic each, and citations.

Words follow Zipf's law, so that some are in a third of the texts and most in a few. Vectors lie in
clusters of different width, as embeddings do; a topic's documents come from a few clusters, so that
a filter by topic and nearness to a vector are related, but not the same.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

DIMENSIONS = 384
DOCUMENTS = 100_000
TOPICS = 50
CITATIONS = 300_000
_WORDS = 20_000
_WORDS_PER_TEXT = 24
_CLUSTERS = 400

SCHEMA = f"""
node Doc {{
    slug: String @key
    body: String @index
    embedding: Vector({DIMENSIONS}) @index
}}
node Topic {{ name: String @key }}
edge About: Doc -> Topic
edge Cites: Doc -> Doc
"""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Documents:
    """Tables by type, and what somebody might look for."""

    tables: dict[str, pa.Table]
    vectors: Array
    topics: Array  # each document's topic
    queries: list[tuple[Array, str, str]]  # a vector, a text, a topic

    @cached_property
    def directions(self) -> Array:
        """The vectors at length one, in double precision: what is nearest is read off these."""
        exact = self.vectors.astype(np.float64)
        found: Array = exact / np.linalg.norm(exact, axis=1, keepdims=True)
        return found


def document_set(scale: float = 1.0, queries: int = 50, seed: int = 20261116) -> Documents:
    rng = np.random.default_rng(seed)
    count = int(DOCUMENTS * scale)
    clusters = rng.integers(0, _CLUSTERS, count)
    centres = rng.standard_normal((_CLUSTERS, DIMENSIONS)).astype(np.float32)
    width = rng.uniform(0.4, 1.2, _CLUSTERS).astype(np.float32)
    vectors = _around(rng, centres, width, clusters)
    topics = (clusters % TOPICS + rng.integers(0, 4, count)) % TOPICS
    slugs = pa.array([f"d{number:07d}" for number in range(count)])
    names = pa.array([f"topic-{number:02d}" for number in range(TOPICS)])
    sources = rng.integers(0, count, int(CITATIONS * scale))
    targets = rng.integers(0, count, int(CITATIONS * scale))
    tables = {
        "Doc": pa.table(
            {
                "slug": slugs,
                "body": pa.array(_texts(rng, count, _WORDS_PER_TEXT)),
                "embedding": pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.reshape(-1)), DIMENSIONS
                ),
            }
        ),
        "Topic": pa.table({"name": names}),
        "About": pa.table({"from": slugs, "to": names.take(pa.array(topics))}),
        "Cites": pa.table(
            {"from": slugs.take(pa.array(sources)), "to": slugs.take(pa.array(targets))}
        ),
    }
    wanted = rng.integers(0, _CLUSTERS, queries)
    asked = _around(rng, centres, width, wanted)
    texts = _texts(rng, queries, 3)
    found = [
        (asked[n], texts[n], f"topic-{(wanted[n] + n % 4) % TOPICS:02d}") for n in range(queries)
    ]
    return Documents(tables, vectors, topics, found)


def kept_set(folder: Path, scale: float, seed: int) -> Documents:
    """The documents, made once in a folder; processes that search them need not make them again."""
    path = folder / f"documents-{scale:g}-{seed}.pickle"
    if path.exists():
        found: Documents = pickle.loads(path.read_bytes())
        return found
    made = document_set(scale, seed=seed)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps(made, protocol=5))
    unfinished.rename(path)
    return made


def _around(rng: np.random.Generator, centres: Array, width: Array, clusters: Array) -> Array:
    noise = rng.standard_normal((len(clusters), DIMENSIONS), dtype=np.float32)
    found: Array = centres[clusters] + noise * width[clusters, None]
    return found


def _texts(rng: np.random.Generator, count: int, words: int) -> list[str]:
    vocabulary = np.array([_word(number) for number in range(_WORDS)])
    ranks = np.minimum(rng.zipf(1.3, (count, words)) - 1, _WORDS - 1)
    return [" ".join(row) for row in vocabulary[ranks]]


def _word(number: int) -> str:
    """A word that is spelled like no other and has no stem in common with one."""
    consonants, vowels = "bcdfghklmnprstvwz", "aou"
    letters = []
    for _ in range(3):
        number, first = divmod(number, len(consonants))
        number, second = divmod(number, len(vowels))
        letters.append(consonants[first] + vowels[second])
    return "".join(letters) + "k"
