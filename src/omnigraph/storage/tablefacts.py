"""Statistics and consistency checks of one table version.

Guarantees: reads only; a problem is a sentence, not an exception, so that one broken table does not
hide another.
Deliberately absent: what the table should hold (`operations.verify`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.query import MatchQuery

from omnigraph.model.catalog import ID_COLUMN, EdgeType, NodeType
from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import damaged_indexes
from omnigraph.storage.indexplan import IndexCoverage, coverage
from omnigraph.storage.table import Table, open_dataset
from omnigraph.storage.tableschema import physical_schema

# So many values of a column are looked up with its index and without.
_SAMPLE = 64
# So many texts are searched for, each by a few of its words.
_TEXT_SAMPLE = 16
_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
# Shorter and longer words, and these, may be left out of an index.
_LEAST_LETTERS, _MOST_LETTERS = 5, 30
_COMMON = re.compile(
    r"about|above|after|again|against|because|before|being|below|between|cannot|could|doing|during"
    r"|further|having|(her|him|it|my|your)self|other|(our|them|your)selves|should|theirs?|there"
    r"|these|those|through|under|until|where|which|while|would",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TableFacts:
    """How a version lies on disk. `bytes` are those of the files that it names."""

    files: int
    rows: int
    deleted_rows: int
    bytes: int
    small_files: int
    indexes: tuple[IndexCoverage, ...]


def facts_of(table: Table, small_rows: int) -> TableFacts:
    """How a version lies on disk; files of fewer than `small_rows` rows count as small."""
    with translated("read", table.version.path):
        fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    rows = [int(fragment.num_rows) for fragment in fragments]
    physical = sum(int(fragment.physical_rows) for fragment in fragments)
    return TableFacts(
        len(fragments),
        sum(rows),
        physical - sum(rows),
        sum(int(file.file_size_bytes or 0) for f in fragments for file in f.files),
        sum(1 for count in rows if count < small_rows),
        coverage(table),
    )


def shape_problems(table_type: NodeType | EdgeType, table: Table) -> Iterator[str]:
    """Where the stored columns are not those of the type, or the row count is wrong."""
    stored = table.schema
    for field in physical_schema(table_type):
        place = stored.get_field_index(field.name)
        if place < 0:
            yield f"the column {field.name!r} is missing"
        elif stored.field(place).type != field.type:
            yield f"the column {field.name!r} is {stored.field(place).type}, not {field.type}"
    with translated("scan", table.version.path):
        counted = int(table.dataset.count_rows())
    if counted != table.rows:
        yield f"the manifest says {table.rows} rows, and there are {counted}"
    if not table.dataset.has_stable_row_ids:
        yield "it has no stable row ids"


def content_problems(table: Table) -> Iterator[str]:
    """What Lance itself finds wrong, and files that cannot be read to their end."""
    try:
        with translated("read", table.version.path):
            table.dataset.validate()
            read = sum(batch.num_rows for batch in table.dataset.to_batches())
    except Exception as error:  # noqa: BLE001 - whatever a damaged file raises is the finding
        yield f"it cannot be read: {error}"
        return
    if read != table.rows:
        yield f"reading it gives {read} rows instead of {table.rows}"


def unreadable_indexes(location: Location, version: TableVersion) -> dict[str, str]:
    """The indexes whose files are lost or damaged, and why; each is read to its end."""
    return damaged_indexes(open_dataset(location, version, cached=False), version.path)


def index_problems(table: Table, unreadable: Mapping[str, str]) -> Iterator[str]:
    """Indexes that cannot be read, that hold more than the table does, or that do not find what
    is there. Vectors are only counted: an index of them may miss some and be right."""
    for name, reason in unreadable.items():
        yield f"the index {name!r} cannot be read: {reason}"
    for index in coverage(table):
        if index.name in unreadable:
            continue
        if index.indexed_rows > table.rows:
            yield f"the index {index.name!r} holds {index.indexed_rows} rows of {table.rows}"
        if index.type.upper() == "BTREE" and table.rows:
            yield from _disagreement(table, index)
        if index.type.upper() == "INVERTED" and table.rows:
            yield from _deafness(table, index)


def _disagreement(table: Table, index: IndexCoverage) -> Iterator[str]:
    values = _sample(table, index.column)
    if not len(values):
        return
    chosen = _one_of(index.column, values)
    with translated("scan", table.version.path):
        found = _ids(table.dataset, chosen, use_index=True)
        scanned = _ids(table.dataset, chosen, use_index=False)
    if found != scanned:
        missing, extra = len(scanned - found), len(found - scanned)
        yield f"the index {index.name!r} misses {missing} rows and finds {extra} too many"


def _one_of(column: str, values: pa.Array) -> Any:
    """A filter for some values. Lance takes filters on unsigned columns as text only."""
    if not pa.types.is_unsigned_integer(values.type):
        return pc.field(column).isin(values)
    return f"`{column}` IN ({', '.join(str(value) for value in values.to_pylist())})"


def _deafness(table: Table, index: IndexCoverage) -> Iterator[str]:
    """Texts that a search for words of their own does not find."""
    found = _taken(table, [ID_COLUMN, index.column], _TEXT_SAMPLE).to_pylist()
    for row in found:
        words = _words(row[index.column] or "")
        asked = (MatchQuery(word, index.column) for word in words)
        if words and not any(_hears(table.dataset, query, row[ID_COLUMN]) for query in asked):
            yield f"the index {index.name!r} does not find {row[ID_COLUMN]!r} by its own words"
            return


def _words(text: str) -> list[str]:
    """Some words that an index certainly holds, as they are."""
    usable = {
        word
        for word in _WORD.findall(text)
        if word.isascii()
        and _LEAST_LETTERS <= len(word) <= _MOST_LETTERS
        and not _COMMON.fullmatch(word)
    }
    return sorted(usable, key=lambda word: (-len(word), word))[:_WORDS]


def _hears(dataset: Any, query: MatchQuery, id_: str) -> bool:
    found = scanner(
        dataset,
        columns=[ID_COLUMN, "_score"],
        full_text_query=query,
        filter=pc.field(ID_COLUMN) == id_,
        prefilter=True,
        use_scalar_index=False,
    )
    return bool(found.to_table().num_rows)


def _taken(table: Table, columns: list[str], most: int) -> pa.Table:
    places = np.unique(np.linspace(0, table.rows - 1, min(most, table.rows)).astype(np.int64))
    with translated("read", table.version.path):
        return table.dataset.take(places.tolist(), columns=columns)


def _sample(table: Table, column: str) -> pa.Array:
    return pc.unique(pc.drop_null(_taken(table, [column], _SAMPLE).column(0)))


def _ids(dataset: Any, chosen: Any, *, use_index: bool) -> set[str]:
    found = scanner(dataset, columns=[ID_COLUMN], filter=chosen, use_scalar_index=use_index)
    return set(found.to_table().column(ID_COLUMN).to_pylist())
