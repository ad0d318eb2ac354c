"""Vectors for the records of a JSONL file, written to another: before they are in any graph.

    embed_file(catalog, "docs.jsonl", "filled.jsonl", EmbedOptions())

The schema says which properties are vectors, and of which texts; options are those of `embed`.

Guarantees: the whole file is looked through before the first text is sent to anybody, and every
record that cannot be used is reported by its line; a record that gets no new vector comes out byte
for byte; memory is that of one batch of records; the output is in place, whole, at the end, or it
is not there at all.
Deliberately absent: the rules of the schema, which `load` checks; and vectors that are older than
their texts, which only a graph knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from omnigraph import progress
from omnigraph.bulk.partreader import text_blocks
from omnigraph.bulk.splits import Split
from omnigraph.embedding import EmbeddingClient, EmbeddingConfig
from omnigraph.errors import AlreadyExistsError, InvalidArgumentError, Violation
from omnigraph.intake.records import find_table
from omnigraph.intake.sources import Assigned, SourceFormat, classify
from omnigraph.model.catalog import Catalog, Property
from omnigraph.operations.embed import (
    EmbedOptions,
    chosen_config,
    embedded_properties,
    meant_tables,
    narrowed,
)
from omnigraph.rows.checks import TableType
from omnigraph.rows.findings import Findings, shown
from omnigraph.storage.inputs import list_inputs, open_output, output_address, output_exists

JSON, ENVELOPE, VALUE = "json", "envelope", "type"
# So many records are held, and their texts sent, at a time.
_AT_ONCE = 1024


@dataclass(frozen=True)
class EmbeddedFile:
    """What was done. `rows` counts, by type, the records that got or lost a vector."""

    input: str
    output: str
    records: int
    rows: dict[str, int]
    model: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.input,
            "output": self.output,
            "records": self.records,
            "rows": self.rows,
            "model": self.model,
        }


def embed_file(
    catalog: Catalog,
    input: str,
    output: str,
    options: EmbedOptions,
    *,
    overwrite: bool = False,
) -> EmbeddedFile:
    """Compute the missing vectors of records; or recompute all; or remove them."""
    source = _source(input)
    if not overwrite and output_exists(output_address(output)):
        raise AlreadyExistsError(
            f"There is a file {output} already.", hint="Name another, or say --overwrite."
        )
    meant_tables(catalog, options)  # reports that there is nothing to embed before a missing key
    work = _Work(catalog, source, options, chosen_config(options))
    due = work.look()
    with open_output(output_address(output)) as out:
        for piece in work.pieces(due):
            out.write(piece)
    model = work.config.model if work.config else None
    return EmbeddedFile(input, output, due.records, due.rows, model)


def count_due_in(catalog: Catalog, input: str, options: EmbedOptions) -> dict[str, int]:
    """How many records of each type `embed_file` would give a vector to, or take one from."""
    return _Work(catalog, _source(input), options, None).look().rows


def _source(path: str) -> Split:
    files = list_inputs([path])
    if len(files) != 1 or os.path.isdir(path):
        raise InvalidArgumentError(f"{path} is not one file.", hint="Name a single JSONL file.")
    form, compression = classify(path)
    if form not in (None, SourceFormat.JSONL):
        raise InvalidArgumentError(f"{path} is no JSONL.", hint="Vectors are put into JSONL files.")
    how = Assigned(SourceFormat.JSONL, compression)
    return Split(0, files[0].address, how, size=files[0].size)


@dataclass
class _Due:
    """What a look through the file found."""

    records: int = 0
    rows: dict[str, int] = field(default_factory=dict)


@dataclass
class _Line:
    """A line and, if it is a record of a type with vectors, what is to become of it."""

    text: bytes
    envelope: dict[str, Any] | None = None
    table: TableType | None = None
    items: tuple[Property, ...] = ()  # properties that get or lose a vector

    @property
    def data(self) -> dict[str, Any]:
        assert self.envelope is not None
        found: dict[str, Any] = self.envelope.setdefault("data", {})
        return found


class _Work:
    def __init__(
        self,
        catalog: Catalog,
        source: Split,
        options: EmbedOptions,
        config: EmbeddingConfig | None,
    ) -> None:
        self._catalog = catalog
        self._source = source
        self._options = options
        self.config = config
        self._meant = {table.id for table in meant_tables(catalog, options)}
        for table in catalog.tables():
            narrowed(table, options.select)  # says which of them select nothing

    def look(self) -> _Due:
        """Count what is due; raises if lines cannot be used, with all of them."""
        due, findings = _Due(), Findings()
        for number, text in self._lines("look"):
            found = self._read(text)
            if isinstance(found, Violation):
                file = self._source.file
                findings.add(replace(found, file=file, line=number, record=due.records))
            elif found.items and found.table is not None:
                due.rows[found.table.name] = due.rows.get(found.table.name, 0) + 1
            due.records += bool(text.strip())
        findings.raise_if_any()
        return due

    def pieces(self, due: _Due) -> Iterator[bytes]:
        """The file as it shall be, a batch at a time."""
        total, done = sum(due.rows.values()), 0
        stage = "clean" if self._options.clean else "embed"
        with nullcontext() if self.config is None else EmbeddingClient(self.config) as client:
            for lines in self._batches():
                progress.report(stage, done, total, rows=done)
                done += _renew(client, lines)
                yield b"".join(map(_written, lines))
        progress.report(stage, done, total, rows=done)

    def _batches(self) -> Iterator[list[_Line]]:
        held: list[_Line] = []
        for _, text in self._lines():
            found = self._read(text)
            if isinstance(found, Violation):
                raise InvalidArgumentError(f"{self._source.file} changed while it was read.")
            held.append(found)
            if len(held) == _AT_ONCE:
                yield held
                held = []
        yield held

    def _lines(self, stage: str | None = None) -> Iterator[tuple[int, bytes]]:
        number, read = 0, 0
        for block in text_blocks(self._source):
            for text in _cut(block):
                number += 1
                yield number, text
            read += len(block)
            if stage is not None:
                progress.report(stage, read, max(read, self._source.size), bytes=read)

    def _read(self, text: bytes) -> _Line | Violation:
        if not text.strip():
            return _Line(text)
        try:
            value = orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            return Violation(JSON, f"not JSON: {error.msg}, at character {error.pos + 1}")
        if not isinstance(value, dict) or ("type" in value) == ("edge" in value):
            return Violation(ENVELOPE, "a record is an object with either `type` or `edge`")
        table = find_table(self._catalog, value)
        if isinstance(table, Violation):
            return table
        data = value.get("data", {})
        if not isinstance(data, dict):
            return Violation(ENVELOPE, "`data` must be an object", table.name, "data", shown(data))
        if table.id not in self._meant or not self._selected(table, data):
            return _Line(text)
        items = []
        for item in embedded_properties(table):
            wrong = _wrong(table, item, data)
            if wrong is not None:
                return wrong
            if self._is_due(item, data):
                items.append(item)
        return _Line(text, value, table, tuple(items))

    def _selected(self, table: TableType, data: dict[str, Any]) -> bool:
        for text in self._options.select:
            type_name, _, rest = text.partition(":")
            name, _, wanted = rest.partition("=")
            if type_name == table.name and _as_text(data.get(name)) != wanted:
                return False
        return True

    def _is_due(self, item: Property, data: dict[str, Any]) -> bool:
        assert item.embed is not None
        if self._options.clean:
            return bool(data.get(item.name))
        missing = not data.get(item.name)
        return data.get(item.embed.source) is not None and (self._options.everything or missing)


def _renew(client: EmbeddingClient | None, lines: list[_Line]) -> int:
    """Put vectors into the records that are due, or take theirs away; returns how many."""
    due = [line for line in lines if line.items]
    by_item: dict[tuple[str, str], list[_Line]] = {}
    for line in due:
        for item in line.items:
            assert line.table is not None
            by_item.setdefault((line.table.name, item.name), []).append(line)
    for (_, name), some in by_item.items():
        if client is None:
            for line in some:
                line.data[name] = None
        else:
            _embed(client, name, some)
    return len(due)


def _embed(client: EmbeddingClient, name: str, lines: list[_Line]) -> None:
    """Lines of one type. Equal texts are sent once."""
    table = lines[0].table
    assert table is not None
    item = table.by_name[name]
    assert item.embed is not None
    client.require_model(item.embed.model, f"{table.name}.{name}")
    texts = [line.data[item.embed.source] for line in lines]
    distinct = list(dict.fromkeys(texts))
    made = client.embed_documents(distinct, item.type.dim or 0)
    vectors = dict(zip(distinct, made, strict=True))
    for line, text in zip(lines, texts, strict=True):
        line.data[name] = vectors[text]


def _wrong(table: TableType, item: Property, data: dict[str, Any]) -> Violation | None:
    """A value that is not a text, or a vector of another length, which a later load would
    reject."""
    assert item.embed is not None
    text, vector = data.get(item.embed.source), data.get(item.name)
    if text is not None and not isinstance(text, str):
        return Violation(VALUE, "a text is wanted", table.name, item.embed.source, shown(text))
    if vector and (not isinstance(vector, list) or len(vector) != item.type.dim):
        wanted = f"a vector of {item.type.dim} numbers is wanted"
        return Violation(VALUE, wanted, table.name, item.name, shown(vector))
    return None


def _written(line: _Line) -> bytes:
    if not line.items:
        return line.text
    return orjson.dumps(line.envelope, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _cut(block: bytes) -> list[bytes]:
    """Lines end with a line feed; a carriage return alone, or within a text, ends none."""
    parts = block.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
