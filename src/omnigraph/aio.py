"""The same graph for programs that use asyncio.

    graph = await omnigraph.aio.open("shop")
    result = await graph.query("query q() { match { $p: Person } return { $p.name } }")
    async for commit in graph.commits(): ...

The work runs in threads and does not block the event loop. Reads, writes and long work (loads,
exports, maintenance, change feeds) have a pool each; none waits for a thread of another. Cancelling
a task stops a query at its next step and a write before its commit begins, and returns only when
the work has ended. A write whose publish has begun is completed nevertheless.

Guarantees: the methods of `Graph`, with the same arguments and results; rows of a query are read
before it returns, so that using them does not block.
Deliberately absent: reading without threads. Storage is native code that blocks.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from omnigraph import progress
from omnigraph.config.connection import connect as _connect
from omnigraph.engines.base import DEFAULT_OPTIONS, Cancellation, Options
from omnigraph.errors import CancelledError
from omnigraph.graph import Graph
from omnigraph.graph import init as _init
from omnigraph.graph import open as _open
from omnigraph.threadpools import ThreadPool

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.builder import ReadDraft
    from omnigraph.commit.damage import Loss
    from omnigraph.model.principal import Principal
    from omnigraph.model.result import Result

__all__ = ["AsyncGraph", "connect", "init", "open"]

P = ParamSpec("P")
R = TypeVar("R")

_PIECE = 64  # items that a stream fetches at once

# Separate pools, so that writers that wait for a lock, and work that takes minutes, leave threads
# for reads and for each other.
_reads = ThreadPool("omnigraph-aio-read", threads=16)
_writes = ThreadPool("omnigraph-aio-write", threads=16)
_long = ThreadPool("omnigraph-aio-long", threads=16)


async def _run(
    work: Callable[[], R], stop: Callable[[], None] | None = None, *, pool: ThreadPool = _reads
) -> R:
    """Do the work in a thread; when the task is cancelled, stop it and wait for its end."""
    stopped = threading.Event()

    def hear(_: progress.Progress) -> None:
        if stopped.is_set():
            raise CancelledError("The task was cancelled.")

    def body() -> R:
        with progress.listening(hear):
            return work()

    context = contextvars.copy_context()
    future = asyncio.get_running_loop().run_in_executor(pool.executor, context.run, body)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stopped.set()
        if stop is not None:
            stop()
        await asyncio.wait({future})
        if not future.cancelled():
            future.exception()  # retrieved, so that asyncio does not warn about it
        raise


def _offloaded(
    method: Callable[Concatenate[Graph, P], R], pool: ThreadPool = _reads
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, R]]:
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await _run(lambda: method(self.sync, *args, **kwargs), pool=pool)

    call.__doc__ = method.__doc__
    return call


def _asked(
    method: Callable[Concatenate[Graph, P], Result],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, Result]]:
    """A query that can be cancelled, with its rows read."""

    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        cancellation = _cancellable(kwargs)

        def work() -> Result:
            result = method(self.sync, *args, **kwargs)
            result.to_arrow()
            return result

        return await _run(work, cancellation.cancel)

    call.__doc__ = method.__doc__
    return call


def _streamed(
    method: Callable[Concatenate[Graph, P], Iterator[R]], pool: ThreadPool = _reads
) -> Callable[Concatenate[AsyncGraph, P], AsyncIterator[R]]:
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[R]:
        items = await _run(lambda: iter(method(self.sync, *args, **kwargs)), pool=pool)
        try:
            while piece := await _run(lambda: list(islice(items, _PIECE)), pool=pool):
                for item in piece:
                    yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                await _run(close, pool=pool)

    call.__doc__ = method.__doc__
    return call


def _batched(
    method: Callable[Concatenate[Graph, P], Result],
) -> Callable[Concatenate[AsyncGraph, P], AsyncIterator[pa.RecordBatch]]:
    """The rows of a query as Arrow batches, as they are made."""

    async def call(
        self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[pa.RecordBatch]:
        cancellation = _cancellable(kwargs)
        result = await _run(lambda: method(self.sync, *args, **kwargs), cancellation.cancel)
        batches = result.stream()
        try:
            while piece := await _run(lambda: list(islice(batches, 1)), cancellation.cancel):
                yield piece[0]
        finally:
            await _run(result.close)

    call.__doc__ = _batched.__doc__
    return call


def _cancellable(arguments: Any) -> Cancellation:
    """The switch that stops a query with these arguments; put in if there is none."""
    options = DEFAULT_OPTIONS if arguments.get("options") is None else arguments["options"]
    if not isinstance(options, Options):
        return Cancellation()  # the query refuses its options
    cancellation: Cancellation = options.cancellation or Cancellation()
    arguments["options"] = replace(options, cancellation=cancellation)
    return cancellation


class AsyncGraph:
    """One branch of a graph; `sync` is the same object without asyncio."""

    def __init__(self, sync: Graph) -> None:
        self.sync = sync

    def __repr__(self) -> str:
        return f"AsyncGraph({self.uri!r}, branch={self.branch_name!r})"

    @property
    def uri(self) -> str:
        return self.sync.uri

    @property
    def actor(self) -> str:
        return self.sync.actor

    @property
    def principal(self) -> Principal:
        return self.sync.principal

    @property
    def durability(self) -> str:
        return self.sync.durability

    @property
    def losses(self) -> tuple[Loss, ...]:
        return self.sync.losses

    @property
    def branch_name(self) -> str:
        return self.sync.branch_name

    def on(self, branch: str) -> AsyncGraph:
        """The same graph on another branch."""
        return AsyncGraph(self.sync.on(branch))

    async def at(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        time: datetime | None = None,
        tag: str | None = None,
    ) -> AsyncGraph:
        """The graph pinned to one state; see `Graph.at`."""
        pin = partial(
            self.sync.at, branch=branch, commit=commit, version=version, time=time, tag=tag
        )
        return AsyncGraph(await _run(pin))

    def acting_as(self, actor: str | Principal) -> AsyncGraph:
        """The same graph, used by another principal."""
        return AsyncGraph(self.sync.acting_as(actor))

    def with_durability(self, durability: str) -> AsyncGraph:
        """The same graph, with writes that promise `power` or `process`."""
        return AsyncGraph(self.sync.with_durability(durability))

    @asynccontextmanager
    async def branch(
        self, name: str | None = None, *, merge: bool = True, message: str = ""
    ) -> AsyncIterator[AsyncGraph]:
        """A branch for the length of an `async with` block; see `Graph.branch`."""
        made = self.sync.branch(name, merge=merge, message=message)
        inner = await _run(made.__enter__, pool=_writes)
        try:
            yield AsyncGraph(inner)
        except BaseException as error:
            failure = error
            await asyncio.shield(_run(lambda: _leave(made, failure), pool=_writes))
            raise
        await _run(lambda: made.__exit__(None, None, None), pool=_writes)

    async def create_branch(
        self,
        name: str,
        *,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | None = None,
        tag: str | None = None,
    ) -> AsyncGraph:
        """Begin a branch here, or at an older state; see `Graph.create_branch`."""
        begin = partial(self.sync.create_branch, commit=commit, version=version, at=at, tag=tag)
        return AsyncGraph(await _run(lambda: begin(name), pool=_writes))

    async def prepare(
        self, text: str | ReadDraft, name: str | None = None
    ) -> Callable[..., Coroutine[Any, Any, Result]]:
        """Compile and plan a read query; await what is returned to run it. See `Graph.prepare`."""
        prepared = await _run(lambda: self.sync.prepare(text, name))
        return partial(_asked(lambda _, *args, **kwargs: prepared(*args, **kwargs)), self)

    query = _asked(Graph.query)
    stream = _batched(Graph.query)

    baseline = _streamed(Graph.baseline, _long)
    blob = _streamed(Graph.blob)
    changes = _streamed(Graph.changes, _long)
    commit_changes = _streamed(Graph.commit_changes)
    commits = _streamed(Graph.commits)
    diff = _streamed(Graph.diff)
    export_lines = _streamed(Graph.export_lines, _long)

    algorithm = _offloaded(Graph.algorithm, _long)
    apply_schema = _offloaded(Graph.apply_schema, _writes)
    blob_stat = _offloaded(Graph.blob_stat)
    branches = _offloaded(Graph.branches)
    cherry_pick = _offloaded(Graph.cherry_pick, _writes)
    cleanup = _offloaded(Graph.cleanup, _long)
    commit = _offloaded(Graph.commit)
    commit_changes_page = _offloaded(Graph.commit_changes_page)
    commit_graph = _offloaded(Graph.commit_graph)
    copy = _offloaded(Graph.copy, _long)
    count_embed = _offloaded(Graph.count_embed)
    create_tag = _offloaded(Graph.create_tag, _writes)
    delete_branch = _offloaded(Graph.delete_branch, _writes)
    delete_tag = _offloaded(Graph.delete_tag, _writes)
    embed = _offloaded(Graph.embed, _long)
    ensure_indices = _offloaded(Graph.ensure_indices, _long)
    explain = _offloaded(Graph.explain)
    export = _offloaded(Graph.export, _long)
    ingest = _offloaded(Graph.ingest, _writes)
    install_baseline = _offloaded(Graph.install_baseline, _long)
    lag = _offloaded(Graph.lag)
    load = _offloaded(Graph.load, _long)
    merge = _offloaded(Graph.merge, _writes)
    mutate = _offloaded(Graph.mutate, _writes)
    optimize = _offloaded(Graph.optimize, _long)
    plan_optimize = _offloaded(Graph.plan_optimize)
    plan_schema = _offloaded(Graph.plan_schema)
    poll_changes = _offloaded(Graph.poll_changes, _long)
    preview_merge = _offloaded(Graph.preview_merge)
    rebase = _offloaded(Graph.rebase, _writes)
    reconciler = _offloaded(Graph.reconciler)
    recover = _offloaded(Graph.recover, _writes)
    recoveries = _offloaded(Graph.recoveries)
    set_durability = _offloaded(Graph.set_durability, _writes)
    refresh = _offloaded(Graph.refresh, _writes)
    rename_branch = _offloaded(Graph.rename_branch, _writes)
    repair = _offloaded(Graph.repair, _long)
    revert = _offloaded(Graph.revert, _writes)
    schema = _offloaded(Graph.schema)
    snapshot = _offloaded(Graph.snapshot)
    stats = _offloaded(Graph.stats)
    tags = _offloaded(Graph.tags)
    verify = _offloaded(Graph.verify, _long)
    write_algorithm = _offloaded(Graph.write_algorithm, _long)


def _leave(made: Any, error: BaseException) -> None:
    """End a scratch branch after a failure; the failure itself goes on outside."""
    try:
        made.__exit__(type(error), error, error.__traceback__)
    except BaseException as raised:
        if raised is not error:
            raise


def _opening(make: Callable[P, Graph]) -> Callable[P, Coroutine[Any, Any, AsyncGraph]]:
    async def call(*args: P.args, **kwargs: P.kwargs) -> AsyncGraph:
        return AsyncGraph(await _run(lambda: make(*args, **kwargs), pool=_writes))

    call.__doc__ = make.__doc__
    return call


init = _opening(_init)
open = _opening(_open)
connect = _opening(_connect)
