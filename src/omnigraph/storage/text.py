"""The rows whose text matches a query, with their relevance.

Text becomes tokens: words without case and accents, reduced to their stems, stop words left out
(see `analysis`). `search` and `bm25` match rows that hold any token of the query, `match_text`
those that hold all of them as a phrase, `fuzzy` those that hold a token within some edits of a
word of the query or of its stem. Relevance is BM25; larger is better.

Guarantees: which rows match does not depend on what an index covers; nulls never match; `fuzzy`
finds every row that `search` finds, and more with every edit that is allowed.
Deliberately absent: a promise about the size of a score. It depends on statistics that move with
the data and with index coverage; compare scores within one answer only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from lance.query import FullTextQuery, MatchQuery, PhraseQuery
from numpy.typing import ArrayLike, NDArray

from omnigraph.errors import InvalidArgumentError
from omnigraph.ir.expr import TextMode
from omnigraph.storage import rowsets
from omnigraph.storage.analysis import fuzzy_terms
from omnigraph.storage.filters import scanner
from omnigraph.storage.indexhealth import DAMAGE, without
from omnigraph.storage.rowsets import RowIds
from omnigraph.storage.scratch import ROW, TEXT, Scratch, ScratchIndexes
from omnigraph.storage.searchresult import (
    SCORE,
    Access,
    Hits,
    Path,
    Scope,
    TieBreak,
    best_first,
    needs_more,
    no_rows,
    scope,
)
from omnigraph.storage.table import ROW_ID, IndexInfo, Table
from omnigraph.storage.versionreads import version_read

DEFAULT_MAX_EDITS = 2
MAX_EDITS = 2  # beyond, Lance's automaton grows too large for long words

_LANCE_SCORE = "_score"
_TIE_EXTRA = 16
_MAX_EXPANSIONS = 100_000  # words of the vocabulary that one fuzzy token may stand for

_scratch = ScratchIndexes()

Scored = tuple[RowIds, NDArray[np.float32]]


def text_topk(
    table: Table,
    column: str,
    query: str,
    k: int | None = None,
    *,
    mode: TextMode = TextMode.SEARCH,
    max_edits: int = DEFAULT_MAX_EDITS,
    filter: pa.compute.Expression | None = None,
    rows: ArrayLike | None = None,
    tie_break: TieBreak | None = None,
) -> Hits:
    """The k most relevant rows that match, or all that match when k is None."""
    _check(table, column, mode, max_edits)
    within = scope(table, filter, rows)
    query = _asked_text(mode, query, max_edits)
    if within.is_empty or (k is not None and k <= 0) or not query:
        return Hits(no_rows(SCORE, tie_break is None), Access(Path.NONE))
    index, asked = _text_index(table, column), Asked(column, query, k, mode, max_edits)
    try:
        row_ids, scores = _found(within, asked, index)
    except DAMAGE:
        if index is None:
            raise
        with without(index.name, index.segments, table.version.path):
            index = None
            row_ids, scores = _found(within, asked, index)
    found = best_first(table, row_ids, scores, k, SCORE, tie_break)
    return Hits(found, _access(index, _missing(table, index)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for matching rows."""

    column: str
    query: str
    k: int | None
    mode: TextMode
    max_edits: int


def _found(within: Scope, asked: Asked, index: IndexInfo | None) -> Scored:
    """The rows that match, by the index and, as far as it does not reach, without it."""
    # Lance scans the rows that an index does not cover by the index's rules, except fuzzily.
    fuzzy = asked.mode is TextMode.FUZZY and _missing(within.table, index) > 0
    parts: list[Scored] = []
    if index is not None:
        parts.append(_by_index(within, asked, fuzzy))
    if index is None or fuzzy:
        parts.append(_by_scratch(within, asked, index))
    row_ids = np.concatenate([found for found, _ in parts])
    return row_ids, np.concatenate([values for _, values in parts])


def _missing(table: Table, index: IndexInfo | None) -> int:
    return table.rows if index is None else max(0, table.rows - index.rows)


def _check(table: Table, column: str, mode: TextMode, max_edits: int) -> None:
    if not pa.types.is_string(table.schema.field(column).type):
        raise InvalidArgumentError(f"The column {column!r} holds no text.")
    if mode is TextMode.FUZZY and not 0 <= max_edits <= MAX_EDITS:
        raise InvalidArgumentError(
            f"fuzzy takes from 0 to {MAX_EDITS} edits, not {max_edits}.",
            hint="Use `contains` or `match_text` to find words that differ more.",
        )


def _text_index(table: Table, column: str) -> IndexInfo | None:
    found = [i for i in table.indexes() if i.column == column and i.kind.upper() == "INVERTED"]
    return max(found, key=lambda index: index.rows, default=None)


def _access(index: IndexInfo | None, missing: int) -> Access:
    if index is None:
        return Access(Path.SCAN, scanned=missing)
    return Access(Path.MIXED if missing else Path.INDEX, index.name, missing)


def _by_index(within: Scope, asked: Asked, only_index: bool) -> Scored:
    options = {**within.options(), "fast_search": only_index}
    query = _full_text(asked, asked.column)
    return _ranked(within, within.table.dataset, ROW_ID, query, asked.k, options)


def _by_scratch(within: Scope, asked: Asked, index: IndexInfo | None) -> Scored:
    """Search the rows that the index, if there is one, does not cover."""
    table = within.table
    with version_read(table.dataset, "scan", table.version.path):
        fragments = uncovered_fragments(table.dataset, None if index is None else index.name)
        scratch = _scratch.get(table, asked.column, fragments)
        options = _within_scratch(within, scratch, fragments)
    if options is None:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.float32)
    query = _full_text(asked, TEXT)
    return _ranked(within, scratch.dataset, ROW, query, asked.k, options)


def _within_scratch(
    within: Scope, scratch: Scratch, fragments: Sequence[Any]
) -> dict[str, Any] | None:
    """The scope in terms of the scratch rows; None when it allows none of them."""
    allowed = within.allowed
    if within.filter is not None:
        found = scanner(
            within.table.dataset,
            columns=[],
            with_row_id=True,
            fragments=list(fragments),
            **within.options(),
        )
        allowed = found.to_table().column(ROW_ID).to_numpy()
    if len(scratch.row_ids) == 0:
        return None
    if allowed is None:
        return {}
    positions = scratch.positions(allowed)
    return {"row_addr_allowlist": rowsets.encode(positions)} if len(positions) else None


def uncovered_fragments(dataset: Any, index_name: str | None) -> list[Any]:
    """The fragments that no segment of the index holds."""
    covered: set[int] = set()
    for index in dataset.describe_indices():
        if index.name == index_name:
            covered.update(*(segment.fragment_ids for segment in index.segments))
    return [f for f in dataset.get_fragments() if f.fragment_id not in covered]


def _ranked(
    within: Scope,
    dataset: Any,
    row: str,
    asked: FullTextQuery,
    k: int | None,
    options: dict[str, Any],
) -> Scored:
    """Row ids and scores, best first; ties at the k-th place are complete."""
    table, limit = within.table, None if k is None else k + _TIE_EXTRA
    while True:
        with version_read(table.dataset, "scan", table.version.path):
            found = scanner(
                dataset,
                columns=[row, _LANCE_SCORE],
                full_text_query=asked,
                limit=limit,
                disable_scoring_autoprojection=True,
                **options,
            ).to_table()
        row_ids, scores = found.column(row).to_numpy(), found.column(_LANCE_SCORE).to_numpy()
        if dataset is table.dataset:
            there = within.existing(row_ids)
            row_ids, scores = row_ids[there], scores[there]
        order = np.argsort(-scores, kind="stable")
        if not needs_more(scores[order], k, limit, found.num_rows):
            return row_ids[order], scores[order]
        assert limit is not None
        limit *= 8


def _asked_text(mode: TextMode, query: str, max_edits: int) -> str:
    """What Lance is asked for. It analyses a query as it analyses rows, but not a fuzzy one, of
    which it compares every word with the terms of the index just as it is."""
    return " ".join(fuzzy_terms(query)) if mode is TextMode.FUZZY and max_edits else query


def _full_text(asked: Asked, column: str) -> FullTextQuery:
    if asked.mode is TextMode.MATCH_TEXT:
        return PhraseQuery(asked.query, column)
    edits = asked.max_edits if asked.mode is TextMode.FUZZY else 0
    return MatchQuery(asked.query, column, fuzziness=edits, max_expansions=_MAX_EXPANSIONS)
