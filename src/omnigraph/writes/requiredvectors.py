"""Required vectors that a write does not contain: computed from their texts before validation.

A row of a type with `vec: Vector(384) @embed("text")`, not optional, cannot be inserted with the
text alone. Where a provider is configured, such vectors are made before rows are checked; optional
ones are left for `embed`.

A provider that fails fails the write, before anything is staged; a text is sent once for each
request, however often that is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.rowvectors import Embed, Vectors, fill_missing, provider
from omnigraph.embedding import EmbeddingConfig, config_from_environment
from omnigraph.errors import EmbeddingError
from omnigraph.model.catalog import Property
from omnigraph.rows.checks import TableType
from omnigraph.writes.staleness import record


class RequiredVectors:
    """Fills the required `@embed` vectors that rows lack."""

    def __init__(self, config: EmbeddingConfig) -> None:
        self.config = config
        self._known: dict[tuple[int, int, str], Any] = {}

    def __call__(self, table: TableType, rows: pa.Table) -> pa.Table:
        if not requires_vectors([table]):
            return rows
        return fill_missing(table, rows, self._remembering(provider(table, self.config)), True)

    @property
    def details(self) -> dict[str, Any]:
        """What a commit says about the vectors that were made; nothing if none were."""
        if not self._known:
            return {}
        return record(self.config.model, str(self.config.provider), [])

    def _remembering(self, embed: Embed) -> Embed:
        def known(item: Property, texts: Sequence[str]) -> Vectors:
            dim = item.type.dim or 0
            new = [text for text in texts if (item.id, dim, text) not in self._known]
            if new:
                made = embed(item, new)
                self._known.update({(item.id, dim, t): v for t, v in zip(new, made, strict=True)})
            return np.stack([self._known[item.id, dim, text] for text in texts])

        return known


def requires_vectors(tables: Iterable[TableType]) -> bool:
    """Whether a type has vectors that are made from a text and may not be missing."""
    items = (item for table in tables for item in table.properties)
    return any(item.embed is not None and not item.type.nullable for item in items)


def required_vectors(tables: Iterable[TableType]) -> RequiredVectors | None:
    """What fills the vectors that these types require; None if none do, or nothing is configured
    that could."""
    if not requires_vectors(tables):
        return None
    config = configured()
    return None if config is None else RequiredVectors(config)


def configured() -> EmbeddingConfig | None:
    """The provider of the environment, None if there is none."""
    try:
        return config_from_environment()
    except EmbeddingError:  # no key
        return None
