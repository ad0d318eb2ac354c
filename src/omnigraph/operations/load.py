"""Load: writes inputs of any size and format, as one commit.

    load(context, ["people.jsonl", "s3://bucket/edges/*.parquet"], mode="merge")

Guarantees: one atomic commit of all types (quarantined records, if requested, are reported and
kept); the data that checks read is fenced, and after a conflict the load is prepared again; the
`embedded` engine gives the same graph and the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from omnigraph.bulk.load import Loaded, LoadPlan, stage_load
from omnigraph.bulk.rowvectors import fill_vectors
from omnigraph.bulk.runner import LocalRunner, Runner
from omnigraph.bulk.splits import cut
from omnigraph.commit.door import commit
from omnigraph.commit.idempotency import earlier_outcome
from omnigraph.embedding import EmbeddingConfig, config_from_environment
from omnigraph.engines.spark.frameinputs import is_spark_frame, spool, to_ipc
from omnigraph.engines.spark.jobevents import ProgressEvent, Watch
from omnigraph.engines.spark.session import get_session, has_session, parallelism
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.engines.spark.sparkrunner import SparkRunner
from omnigraph.errors import ConflictError, InvalidArgumentError, PreconditionFailedError
from omnigraph.history.log import BranchLog
from omnigraph.history.refs import MAIN, read_branch
from omnigraph.history.resolve import head_snapshot
from omnigraph.intake.inputforms import MOST_BYTES, Columns, take_in
from omnigraph.intake.loadsources import assign_frame, refuse_nothing, to_sources, with_kinds
from omnigraph.intake.sources import ENDINGS, Assigned, Source, assign
from omnigraph.intake.typedrows import EmbedRows, find_type
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import (
    Commit,
    CommitKind,
    HeadIs,
    Proposal,
    Requirement,
    TableUnchanged,
)
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.ulid import new_ulid
from omnigraph.model.write import Affected, WriteResult
from omnigraph.operations.context import Context
from omnigraph.operations.requests import Load
from omnigraph.rows.identities import edge_key_names as edge_key_names
from omnigraph.storage.distributed import SCRATCH
from omnigraph.storage.inputs import (
    InputFile,
    list_inputs,
    output_address,
    output_exists,
    write_output,
)
from omnigraph.writes.requiredvectors import RequiredVectors, configured, requires_vectors
from omnigraph.writes.staleness import record

SPARK, EMBEDDED = "spark", "embedded"
APPEND, MERGE, OVERWRITE = MODES = ("append", "merge", "overwrite")
FAIL, QUARANTINE = "fail", "quarantine"
# Up to this size the tasks run in this process, unless there is a session or one is requested.
SMALL_BYTES = 4 << 20
_ATTEMPTS = 3


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
    sources = to_sources(source, type, mapping, format)
    if chosen.engine == EMBEDDED and not _is_large(context, sources):
        return _embedded(context, sources, chosen)
    if chosen.engine == EMBEDDED:
        # The tasks of a load on Spark, one after another in this process: memory stays bounded.
        chosen = replace(chosen, here=True)
    return _SparkLoad(context, sources, chosen).run()


def _is_large(context: Context, sources: Sequence[Source]) -> bool:
    """Whether files are too large for memory."""
    if context.root.location.scheme == "memory" or any(s.frame is not None for s in sources):
        return False
    files = (file for source in sources for file in list_inputs(source.paths, ENDINGS))
    return sum(file.size for file in files) > MOST_BYTES


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


class _SparkLoad:
    def __init__(self, context: Context, sources: Sequence[Source], options: LoadOptions) -> None:
        self._context = context
        self._root = context.root
        self._sources = sources
        self._options = options
        self._scratch = f"{SCRATCH}/{new_ulid().lower()}"
        self._spooled: dict[int, tuple[InputFile, ...]] = {}

    def run(self) -> LoadResult:
        if self._root.location.scheme == "memory":
            raise InvalidArgumentError(
                "A graph in memory cannot be reached from Spark's own processes.",
                hint="Use engine='embedded'.",
            )
        # First, so that the JVM is started before other threads run.
        spark = None if self._options.here or self._is_small() else get_session(self._options.spark)
        try:
            return self._attempts(spark)
        finally:
            if self._spooled:
                self._root.objects.delete_prefix(self._scratch)

    def _is_small(self) -> bool:
        """Whether the tasks finish in this process before Spark could start: the caller requested
        no specific session, none runs in this process, and the input is small."""
        settings = self._options.spark
        if settings is not None and not settings.is_open:
            return False
        if has_session() or any(source.frame is not None for source in self._sources):
            return False
        sizes = (
            file.size for source in self._sources for file in list_inputs(source.paths, ENDINGS)
        )
        return sum(sizes) <= SMALL_BYTES

    def _attempts(self, spark: Any) -> LoadResult:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._attempt(spark)
            except ConflictError as error:
                strict = self._options.mode == OVERWRITE
                if strict or not error.retryable or attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _attempt(self, spark: Any) -> LoadResult:
        options = self._options
        branch_id = read_branch(self._root, options.branch).id
        line = BranchLog(self._root, branch_id)
        earlier = earlier_outcome(line, options.idempotency_key)
        if earlier is not None:
            return _repeated(earlier)
        snapshot = head_snapshot(self._root, options.branch, line)
        if options.if_commit not in (None, snapshot.commit_id):
            raise PreconditionFailedError(
                f"The head of the branch is {snapshot.commit_id}, not {options.if_commit}.",
                expected=options.if_commit,
                actual=snapshot.commit_id,
            )
        plan = self._plan(spark, snapshot)
        runner = _runner(spark, options)
        loaded = stage_load(runner, self._root, branch_id, snapshot, plan)
        with Watch(options.progress).step("commit"):
            return self._publish(snapshot, loaded)

    def _plan(self, spark: Any, snapshot: Snapshot) -> LoadPlan:
        catalog = snapshot.catalog
        files: list[tuple[InputFile, Assigned]] = []
        frames = set()
        for number, source in enumerate(self._sources):
            ruled = with_kinds(source, catalog)
            if source.frame is None:
                found = list_inputs(source.paths, ENDINGS)
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

    def _publish(self, snapshot: Snapshot, loaded: Loaded) -> LoadResult:
        options = self._options
        rejects = options.rejects if loaded.rejected else None
        if not loaded.staged:
            return LoadResult(None, {}, False, loaded.records, loaded.rejected, rejects)
        requires: list[Requirement] = []
        if options.if_commit is not None:
            requires.append(HeadIs(options.if_commit))
        for table_id in sorted(loaded.reads):
            version = snapshot.table(table_id)
            requires.append(TableUnchanged(table_id, version.logical if version else None))
        made = commit(
            self._root,
            Proposal(
                base=snapshot,
                staged=loaded.staged,
                actor=self._context.actor,
                kind=CommitKind.LOAD,
                message=options.message,
                requires=tuple(requires),
                idempotency_key=options.idempotency_key,
                details={
                    **options.details,
                    **_made_by(options),
                    "affected": {name: a.to_json() for name, a in loaded.affected.items()},
                    "engine": options.engine,
                    "records": loaded.records,
                },
            ),
        )
        return LoadResult(
            made,
            loaded.affected,
            False,
            loaded.records,
            loaded.rejected,
            rejects,
            notices=loaded.notices,
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


def _repeated(earlier: Commit) -> LoadResult:
    affected = earlier.details.get("affected", {})
    found = {name: Affected.from_json(value) for name, value in affected.items()}
    return LoadResult(earlier, found, True, int(earlier.details.get("records", 0)))


# In this process.


def _embedded(context: Context, sources: Sequence[Source], options: LoadOptions) -> LoadResult:
    if options.on_error != FAIL:
        raise InvalidArgumentError(
            "The embedded engine does not support quarantine.", hint="Use engine='spark'."
        )
    # The embedded engine; a load on Spark does not need this import.
    from omnigraph.operations.embeddedload import load_here
    from omnigraph.writes.request import Conditions

    conditions = Conditions(
        context.actor,
        options.message,
        options.if_commit,
        options.idempotency_key,
        {**options.details, **_made_by(options)},
    )
    found, records = load_here(
        context,
        sources,
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
