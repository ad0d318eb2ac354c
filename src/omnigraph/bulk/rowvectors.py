"""Computes vectors of rows in the tasks that read them.

A vector property with `@embed("source")` is filled where it is null and its source text is not
(`fill_vectors`); rows that are in the graph already are given new vectors where `Renewal` says so.

Guarantees: vectors that come along are kept; equal texts are embedded once, in batches, by one
client for each process; a model that differs from the recorded one is refused.
Deliberately absent: choosing a provider, and finding out which vectors are stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding import EmbeddingClient, EmbeddingConfig
from omnigraph.model.catalog import ID_COLUMN, Property
from omnigraph.rows.checks import TableType
from omnigraph.rows.columns import combined, is_text

Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]
Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
# Texts in, one vector of that many numbers each out.
Embed: TypeAlias = Callable[[Property, Sequence[str]], Vectors]


@dataclass(frozen=True)
class Renewal:
    """Which rows of a type get new vectors: those without one, those named as stale by property,
    or all; `clean`: they lose theirs instead. `where` narrows rows down to some values."""

    properties: tuple[str, ...]
    everything: bool = False
    clean: bool = False
    stale: Mapping[str, frozenset[str]] = field(default_factory=dict)
    where: tuple[tuple[str, Any], ...] = ()

    def mask(self, table: TableType, item: Property, rows: pa.Table) -> Mask:
        """The rows that are meant, of rows with columns by name."""
        assert item.embed is not None
        empty = _missing(item, rows)
        chosen = np.ones(rows.num_rows, bool)
        if self.clean:
            chosen = ~empty
        else:
            if not self.everything:
                chosen = empty | _is_one_of(rows, self.stale.get(item.name, frozenset()))
            chosen &= _valid(rows.column(item.embed.source))
        for name, value in self.where:
            wanted = table.by_name[name].type.to_arrow()
            found = pc.equal(rows.column(name), pa.scalar(value, wanted))
            chosen &= _flags(pc.fill_null(found, False))
        return chosen


def _is_one_of(rows: pa.Table, ids: frozenset[str]) -> Mask:
    if not ids:
        return np.zeros(rows.num_rows, bool)
    return _flags(pc.is_in(rows.column(ID_COLUMN), value_set=pa.array(sorted(ids), pa.string())))


def renew_vectors(table: TableType, rows: pa.Table, renewal: Renewal, embed: Embed) -> pa.Table:
    """The rows that get or lose a vector, with what they have then."""
    masks = {name: renewal.mask(table, table.by_name[name], rows) for name in renewal.properties}
    any_ = np.logical_or.reduce([*masks.values()])
    chosen = rows.filter(pa.array(any_))
    for name, mask in masks.items():
        places = np.flatnonzero(mask[any_])
        item = table.by_name[name]
        if len(places) and renewal.clean:
            chosen = _clear(item, chosen, places)
        elif len(places):
            chosen = _embed_rows(item, chosen, places, embed)
    return chosen


def provider(table: TableType, config: EmbeddingConfig) -> Embed:
    """Vectors by a configured provider."""

    def embed(item: Property, texts: Sequence[str]) -> Vectors:
        assert item.embed is not None
        client = _client(config)
        client.require_model(item.embed.model, f"{table.name}.{item.name}")
        return client.embed_documents(texts, item.type.dim or 0)

    return embed


@lru_cache(maxsize=4)
def _client(config: EmbeddingConfig) -> EmbeddingClient:
    return EmbeddingClient(config)


def fill_vectors(
    table: TableType,
    rows: pa.Table,
    config: EmbeddingConfig,
    *,
    pretend: bool = False,
    required_only: bool = False,
) -> pa.Table:
    """Rows (columns by name) with the missing vectors. `pretend`: zeros, without asking anybody.
    `required_only`: optional vectors stay missing."""
    embed = _zeros if pretend else provider(table, config)
    return fill_missing(table, rows, embed, required_only)


def fill_missing(
    table: TableType, rows: pa.Table, embed: Embed, required_only: bool = False
) -> pa.Table:
    """The same, with vectors from anywhere."""
    for item in table.properties:
        wanted = item.embed is not None and not (required_only and item.type.nullable)
        if wanted and item.embed is not None and item.embed.source in rows.column_names:
            rows = _fill(item, rows, embed)
    return rows


def _zeros(item: Property, texts: Sequence[str]) -> Vectors:
    return np.zeros((len(texts), item.type.dim or 0), np.float32)


def _fill(item: Property, rows: pa.Table, embed: Embed) -> pa.Table:
    assert item.embed is not None
    texts = combined(rows.column(item.embed.source))
    if not is_text(texts.type):
        return rows  # of another type: the row checks say so
    places = np.flatnonzero(_missing(item, rows) & _valid(texts))
    return _embed_rows(item, rows, places, embed) if len(places) else rows


def _embed_rows(item: Property, rows: pa.Table, places: Any, embed: Embed) -> pa.Table:
    assert item.embed is not None
    texts = combined(rows.column(item.embed.source)).take(pa.array(places)).dictionary_encode()
    made = embed(item, texts.dictionary.to_pylist())
    return _put(item, rows, places, made[texts.indices.to_numpy(zero_copy_only=False)])


def _missing(item: Property, rows: pa.Table) -> Mask:
    if item.name not in rows.column_names:
        return np.ones(rows.num_rows, bool)
    return ~_valid(rows.column(item.name))


def _valid(column: pa.Array | pa.ChunkedArray) -> Mask:
    return _flags(pc.is_valid(column))


def _flags(column: pa.Array | pa.ChunkedArray) -> Mask:
    found: Mask = combined(column).to_numpy(zero_copy_only=False)
    return found


def _put(
    item: Property,
    rows: pa.Table,
    places: np.ndarray[tuple[int], np.dtype[np.int64]],
    made: Vectors,
) -> pa.Table:
    new = pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), made.shape[1])
    if item.name not in rows.column_names:
        order = np.full(rows.num_rows, -1, np.int64)
        order[places] = np.arange(len(places))
        column = new.take(pa.array(order, mask=order < 0))
        return rows.append_column(item.name, column)
    given = combined(rows.column(item.name))
    whole = pa.concat_arrays([given, new.cast(given.type)])
    order = np.arange(rows.num_rows)
    order[places] = rows.num_rows + np.arange(len(places))
    at = rows.column_names.index(item.name)
    return rows.set_column(at, item.name, whole.take(pa.array(order)))


def _clear(item: Property, rows: pa.Table, places: Any) -> pa.Table:
    given = combined(rows.column(item.name))
    order = np.arange(rows.num_rows)
    order[places] = -1
    at = rows.column_names.index(item.name)
    return rows.set_column(at, item.name, given.take(pa.array(order, mask=order < 0)))
