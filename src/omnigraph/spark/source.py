"""The data source `omnigraph`: options in, a reader or writer out.

| option | meaning |
|---|---|
| `graph` | address of the graph (also as the path of `load`) |
| `storage.<name>` | a storage option of the graph, such as `storage.region`; reads only |
| `type` | node or edge type; a stream of changes without one carries all types |
| `branch`, `commit`, `version`, `timestamp`, `tag` | what to read; a write takes the branch |
| `pushFilters` | true: test filters while reading; for a DataFrame that is used once |
| `mode` | how to write: append, merge, overwrite, or changes (rows of a stream of changes) |
| `message`, `idempotencyKey` | how a write is recorded |
| `actor` | the principal that reads and writes; by default that of the environment |
| `stream` | name of a streaming write; with the number of a batch it makes it happen once |
| `startingAt` | where a stream of changes begins: `beginning`, `now` or a commit |
| `maxCommits` | how many commits one batch of a stream takes in at most (256) |

Guarantees: the snapshot is pinned when Spark plans the read, and travels with it.
Deliberately absent: the driver's session. Spark runs all of this in processes of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

from omnigraph.engines.spark.sparktypes import spark_schema
from omnigraph.engines.spark.workergc import spare_collector
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.resolve import Target
from omnigraph.intake.typedrows import find_type
from omnigraph.model.location import Location
from omnigraph.model.snapshot import Snapshot
from omnigraph.operations.context import principal_of
from omnigraph.operations.lifecycle import attach
from omnigraph.operations.requests import PinSnapshot
from omnigraph.operations.verbs import run
from omnigraph.rows.checks import TableType
from omnigraph.spark.changestream import MOST_COMMITS, ChangeStream, change_schema
from omnigraph.spark.reader import FilteringReader, PinnedTableReader
from omnigraph.spark.sink import CHANGES, BatchWriter, StreamWriter, WriteOptions
from omnigraph.storage.location import parse_location

_STORAGE = "storage."


class OmniGraphSource(DataSource):
    """What Spark asks for schemas, readers and writers."""

    # From here relative addresses count; the processes that ask stand in folders of their own.
    folder = ""
    # So many tasks of the program run side by side.
    parallelism = 1

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        spare_collector()
        # Options are matched without regard to case, as everywhere in Spark.
        self._options = {name.lower(): value for name, value in dict(options).items()}
        self._snapshot: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def schema(self) -> str:
        if "startingat" in self._options:
            return change_schema(self._streamed())
        return spark_schema(self._table())

    def reader(self, schema: Any) -> PinnedTableReader:
        spare_collector()  # Spark plans in one process and asks for readers in another
        pushes = self._options.get("pushfilters", "").lower() == "true"
        kind = FilteringReader if pushes else PinnedTableReader
        return kind(self._pinned(), self._table(), schema.fieldNames(), self.parallelism)

    def streamReader(self, schema: Any) -> ChangeStream:
        start = self._options.get("startingat", "beginning")
        return ChangeStream(
            self._location(),
            self._branch(),
            self._streamed(),
            start,
            schema.fieldNames(),
            self._positive("maxcommits", MOST_COMMITS),
            principal_of(self._options.get("actor")),
        )

    def writer(self, schema: Any, overwrite: bool) -> BatchWriter:
        return BatchWriter(self._write_options(overwrite))

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:
        stream = self._options.get("stream")
        if not stream:
            raise InvalidArgumentError(
                "A streaming write needs a name that stays the same when it is started again.",
                hint='Give it: .option("stream", "people-from-kafka").',
            )
        return StreamWriter(self._write_options(overwrite), stream)

    def _write_options(self, overwrite: bool) -> WriteOptions:
        get = self._options.get
        mode = "overwrite" if overwrite else get("mode", "append")
        if self._storage_options():
            raise InvalidArgumentError(
                "A write with Spark takes no storage options.",
                hint="Set the AWS_* variables for the driver and the executors.",
            )
        return WriteOptions(
            graph=self._location().uri,
            branch=self._branch(),
            type=get("type") if mode == CHANGES else self._required("type"),
            mode=mode,
            message=get("message", ""),
            actor=get("actor"),
            idempotency_key=get("idempotencykey"),
        )

    def _required(self, name: str) -> str:
        value = self._options.get(name)
        if not value:
            raise InvalidArgumentError(
                f"The data source needs the option {name!r}.", hint=f'.option("{name}", …)'
            )
        return str(value)

    def _location(self) -> Location:
        """An absolute address with its storage options, for processes with another folder."""
        given = self._options.get("path") or self._required("graph")
        address = given if "://" in given else os.path.join(self.folder, given)
        return parse_location(address, storage_options=self._storage_options())

    def _storage_options(self) -> dict[str, str]:
        named = [name for name in self._options if name.startswith(_STORAGE)]
        return {name.removeprefix(_STORAGE): self._options[name] for name in named}

    def _branch(self) -> str:
        return str(self._options.get("branch", "main"))

    def _pinned(self) -> Snapshot:
        if self._snapshot is None:
            context = attach(self._location(), self._options.get("actor"))
            target = _target(self._options, self._branch())
            self._snapshot = run(context, PinSnapshot(target))
        return self._snapshot

    def _streamed(self) -> TableType | None:
        return self._table() if self._options.get("type") else None

    def _positive(self, name: str, default: int) -> int:
        text = self._options.get(name, str(default))
        if not text.isdecimal() or int(text) < 1:
            raise InvalidArgumentError(f"The option {name!r} is a number from 1 on, not {text!r}.")
        return int(text)

    def _table(self) -> TableType:
        return find_type(self._pinned().catalog, self._required("type"))


def source_at(folder: str, parallelism: int) -> type[OmniGraphSource]:
    """The source of a program that stands in this folder and runs so many tasks at once."""

    class Source(OmniGraphSource):
        pass

    Source.folder = folder  # made here, the class is pickled whole, with its folder
    Source.parallelism = parallelism
    return Source


def _target(options: Mapping[str, str], branch: str) -> Target:
    version, moment = options.get("version"), options.get("timestamp")
    return Target(
        branch,
        options.get("commit"),
        None if version is None else int(version),
        None if moment is None else _microseconds(moment),
        options.get("tag"),
    )


def _microseconds(text: str) -> int:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{text!r} is not a moment in time.", hint="Write it as 2026-11-16T09:30:00Z."
        ) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)
