"""Requests that read one state of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.history.resolve import Target
from omnigraph.operations.requests.basis import Request

if TYPE_CHECKING:
    from omnigraph.engines.base import Options
    from omnigraph.engines.explanation import Explanation
    from omnigraph.engines.spark.settings import SparkSettings
    from omnigraph.model.change import Change, ChangeFilter
    from omnigraph.model.commit import Commit
    from omnigraph.model.commitgraph import CommitGraph
    from omnigraph.model.result import Result
    from omnigraph.model.schematext import SchemaText
    from omnigraph.model.snapshot import Snapshot
    from omnigraph.operations.algorithm import AlgorithmOptions
    from omnigraph.operations.blob import BlobSelector, BlobStat
    from omnigraph.operations.copy import Copied
    from omnigraph.operations.export import ExportOptions, ExportResult
    from omnigraph.operations.inspection import CommitFilter
    from omnigraph.operations.preparedquery import KeptPlan
    from omnigraph.operations.stats import Stats


HEAD = Target()


@dataclass(frozen=True)
class Question:
    """A text with one query, or a text and the name of one of its queries."""

    text: str
    name: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    kept: KeptPlan | None = field(default=None, kw_only=True)  # of a prepared query


@dataclass(frozen=True)
class Query(Question, Request["Result"]):
    """Run a read query. `spark` says which Spark the spark engine uses."""

    target: Target = HEAD
    engine: str = "embedded"
    options: Options | None = None
    spark: SparkSettings | None = None


@dataclass(frozen=True)
class Explain(Question, Request["Explanation"]):
    """Plan a read query; with `run`, run it too and report what each step did."""

    target: Target = HEAD
    run: bool = False
    engine: str = "embedded"
    options: Options | None = None
    spark: SparkSettings | None = None


@dataclass(frozen=True)
class PinSnapshot(Request["Snapshot"]):
    target: Target = HEAD


@dataclass(frozen=True)
class ReadSchema(Request["SchemaText"]):
    target: Target = HEAD


@dataclass(frozen=True)
class ListCommits(Request["Iterator[Commit]"]):
    branch: str
    filter: CommitFilter | None = None


@dataclass(frozen=True)
class FindCommit(Request["Commit"]):
    prefix: str
    branch: str


@dataclass(frozen=True)
class ReadCommitGraph(Request["CommitGraph"]):
    limit: int = 50


@dataclass(frozen=True)
class Diff(Request["Iterator[Change]"]):
    """Compare two states. A text is a branch, branch@version, a tag or a commit."""

    before: str | Target
    after: str | Target
    filter: ChangeFilter | None = None
    engine: str = "embedded"
    spark: SparkSettings | None = None


@dataclass(frozen=True)
class Export(Request["ExportResult"]):
    place: str
    target: Target = HEAD
    options: ExportOptions | None = None


@dataclass(frozen=True)
class ExportLines(Request["Iterator[bytes]"]):
    target: Target = HEAD
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class CopyGraph(Request["Copied"]):
    place: str


@dataclass(frozen=True)
class RunAlgorithm(Request[Any]):
    """The result is a Spark DataFrame."""

    name: str
    target: Target = HEAD
    options: AlgorithmOptions | None = None


@dataclass(frozen=True)
class StatBlob(Request["BlobStat"]):
    selector: BlobSelector
    target: Target = HEAD


@dataclass(frozen=True)
class ReadBlob(Request["tuple[BlobStat, Iterator[bytes]]"]):
    """The bytes from `offset` on, `length` of them or all."""

    selector: BlobSelector
    target: Target = HEAD
    offset: int = 0
    length: int | None = None


@dataclass(frozen=True)
class ReadStats(Request["Stats"]):
    """`disk`: also count what older versions take, which lists files."""

    branch: str
    disk: bool = False
