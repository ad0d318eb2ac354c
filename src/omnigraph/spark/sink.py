"""Writing a DataFrame, or the batches of a stream, as commits of a graph.

Executors lay the rows down as scratch files. Spark then commits in a process of its own, which has
no session: there the rows are checked and staged, and published through the door.

Guarantees: one commit for each write, or nothing; a batch of a stream is published once, however
often Spark repeats it, because its number is the idempotency key; scratch files of a write are
removed when it ends.
Deliberately absent: rows of several types in one commit, which one `save` cannot express, save as
changes (mode `changestream`); `graph.load` can, and it checks on executors too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from omnigraph.engines.spark.frameinputs import gathered, to_ipc
from omnigraph.intake.sources import Rule, Source, SourceFormat
from omnigraph.model.ulid import new_ulid
from omnigraph.operations.context import Context
from omnigraph.operations.lifecycle import open_graph
from omnigraph.operations.load import LoadOptions
from omnigraph.operations.requests import Load, Replay
from omnigraph.operations.verbs import run
from omnigraph.spark.netchanges import net_changes
from omnigraph.storage.distributed import SCRATCH
from omnigraph.storage.inputs import open_input, write_output
from omnigraph.storage.root import GraphRoot
from omnigraph.writes.request import Conditions

CHANGES = "changes"


@dataclass(frozen=True)
class WriteOptions:
    """`type` None: rows are changes, which say their types."""

    graph: str
    branch: str
    type: str | None
    mode: str
    message: str = ""
    actor: str | None = None
    idempotency_key: str | None = None


@dataclass
class Written(WriterCommitMessage):
    """The scratch files of one task."""

    files: tuple[str, ...]


class _Scratch:
    """Where the tasks of one write lay their rows down."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        root = GraphRoot.at(options.graph)
        self.options = replace(options, graph=root.uri)
        self._folder = f"{SCRATCH}/{new_ulid().lower()}"

    def lay_down(self, batches: Iterator[pa.RecordBatch]) -> Written:
        location = GraphRoot.at(self.options.graph).location.child(self._folder)
        files: list[str] = []
        for held in gathered(batches):
            address = f"{location.uri}/{_partition():06d}-{len(files):06d}-{uuid4().hex}.arrow"
            write_output(address, to_ipc(held))
            files.append(address)
        return Written(tuple(files))

    def publish(self, messages: Sequence[Any], key: str | None) -> None:
        paths = sorted(path for message in messages if message for path in message.files)
        context = open_graph(self.options.graph, actor=self.options.actor)
        try:
            if self.options.mode == CHANGES:
                self._replay(context, paths, key)
            elif paths or self.options.mode == "overwrite":
                self._load(context, paths, key)
        finally:
            context.root.objects.delete_prefix(self._folder)

    def _load(self, context: Context, paths: Sequence[str], key: str | None) -> None:
        options = self.options
        assert options.type is not None
        run(
            context,
            Load(
                Source(
                    tuple(paths),
                    format=SourceFormat.ARROW,
                    rules=(Rule("*", options.type, is_edge=False),),
                ),
                options=LoadOptions(
                    mode=options.mode,
                    types=(options.type,) if options.mode == "overwrite" else (),
                    branch=options.branch,
                    message=options.message,
                    idempotency_key=key,
                    here=True,
                ),
            ),
        )

    def _replay(self, context: Context, paths: Sequence[str], key: str | None) -> None:
        tables = [_read(path) for path in paths]
        if not tables:
            return
        changes = net_changes(pa.concat_tables(tables), self.options.type)
        conditions = Conditions(context.actor, self.options.message, idempotency_key=key)
        run(context, Replay(changes, self.options.branch, conditions))

    def forget(self) -> None:
        GraphRoot.at(self.options.graph).objects.delete_prefix(self._folder)


def _read(address: str) -> pa.Table:
    with open_input(address) as handle:
        return pa.ipc.open_file(handle).read_all()


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("omnigraph")`."""

    def __init__(self, options: WriteOptions) -> None:
        self._scratch = _Scratch(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return self._scratch.lay_down(iterator)

    def commit(self, messages: list[Any]) -> None:
        self._scratch.publish(messages, self._scratch.options.idempotency_key)

    def abort(self, messages: list[Any]) -> None:
        self._scratch.forget()


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("omnigraph")`."""

    def __init__(self, options: WriteOptions, stream: str) -> None:
        self._scratch = _Scratch(options)
        self._stream = stream

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return self._scratch.lay_down(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        self._scratch.publish(messages, f"stream:{self._stream}:{batchId}")

    def abort(self, messages: list[Any], batchId: int) -> None:
        self._scratch.forget()
