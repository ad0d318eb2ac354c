"""Requests that change rows or the schema of a branch, and their previews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.history.refs import MAIN
from omnigraph.operations.requests.basis import Request

if TYPE_CHECKING:
    from omnigraph.engines.spark.settings import SparkSettings
    from omnigraph.model.write import WriteResult
    from omnigraph.operations.algorithm import AlgorithmOptions
    from omnigraph.operations.embed import EmbedOptions, EmbedResult
    from omnigraph.operations.load import LoadOptions, LoadResult
    from omnigraph.operations.migrate import SchemaChange, SchemaPlan
    from omnigraph.operations.replay import Changes
    from omnigraph.writes.request import Conditions


MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class Mutate(Request["WriteResult"]):
    """Run a mutation. `if_commit`: only while the branch is at that commit."""

    text: str
    name: str | None = None
    params: Mapping[str, Any] | None = None
    branch: str = MAIN
    message: str = ""
    if_commit: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Ingest(Request["WriteResult"]):
    """Write rows in this process. `types` are further types that an overwrite replaces, even by
    nothing; those of the input are replaced anyway. `edge_key` gives edges without an id the one
    that these properties spell."""

    data: Any
    mode: str = "append"
    type: str | None = None
    types: Iterable[str] = ()
    branch: str = MAIN
    message: str = ""
    if_commit: str | None = None
    idempotency_key: str | None = None
    most_bytes: int = MOST_BYTES
    edge_key: str | Iterable[str] = ()


@dataclass(frozen=True)
class Load(Request["LoadResult"]):
    """Load paths, patterns, folders, `table:NAME`, frames, or a dict of frames by type."""

    source: Any
    type: str | None = None
    mapping: Any = None
    format: str | None = None
    options: LoadOptions | None = None


@dataclass(frozen=True)
class Replay(Request["WriteResult"]):
    """Apply changes that a feed reported."""

    changes: Changes
    branch: str
    conditions: Conditions | None = None


@dataclass(frozen=True)
class Embed(Request["EmbedResult"]):
    options: EmbedOptions


@dataclass(frozen=True)
class CountEmbed(Request["dict[str, int]"]):
    options: EmbedOptions


@dataclass(frozen=True)
class WriteAlgorithm(Request["LoadResult"]):
    """Run a graph algorithm and write its first result into a property."""

    name: str
    property_name: str
    branch: str
    options: AlgorithmOptions | None = None
    message: str = ""


@dataclass(frozen=True)
class PlanSchema(Request["SchemaPlan"]):
    source: str
    branch: str = MAIN
    allow_data_loss: bool = False
    file: str | None = None


@dataclass(frozen=True)
class ApplySchema(Request["SchemaChange"]):
    """`engine` names what writes rows; without one it depends on their number."""

    source: str
    branch: str = MAIN
    allow_data_loss: bool = False
    message: str = ""
    file: str | None = None
    engine: str | None = None
    spark: SparkSettings | None = None
