"""Computes the vectors of `@embed` properties of existing rows.

    embed(context, EmbedOptions(types=("Doc",)))              missing and stale ones
    embed(context, EmbedOptions(everything=True))             all of them
    embed(context, EmbedOptions(clean=True))                  remove them

Guarantees: one commit, which names model and properties, or none when there is nothing to do; a
vector whose text has not changed is kept unless all are requested; vectors of two models are never
mixed in a property unless requested; if a type changes in the meantime its rows are selected again,
and embedded texts are not sent again.
Deliberately absent: rows on their way in (`load` with `embed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import progress
from omnigraph.bulk.rowvectors import Renewal, Vectors, renew_vectors
from omnigraph.embedding import EmbeddingClient, EmbeddingConfig, config_from_environment
from omnigraph.engines.embedded.mutation import affected_rows
from omnigraph.engines.embedded.view import View
from omnigraph.engines.spark.jobevents import ProgressEvent
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.errors import EmbeddingError, InvalidArgumentError
from omnigraph.history.refs import MAIN
from omnigraph.history.resolve import Target, resolve
from omnigraph.intake.typedrows import find_type
from omnigraph.model.catalog import ID_COLUMN, Catalog, Property
from omnigraph.model.commit import CommitKind
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CountEmbed, Embed
from omnigraph.rows.checks import TableType, system_columns
from omnigraph.rows.deltas import TableDelta
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Conditions, Evaluated
from omnigraph.writes.staleness import record, standings

if TYPE_CHECKING:
    from omnigraph.operations.load import LoadResult

EMBEDDED, SPARK = "embedded", "spark"
# Number of texts between progress reports.
_AT_ONCE = 1024
# Above this number, rows are scanned instead of looked up.
_MANY = 10_000


@dataclass(frozen=True)
class EmbedOptions:
    """`types` empty: all that have such properties. `select` are `Type:property=value`."""

    types: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    everything: bool = False
    clean: bool = False
    branch: str = MAIN
    message: str = ""
    engine: str = EMBEDDED
    spark: SparkSettings | None = None
    progress: Callable[[ProgressEvent], None] | None = None


@dataclass(frozen=True)
class EmbedResult(WriteResult):
    """The result of a run. `rows` counts, by type, the rows whose vectors changed."""

    model: str | None = None
    rows: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**WriteResult.to_json(self), "model": self.model, "rows": dict(self.rows)}


def embed(context: Context, request: Embed) -> EmbedResult:
    """Update vectors, in one commit."""
    options = request.options
    catalog = resolve(context.root, Target(options.branch)).catalog
    meant_tables(catalog, options)  # reports that there is nothing to embed before a missing key
    config = chosen_config(options)
    if options.engine == SPARK:
        from omnigraph.operations.embed_on_spark import embed_on_spark

        return _told(embed_on_spark(context, options, config), config)
    if options.engine != EMBEDDED:
        raise InvalidArgumentError(
            f"There is no engine {options.engine!r}.", hint=f"Use {SPARK} or {EMBEDDED}."
        )
    write = EmbedRequest(context, options, config)
    return _told(write_alone(context.root, options.branch, write), config)


def count_due(context: Context, request: CountEmbed) -> dict[str, int]:
    """The number of rows of each type whose vectors `embed` would change."""
    options = request.options
    snapshot = resolve(context.root, Target(options.branch))
    view = View(context.root, snapshot)
    found = {}
    for table, renewal in renewals(context.root, snapshot, options, chosen_config(options)):
        rows = _looked_at(view, table, renewal)
        masks = [renewal.mask(table, table.by_name[name], rows) for name in renewal.properties]
        found[table.name] = int(np.logical_or.reduce(masks).sum())
    return found


def chosen_config(options: EmbedOptions) -> EmbeddingConfig | None:
    """The embedding config; None for `clean`, which calls no provider."""
    if options.everything and options.clean:
        raise InvalidArgumentError("Vectors are recomputed or removed, not both.")
    return None if options.clean else config_from_environment()


def _told(done: WriteResult | LoadResult, config: EmbeddingConfig | None) -> EmbedResult:
    rows = {name: affected.total for name, affected in done.affected.items()}
    model = config.model if config else None
    return EmbedResult(done.commit, done.affected, done.repeated, model, rows)


# What is due.


def renewals(
    root: GraphRoot, snapshot: Snapshot, options: EmbedOptions, config: EmbeddingConfig | None
) -> list[tuple[TableType, Renewal]]:
    """The selected types with their work. Raises if the model does not match."""
    found = []
    for table in meant_tables(snapshot.catalog, options):
        items = embedded_properties(table)
        where = narrowed(table, options.select)
        if options.clean:
            _refuse_required(table, items)
        stale = {} if config is None else _stale(root, snapshot, table, items, options, config)
        names = tuple(item.name for item in items)
        found.append((table, Renewal(names, options.everything, options.clean, stale, where)))
    return found


def meant_tables(catalog: Catalog, options: EmbedOptions) -> list[TableType]:
    names = [*options.types, *(text.partition(":")[0] for text in options.select)]
    if names:
        tables = [find_type(catalog, name) for name in dict.fromkeys(names)]
        for table in tables:
            if not embedded_properties(table):
                raise InvalidArgumentError(
                    f"{table.name} has no property with @embed.",
                    hint='Declare the source of a vector in the schema: @embed("text").',
                )
        return tables
    tables = [table for table in catalog.tables() if embedded_properties(table)]
    if not tables:
        raise InvalidArgumentError(
            "No type has a property with @embed.",
            hint='Declare the source of a vector in the schema: @embed("text").',
        )
    return tables


def embedded_properties(table: TableType) -> list[Property]:
    return [item for item in table.properties if item.embed is not None]


def _refuse_required(table: TableType, items: Sequence[Property]) -> None:
    for item in items:
        if not item.type.nullable:
            raise InvalidArgumentError(
                f"{table.name}.{item.name} must have a value, so its vectors cannot be removed."
            )


def narrowed(table: TableType, select: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    found = []
    for text in select:
        type_name, _, rest = text.partition(":")
        name, equals, value = rest.partition("=")
        if not equals or (table.get(name) is None and type_name == table.name):
            raise InvalidArgumentError(
                f"{text!r} selects nothing.", hint="Write it as Type:property=value."
            )
        if type_name == table.name:
            found.append((name, _value(table.by_name[name], value)))
    return tuple(found)


def _value(item: Property, text: str) -> Any:
    try:
        return pa.scalar(text).cast(item.type.to_arrow()).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgumentError(f"{text!r} is no value of {item.name}.") from error


def _stale(
    root: GraphRoot,
    snapshot: Snapshot,
    table: TableType,
    items: Sequence[Property],
    options: EmbedOptions,
    config: EmbeddingConfig,
) -> dict[str, frozenset[str]]:
    """Ids of stale vectors; also checks the model."""
    client = EmbeddingClient(config)
    for item in items:
        assert item.embed is not None
        client.require_model(item.embed.model, f"{table.name}.{item.name}")
    if options.everything:
        return {}
    found = standings(root, snapshot, table)
    for name, standing in found.items():
        if standing.model not in (None, config.model):
            raise EmbeddingError(
                f"The vectors of {table.name}.{name} were made by the model {standing.model!r}, "
                f"and new ones would be made by {config.model!r}: they cannot be compared.",
                hint="Recompute all of them (--reembed-all), or set OMNIGRAPH_EMBED_MODEL.",
                property=f"{table.name}.{name}",
                recorded=standing.model,
                model=config.model,
            )
    return {name: frozenset(standing.stale) for name, standing in found.items()}


def details(
    tables: Sequence[TableType], config: EmbeddingConfig | None, options: EmbedOptions
) -> dict[str, Any]:
    """The details of the commit. A run over selected rows does not record a model for the
    others."""
    if config is None or options.select:
        return {}
    items = [item for table in tables for item in embedded_properties(table)]
    return record(config.model, str(config.provider), items)


# In this process.


@dataclass
class EmbedRequest:
    """A run. It may be evaluated several times; texts are embedded once."""

    context: Context
    options: EmbedOptions
    config: EmbeddingConfig | None
    conditions: Conditions = field(init=False)
    _known: dict[tuple[str, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.conditions = Conditions(self.context.actor, self.options.message)

    @property
    def kind(self) -> CommitKind:
        return CommitKind.LOAD

    @property
    def is_strict(self) -> bool:
        return False

    @property
    def joint(self) -> None:
        return None

    @property
    def fingerprint(self) -> str | None:
        return None

    def evaluate(self, view: View) -> Evaluated:
        delta = {}
        due = renewals(self.context.root, view.snapshot, self.options, self.config)
        said = details([table for table, _ in due], self.config, self.options)
        self.conditions = replace(self.conditions, details=said)
        for table, renewal in due:
            rows = _due_rows(view, table, renewal)
            if rows.num_rows:
                made = renew_vectors(table, rows, renewal, self._embed)
                columns = [*system_columns(table), *(item.column for item in table.properties)]
                made = made.rename_columns(columns)
                delta[table.id] = TableDelta(table, made, replacing=made.num_rows)
        return Evaluated(delta, affected_rows(delta))

    def _embed(self, item: Property, texts: Sequence[str]) -> Vectors:
        assert self.config is not None
        dim = item.type.dim or 0
        new = [text for text in texts if (text, dim) not in self._known]
        with EmbeddingClient(self.config) as client:
            for first in range(0, len(new), _AT_ONCE):
                progress.report(f"embed {item.name}", first, len(new), rows=first)
                some = new[first : first + _AT_ONCE]
                made = client.embed_documents(some, dim)
                self._known.update({(t, dim): v for t, v in zip(some, made, strict=True)})
        return np.stack([self._known[text, dim] for text in texts])


def _looked_at(view: View, table: TableType, renewal: Renewal) -> pa.Table:
    """The columns that determine which rows are due, by name."""
    names = [name for name, _ in renewal.where]
    for item in embedded_properties(table):
        assert item.embed is not None
        names += [item.name, item.embed.source]
    columns = {ID_COLUMN: ID_COLUMN, **{table.by_name[name].column: name for name in names}}
    found = view.select(table, columns=list(columns))
    return found.rename_columns(list(columns.values()))


def _due_rows(view: View, table: TableType, renewal: Renewal) -> pa.Table:
    """The rows that are due, whole, with columns by name."""
    rows = _looked_at(view, table, renewal)
    masks = [renewal.mask(table, table.by_name[name], rows) for name in renewal.properties]
    ids = rows.column(ID_COLUMN).filter(pa.array(np.logical_or.reduce(masks)))
    if len(ids) < _MANY:
        found = view.rows(table, ids.to_pylist())
    else:
        whole = view.select(table)
        found = whole.filter(pc.is_in(whole.column(ID_COLUMN), value_set=ids.combine_chunks()))
    return found.rename_columns([*system_columns(table), *(p.name for p in table.properties)])
