"""Load: writes inputs of any size and format, as one commit.

    load(context, ["people.jsonl", "s3://bucket/edges/*.parquet"], mode="merge")

Guarantees: one atomic commit of all types (quarantined records, if requested, are reported and
kept); the data that checks read is fenced, and after a conflict the load is prepared again; the
`embedded` engine gives the same graph and the same errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from omnigraph.bulk.load import Loaded, LoadPlan, stage_load
from omnigraph.bulk.rowvectors import fill_vectors
from omnigraph.bulk.runner import LocalRunner, Runner
from omnigraph.bulk.sourcefiles import SourceFiles
from omnigraph.bulk.splits import cut
from omnigraph.embedding import EmbeddingConfig, config_from_environment
from omnigraph.engines.spark.frameinputs import is_spark_frame, spool, to_ipc
from omnigraph.engines.spark.jobevents import ProgressEvent, Watch
from omnigraph.engines.spark.session import get_session, has_session, parallelism
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.engines.spark.sparkrunner import SparkRunner
from omnigraph.errors import InvalidArgumentError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN
from omnigraph.intake.inputforms import MOST_BYTES, Columns, take_in
from omnigraph.intake.loadsources import assign_frame, refuse_nothing, to_sources, with_kinds
from omnigraph.intake.sources import Assigned, Source, assign
from omnigraph.intake.typedrows import EmbedRows, find_type
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import (
    CommitKind,
    HeadIs,
    Proposal,
    Requirement,
    TableUnchanged,
)
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.ulid import new_ulid
from omnigraph.model.write import WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Load
from omnigraph.rows.identities import edge_key_names as edge_key_names
from omnigraph.storage.distributed import SCRATCH
from omnigraph.storage.inputs import (
    InputFile,
    output_address,
    output_exists,
    write_output,
)
from omnigraph.writes.groupcommit import write_alone
from omnigraph.writes.request import Attempts, Conditions, LoneRequest
from omnigraph.writes.requiredvectors import RequiredVectors, configured, requires_vectors
from omnigraph.writes.staleness import record

SPARK, EMBEDDED = "spark", "embedded"
APPEND, MERGE, OVERWRITE = MODES = ("append", "merge", "overwrite")
FAIL, QUARANTINE = "fail", "quarantine"
# Up to this size the tasks run in this process, unless there is a session or one is requested.
SMALL_BYTES = 4 << 20


@dataclass(frozen=True)
class LoadOptions:
    """Options of a load."""

    mode: str = APPEND
    types: tuple[str, ...] = ()
    branch: str = MAIN
    message: str = ""
    if_commit: str | None = None
    idempotency_key: str | None = None
    engine: str = SPARK
    on_error: str = FAIL
    rejects: str | None = None
    embed: bool = False  # compute `@embed` vectors that the input lacks
    edge_key: tuple[str, ...] = ()  # properties that identify edges without ids: src, dst, …
    details: Mapping[str, Any] = field(default_factory=dict)  # further details of the commit
    spark: SparkSettings | None = None
    here: bool = False  # run the tasks in this process, which has no session
    progress: Callable[[ProgressEvent], None] | None = None


@dataclass(frozen=True)
class LoadResult(WriteResult):
    """The result of a load. `rejects` is the folder of quarantined records, if any."""

    records: int = 0
    rejected: int = 0
    rejects: str | None = None

    def to_json(self) -> dict[str, Any]:
        more = {"records": self.records, "rejected": self.rejected, "rejects": self.rejects}
        return {**WriteResult.to_json(self), **more}


def load(context: Context, request: Load) -> LoadResult:
    """Load paths, patterns, folders, `table:NAME`, frames, or a dict of frames by type."""
    source, type, mapping, format, options = (
        request.source,
        request.type,
        request.mapping,
        request.format,
        request.options,
    )
    chosen = options or LoadOptions()
    _check(chosen)
    files = SourceFiles(to_sources(source, type, mapping, format))
    if chosen.engine == EMBEDDED and not _is_large(context, files):
        return _embedded(context, files, chosen)
    if chosen.engine == EMBEDDED:
        # The tasks of a load on Spark, one after another in this process: memory stays bounded.
        chosen = replace(chosen, here=True)
    with BulkLoad(context, files, chosen) as bulk:
        return bulk.run()


def _is_large(context: Context, files: SourceFiles) -> bool:
    """Whether files are too large for memory."""
    if context.root.location.scheme == "memory" or files.have_frames:
        return False
    return files.bytes() > MOST_BYTES


def _check(options: LoadOptions) -> None:
    if options.mode not in MODES:
        raise InvalidArgumentError(
            f"There is no mode {options.mode!r}.", hint=f"Use one of {', '.join(MODES)}."
        )
    if options.engine not in (SPARK, EMBEDDED):
        raise InvalidArgumentError(
            f"There is no engine {options.engine!r}.", hint=f"Use {SPARK} or {EMBEDDED}."
        )
    if options.on_error not in (FAIL, QUARANTINE):
        raise InvalidArgumentError(
            f"There is no way {options.on_error!r} to treat invalid records.",
            hint=f"Use {FAIL} or {QUARANTINE}.",
        )
    if (options.on_error == QUARANTINE) != (options.rejects is not None):
        raise InvalidArgumentError(
            "Quarantined records need a folder.",
            hint="Give both on_error='quarantine' and rejects='FOLDER', or neither.",
        )
    if options.rejects is not None and output_exists(output_address(options.rejects)):
        raise InvalidArgumentError(
            f"The place for refused records, {options.rejects}, is not empty.",
            hint="Name a new folder.",
        )


# On Spark.


class BulkLoad(LoneRequest):
    """A load in tasks, on Spark or one after another in this process. Use it as a context: it
    removes what it spooled."""

    # Its tasks may take hours, so other writers never wait for them.
    attempts = Attempts(total=3, unlocked=3)
    kind = CommitKind.LOAD

    def __init__(
        self, context: Context, files: SourceFiles, options: LoadOptions, spark: Any = None
    ) -> None:
        if context.root.location.scheme == "memory":
            raise InvalidArgumentError(
                "A graph in memory cannot be reached from Spark's own processes.",
                hint="Use engine='embedded'.",
            )
        self.is_strict = options.mode == OVERWRITE
        self.conditions = Conditions(
            context.actor,
            options.message,
            options.if_commit,
            options.idempotency_key,
            {**options.details, **_made_by(options)},
        )
        self._root = context.root
        self._files = files
        self._options = options
        self._spark = spark
        self._scratch = f"{SCRATCH}/{new_ulid().lower()}"
        self._spooled: dict[int, tuple[InputFile, ...]] = {}
        self._loaded: Loaded | None = None
        self._began = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spooled:
            self._root.objects.delete_prefix(self._scratch)

    def run(self) -> LoadResult:
        """Carry the load out."""
        # First, so that the JVM is started before other threads run.
        if not (self._options.here or self._is_small()):
            self._spark = get_session(self._options.spark)
        return self.result(write_alone(self._root, self._options.branch, self))

    def prepare(self, line: BranchLog, snapshot: Snapshot) -> Proposal | WriteResult:
        plan = self._plan(self._spark, snapshot)
        runner = _runner(self._spark, self._options)
        self._loaded = stage_load(runner, self._root, line.branch_id, snapshot, plan)
        if not self._loaded.staged:
            return WriteResult(None, {})
        self._tell_commit(finished=False)
        return self._proposal(snapshot, self._loaded)

    def result(self, done: WriteResult) -> LoadResult:
        """What the load did, once it is committed or there was nothing to commit."""
        if done.repeated:
            assert done.commit is not None
            records = int(done.commit.details.get("records", 0))
            return LoadResult(done.commit, done.affected, True, records)
        loaded = self._loaded
        assert loaded is not None
        rejects = self._options.rejects if loaded.rejected else None
        counts = (loaded.records, loaded.rejected, rejects)
        if done.commit is None:
            return LoadResult(None, {}, False, *counts)
        self._tell_commit(finished=True)
        return LoadResult(done.commit, loaded.affected, False, *counts, notices=loaded.notices)

    def _tell_commit(self, *, finished: bool) -> None:
        """Report that the commit begins, or that it is done."""
        now = time.monotonic()
        self._began = self._began if finished else now
        took, left = now - self._began, 0.0 if finished else None
        event = ProgressEvent("commit", int(finished), 1, took, left, finished=finished)
        Watch(self._options.progress).tell(event)

    def _is_small(self) -> bool:
        """Whether the tasks finish in this process before Spark could start: the caller requested
        no specific session, none runs in this process, and the input is small."""
        settings = self._options.spark
        if settings is not None and not settings.is_open:
            return False
        if has_session() or self._files.have_frames:
            return False
        return self._files.bytes() <= SMALL_BYTES

    def _plan(self, spark: Any, snapshot: Snapshot) -> LoadPlan:
        catalog = snapshot.catalog
        files: list[tuple[InputFile, Assigned]] = []
        frames = set()
        for number, source in self._files:
            ruled = with_kinds(source, catalog)
            if source.frame is None:
                found = self._files.of(number)
                files += [(file, assign(file.address, ruled, catalog)) for file in found]
                continue
            how = assign_frame(ruled, catalog)
            spooled = self._spool(spark, number, source)
            frames |= {file.address for file in spooled}
            files += [(file, how) for file in spooled]
        splits = [
            replace(split, scratch=split.file in frames or f"/{SCRATCH}/" in split.file)
            for split in cut(files, parallelism(spark) if spark else 1)
        ]
        types = tuple(find_type(catalog, name).id for name in self._options.types)
        if self._options.mode == OVERWRITE:
            types = (*types, *(s.how.table_id for s in splits if s.how.table_id is not None))
            refuse_nothing(sum(split.size for split in splits), types)
        rejects = self._options.rejects
        return LoadPlan(
            tuple(splits),
            str(self._options.mode),
            tuple(dict.fromkeys(types)),
            None if rejects is None else output_address(rejects),
            *_embedding(self._options, catalog),
            self._options.edge_key,
        )

    def _spool(self, spark: Any, number: int, source: Source) -> tuple[InputFile, ...]:
        """Frames are written to staging once, even if the load is prepared several times."""
        if number not in self._spooled:
            folder = f"{self._root.location.child(self._scratch).uri}/{number:03d}"
            frame = source.frame
            if isinstance(frame, str):
                frame = spark.table(frame)
            if is_spark_frame(frame):
                self._spooled[number] = tuple(spool(frame, folder))
            else:
                self._spooled[number] = tuple(_spool_here(frame, folder))
        return self._spooled[number]

    def _proposal(self, snapshot: Snapshot, loaded: Loaded) -> Proposal:
        conditions = self.conditions
        requires: list[Requirement] = []
        if conditions.if_commit is not None:
            requires.append(HeadIs(conditions.if_commit))
        for table_id in sorted(loaded.reads):
            version = snapshot.table(table_id)
            requires.append(TableUnchanged(table_id, version.logical if version else None))
        return Proposal(
            base=snapshot,
            staged=loaded.staged,
            actor=conditions.actor,
            kind=self.kind,
            message=conditions.message,
            requires=tuple(requires),
            idempotency_key=conditions.idempotency_key,
            details={
                **conditions.details,
                "affected": {name: a.to_json() for name, a in loaded.affected.items()},
                "engine": self._options.engine,
                "records": loaded.records,
            },
        )


def _runner(spark: Any, options: LoadOptions) -> Runner:
    return LocalRunner() if spark is None else SparkRunner(spark, Watch(options.progress))


def _spool_here(frame: Any, folder: str) -> Iterator[InputFile]:
    for number, part in enumerate(take_in(frame, "rows")):
        if not isinstance(part, Columns):
            raise InvalidArgumentError("Rows are given as a table or a frame, by type.")
        data = to_ipc(part.rows)
        address = f"{folder}/{number:06d}.arrow"
        write_output(address, data)
        yield InputFile(address, len(data))


# In this process.


def _embedded(context: Context, files: SourceFiles, options: LoadOptions) -> LoadResult:
    if options.on_error != FAIL:
        raise InvalidArgumentError(
            "The embedded engine does not support quarantine.", hint="Use engine='spark'."
        )
    # The embedded engine; a load on Spark does not need this import.
    from omnigraph.operations.embeddedload import load_here

    conditions = Conditions(
        context.actor,
        options.message,
        options.if_commit,
        options.idempotency_key,
        {**options.details, **_made_by(options)},
    )
    found, records = load_here(
        context,
        files,
        options.mode,
        options.types,
        options.branch,
        conditions,
        _filler(options),
        options.edge_key,
    )
    return LoadResult(found.commit, found.affected, found.repeated, records, notices=found.notices)


def _embedding(options: LoadOptions, catalog: Catalog) -> tuple[EmbeddingConfig | None, bool]:
    """The embedding config for missing vectors, and whether only required ones are computed."""
    if options.embed:
        return config_from_environment(), False
    return (configured() if requires_vectors(catalog.tables()) else None), True


def _filler(options: LoadOptions) -> EmbedRows | None:
    if options.embed:
        return partial(fill_vectors, config=config_from_environment())
    config = configured()
    return None if config is None else RequiredVectors(config)


def _made_by(options: LoadOptions) -> dict[str, Any]:
    """The provider and model of the computed vectors."""
    if not options.embed:
        return {}
    config = config_from_environment()
    return record(config.model, str(config.provider), [])
