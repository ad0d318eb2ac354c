"""Import: a new graph out of an export, or out of another graph.

    import_graph("copy", "out/", schema)         an export and its schema
    import_graph("copy", "s3://old/shop")        one state of a graph

An export is one state of a graph in open formats (JSONL, Parquet, Arrow), with ids, vectors and
blobs; a graph that is made from it has the same content under a history of its own, in the format
of this release. A graph of an older format is read from a temporary copy, and stays as it is. From
a release that is newer than this one: export there, import here.

Guarantees: the graph appears with its schema and is then filled by one commit; if filling fails,
the empty graph stays and says so.
Deliberately absent: history. `copy` carries that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import FormatError, InvalidArgumentError, StorageError
from omnigraph.history.resolve import Target
from omnigraph.operations.context import Context, principal_of
from omnigraph.operations.export import ExportOptions
from omnigraph.operations.inspection import schema_source
from omnigraph.operations.lifecycle import init_graph, open_graph
from omnigraph.operations.load import EMBEDDED, LoadOptions, LoadResult
from omnigraph.operations.requests import CopyGraph, Export, Load
from omnigraph.operations.verbs import run
from omnigraph.storage.inputs import output_address, output_exists
from omnigraph.storage.manifest import DIRECTORY as MANIFESTS
from omnigraph.storage.root import GraphRoot


@dataclass(frozen=True)
class Imported:
    """The new graph, and what was loaded into it."""

    context: Context
    loaded: LoadResult


def import_graph(
    uri: str,
    source: Any,
    schema: str | None = None,
    *,
    actor: str | None = None,
    format: str | None = None,
    engine: str = EMBEDDED,
    file: str | None = None,
    branch: str = "main",
) -> Imported:
    """Make a graph at an empty address and fill it. `branch`: of a graph that is the source."""
    if is_graph(source):
        return _from_graph(uri, str(source), schema, Target(branch), actor, engine, file)
    if schema is None:
        if isinstance(source, str) and not _may_be_export(source):
            raise InvalidArgumentError(
                f"There is neither a graph nor an export at {source}.", hint="Check the address."
            )
        raise InvalidArgumentError(
            "An export does not contain its schema.", hint="Give the schema of the export as well."
        )
    return _filled(uri, source, schema, actor, format, engine, file)


def _may_be_export(source: str) -> bool:
    return "*" in source or output_exists(output_address(source))


def is_graph(source: Any) -> bool:
    """Whether there is a graph at an address."""
    if not isinstance(source, str):
        return False
    try:
        names = GraphRoot.at(source).objects.list(f"{MANIFESTS}/main")
        return next(iter(names), None) is not None
    except (StorageError, InvalidArgumentError):
        return False


def _from_graph(
    uri: str,
    source: str,
    schema: str | None,
    target: Target,
    actor: str | None,
    engine: str,
    file: str | None,
) -> Imported:
    with _readable(source) as context, tempfile.TemporaryDirectory("-omnigraph-import") as folder:
        run(context, Export(folder, target, ExportOptions(format="arrow", overwrite=True)))
        text = schema if schema is not None else schema_source(context, target)
        return _filled(uri, folder, text, actor, "arrow", engine, file)


@contextmanager
def _readable(source: str) -> Iterator[Context]:
    """The graph, opened read-only; for an older format, a migrated copy."""
    try:
        context = open_graph(source, read_only=True)
    except FormatError as error:
        if error.details.get("found", 0) > error.details.get("known", 0):
            raise
        raw = Context(GraphRoot.at(source), principal_of(None), read_only=True)
        with tempfile.TemporaryDirectory("-omnigraph-upgrade") as folder:
            place = f"{folder}/graph"
            run(raw, CopyGraph(place))
            yield open_graph(place)
    else:
        yield context


def _filled(
    uri: str,
    source: Any,
    schema: str,
    actor: str | None,
    format: str | None,
    engine: str,
    file: str | None,
) -> Imported:
    context = init_graph(uri, schema, actor=actor, file=file)
    options = LoadOptions(mode="append", engine=engine, message="import")
    return Imported(context, run(context, Load(source, format=format, options=options)))
