"""Sources: what a load reads, whatever its form, as one kind of value.

A source is a list of addresses, or a frame that is already there. JSONL envelopes name their types
line by line. The other forms hold rows of one type each; which one is said by a mapping, or by the
name of the file or of its folder.

    # mapping.yaml
    - file: people-*.csv          # a pattern for the file's name, or for the end of its address
      type: Person                # or `edge: Knows`
      columns:                    # column of the file → property; others keep their names
        full name: name
        remarks: null             # a column that is left out
      delimiter: ";"              # CSV only

Guarantees: pure values; what cannot be assigned to a type is refused before anything is read.
Deliberately absent: files. Listing and opening them is storage's.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from omnigraph.arguments import shown
from omnigraph.errors import InvalidArgumentError
from omnigraph.model.catalog import Catalog
from omnigraph.rows.checks import TableType


class SourceFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    LANCE = "lance"


ENDINGS: Mapping[str, SourceFormat] = {
    ".jsonl": SourceFormat.JSONL,
    ".ndjson": SourceFormat.JSONL,
    ".json": SourceFormat.JSONL,
    ".csv": SourceFormat.CSV,
    ".tsv": SourceFormat.CSV,
    ".parquet": SourceFormat.PARQUET,
    ".arrow": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
    ".lance": SourceFormat.LANCE,
}
_COMPRESSIONS: Mapping[str, str] = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".lz4": "lz4",
}


# Column of the source → property; None leaves it out.
Columns = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of a mapping."""

    pattern: str
    table: str
    is_edge: bool
    columns: Columns = ()
    delimiter: str | None = None


@dataclass(frozen=True)
class Source:
    """What to load.

    `paths` are addresses, patterns or folders. `frame` is a table in memory, a Spark DataFrame or
    the name of a Spark table; it needs a rule of its own. `format` None: determined by the file
    extension.
    """

    paths: tuple[str, ...] = ()
    frame: Any = None
    format: SourceFormat | None = None
    rules: tuple[Rule, ...] = ()
    label: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assigned:
    """How one file is to be read. `table_id` None: its lines say it themselves."""

    format: SourceFormat
    compression: str | None = None
    table_id: int | None = None
    columns: Columns = ()
    delimiter: str = ","


def classify(address: str) -> tuple[SourceFormat | None, str | None]:
    """The form and the compression that a name's endings tell."""
    stem, ending = posixpath.splitext(address.rstrip("/"))
    compression = _COMPRESSIONS.get(ending.lower())
    if compression is not None:
        ending = posixpath.splitext(stem)[1]
    return ENDINGS.get(ending.lower()), compression


def assign(address: str, source: Source, catalog: Catalog) -> Assigned:
    """How to read one file of a source."""
    found, compression = classify(address)
    format_ = source.format or found
    if format_ is None:
        raise InvalidArgumentError(
            f"The form of {address} cannot be determined from its name.",
            hint=f"Give a format: {', '.join(SourceFormat)}.",
            file=address,
        )
    if format_ is SourceFormat.JSONL:
        return Assigned(format_, compression)
    if compression is not None and format_ is not SourceFormat.CSV:
        raise InvalidArgumentError(
            f"{address} is compressed as a whole, which {format_} files cannot be.",
            hint="Decompress it; this format compresses its columns.",
            file=address,
        )
    rule = _rule_for(address, source.rules)
    table = find_type(catalog, rule) if rule else _by_name(address, catalog)
    tabs = address.lower().endswith((".tsv", ".tsv.gz", ".tsv.zst", ".tsv.bz2"))
    delimiter = (rule.delimiter if rule else None) or ("\t" if tabs else ",")
    return Assigned(format_, compression, table.id, rule.columns if rule else (), delimiter)


def name_columns(rows: pa.Table, columns: Columns) -> pa.Table:
    """The rows under the names of properties, without the columns that are left out."""
    named = dict(columns)
    kept = [name for name in rows.column_names if named.get(name, name) is not None]
    if len(kept) < rows.num_columns:
        rows = rows.select(kept)
    return rows.rename_columns([named.get(name, name) for name in kept])


def _rule_for(address: str, rules: Sequence[Rule]) -> Rule | None:
    name = posixpath.basename(address.rstrip("/"))
    for rule in rules:
        if fnmatchcase(name, rule.pattern) or fnmatchcase(address, f"*{rule.pattern}"):
            return rule
    return None


def find_type(catalog: Catalog, rule: Rule) -> TableType:
    table = catalog.edge(rule.table) if rule.is_edge else catalog.node(rule.table)
    if table is None:
        what = "edge" if rule.is_edge else "node"
        raise InvalidArgumentError(
            f"The mapping names the {what} type {rule.table!r}, which the schema does not have."
        )
    return table


def _by_name(address: str, catalog: Catalog) -> TableType:
    """`Person.csv`, `person-0.parquet` and `Person/part-0.parquet` all hold persons."""
    parts = address.rstrip("/").replace("\\", "/").split("/")
    stem = parts[-1].split(".")[0]
    for name in (stem, stem.rstrip("0123456789").rstrip("-_."), *reversed(parts[-3:-1])):
        table = _type_named(name, catalog)
        if table is not None:
            return table
    raise InvalidArgumentError(
        f"The type of the rows in {address} is not known.",
        hint="Name the file or its folder after a type, or give a mapping.",
        file=address,
    )


def _type_named(name: str, catalog: Catalog) -> TableType | None:
    wanted = name.lower()
    found = [table for table in catalog.tables() if table.name.lower() == wanted]
    exact = [table for table in found if table.name == name]
    chosen = exact or found
    return chosen[0] if len(chosen) == 1 else None


def parse_mapping(value: Any) -> tuple[Rule, ...]:
    """The rules of a mapping, as YAML or JSON holds it."""
    items = value if isinstance(value, list) else [value]
    return tuple(_parse_rule(item) for item in items)


def _parse_rule(item: Any) -> Rule:
    if not isinstance(item, dict):
        raise _bad("a rule is an object", item)
    known = {"file", "type", "edge", "columns", "delimiter"}
    unknown = [name for name in item if name not in known]
    if unknown:
        raise _bad(f"unknown entry {unknown[0]!r}; a rule has {', '.join(sorted(known))}", item)
    if ("type" in item) == ("edge" in item):
        raise _bad("a rule has either `type` or `edge`", item)
    columns = item.get("columns") or {}
    if not isinstance(columns, dict) or not all(_is_name(v) for v in columns.values()):
        raise _bad("`columns` maps columns of the file to properties", item)
    key = "type" if "type" in item else "edge"
    named = {name: item[name] for name in ("file", key, "delimiter") if item.get(name) is not None}
    if not all(isinstance(text, str) for text in named.values()) or key not in named:
        raise _bad(f"`file`, `{key}` and `delimiter` are texts", item)
    if not _is_delimiter(named.get("delimiter", ",")):
        raise _bad("`delimiter` is one ASCII character, and neither a quote nor a line end", item)
    pairs = tuple((str(column), prop) for column, prop in columns.items())
    return Rule(named.get("file", "*"), named[key], key == "edge", pairs, named.get("delimiter"))


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in '"\r\n\0'


def _is_name(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _bad(reason: str, item: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"The mapping cannot be read: {reason}, not {shown(item)}.")
