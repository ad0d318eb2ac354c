"""Loading in this process: the same sources and the same outcome, without Spark.

Guarantees: one commit; the parsers and checks of `ingest`, and its bound on size.
Deliberately absent: setting refused records aside, and tables that only Spark knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph import progress
from omnigraph.bulk.partreader import read_split, text_blocks
from omnigraph.bulk.sourcefiles import SourceFiles
from omnigraph.bulk.splits import Split, cut
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.resolve import Target, resolve
from omnigraph.intake.inputforms import MOST_BYTES, Columns, Lines, Part, refuse_more, take_in
from omnigraph.intake.loadsources import assign_frame, with_kinds
from omnigraph.intake.sources import Source, SourceFormat, assign, name_columns
from omnigraph.intake.typedrows import EmbedRows
from omnigraph.model.catalog import Catalog
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.ingest import IngestRequest, Mode
from omnigraph.rows.findings import Findings
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Conditions


def load_here(
    context: Context,
    files: SourceFiles,
    mode: str,
    types: Sequence[str],
    branch: str,
    conditions: Conditions,
    embed: EmbedRows | None = None,
    edge_key: tuple[str, ...] = (),
) -> tuple[WriteResult, int]:
    """The outcome, and how many records were read. `embed` fills in vectors; `edge_key` gives
    edges their ids."""
    catalog = resolve(context.root, Target(branch)).catalog
    parts = tuple(
        part
        for number, source in files
        for part in _parts(files, number, with_kinds(source, catalog), catalog)
    )
    named = [*types, *(part.type_name for part in parts if isinstance(part, Columns))]
    replaced = tuple(dict.fromkeys(named))
    request = IngestRequest(
        lambda: parts, Mode(mode), conditions, replaced, embed=embed, edge_key=edge_key
    )
    delta = request.shaped(catalog)
    records = sum(change.rows.num_rows for change in delta.values())
    progress.report("write", rows=records)
    result = write_alone(context.root, branch, request)
    return replace(result, notices=request.notices), records


def _parts(listed: SourceFiles, number: int, source: Source, catalog: Catalog) -> Iterator[Part]:
    if source.frame is not None:
        yield from _frame_parts(source, catalog)
        return
    files = listed.of(number)
    refuse_more(sum(file.size for file in files), MOST_BYTES)
    for split in cut([(file, assign(file.address, source, catalog)) for file in files], 1):
        yield from _split_parts(split, catalog)


def _split_parts(split: Split, catalog: Catalog) -> Iterator[Part]:
    if split.how.format is SourceFormat.JSONL:
        # A file that was cut is put together again, so that its lines count from its beginning.
        if split.start == 0:
            whole = Split(split.place, split.file, split.how)
            yield Lines(b"".join(text_blocks(whole)), split.file)
        return
    findings = Findings()
    tables = []
    for block, _ in read_split(catalog, split):
        findings.merge(block.findings)
        tables += [parsed.rows for parsed in block.parsed]
    findings.raise_if_any()
    table = catalog.table(split.how.table_id or 0)
    assert table is not None
    yield Columns(pa.concat_tables(tables) if tables else pa.table({}), table.name)


def _frame_parts(source: Source, catalog: Catalog) -> Iterator[Part]:
    if isinstance(source.frame, str):
        raise InvalidArgumentError(
            f"The table exists only in Spark: {source.frame}.", hint="Use engine='spark'."
        )
    how = assign_frame(source, catalog)
    table = catalog.table(how.table_id or 0)
    assert table is not None
    for part in take_in(source.frame, table.name):
        if isinstance(part, Columns):
            yield Columns(name_columns(part.rows, how.columns), part.type_name)
        else:
            yield part
