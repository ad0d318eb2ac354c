"""OmniGraph: a typed property-graph database on Lance tables.

This module holds the public names and nothing else. `errors`, `aio`, `builder` and
`spark` are public as modules; every other module below is private and may move.

Names are loaded on first use, so that importing the package costs next to nothing and pulls in
neither Lance, an engine nor a web framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import aio as aio
    from omnigraph import builder as builder
    from omnigraph import errors as errors
    from omnigraph import spark as spark
    from omnigraph.aio import AsyncGraph as AsyncGraph
    from omnigraph.builder import ReadDraft as ReadDraft
    from omnigraph.builder import WriteDraft as WriteDraft
    from omnigraph.commit.damage import Loss as Loss
    from omnigraph.config.connection import connect as connect
    from omnigraph.drawing import Drawing as Drawing
    from omnigraph.drawing import draw as draw
    from omnigraph.drawing.elements import Rows as Rows
    from omnigraph.engines.base import Cancellation as Cancellation
    from omnigraph.engines.base import Limits as Limits
    from omnigraph.engines.base import Options as Options
    from omnigraph.engines.explanation import Explanation as Explanation
    from omnigraph.engines.spark.jobevents import ProgressEvent as ProgressEvent
    from omnigraph.engines.spark.settings import SparkSettings as SparkSettings
    from omnigraph.errors import OmniGraphError as OmniGraphError
    from omnigraph.graph import Graph as Graph
    from omnigraph.graph import init as init
    from omnigraph.graph import open as open
    from omnigraph.history.branchlist import BranchInfo as BranchInfo
    from omnigraph.history.refs import Tag as Tag
    from omnigraph.history.resolve import Target as Target
    from omnigraph.model.change import Change as Change
    from omnigraph.model.change import ChangeFilter as ChangeFilter
    from omnigraph.model.commit import Commit as Commit
    from omnigraph.model.commitgraph import CommitGraph as CommitGraph
    from omnigraph.model.feed import Block as Block
    from omnigraph.model.feed import FeedPage as FeedPage
    from omnigraph.model.principal import Principal as Principal
    from omnigraph.model.result import Result as Result
    from omnigraph.model.schematext import SchemaText as SchemaText
    from omnigraph.model.snapshot import Snapshot as Snapshot
    from omnigraph.model.write import WriteResult as WriteResult
    from omnigraph.operations.algorithm import AlgorithmOptions as AlgorithmOptions
    from omnigraph.operations.blob import BlobStat as BlobStat
    from omnigraph.operations.changes import Baseline as Baseline
    from omnigraph.operations.cleanup import Cleanup as Cleanup
    from omnigraph.operations.copy import Copied as Copied
    from omnigraph.operations.embed import EmbedResult as EmbedResult
    from omnigraph.operations.export import ExportResult as ExportResult
    from omnigraph.operations.inspection import CommitFilter as CommitFilter
    from omnigraph.operations.inspection import Recoveries as Recoveries
    from omnigraph.operations.load import LoadResult as LoadResult
    from omnigraph.operations.maintain import Upkeep as Upkeep
    from omnigraph.operations.merge import MergePreview as MergePreview
    from omnigraph.operations.merge import MergeResult as MergeResult
    from omnigraph.operations.migrate import SchemaChange as SchemaChange
    from omnigraph.operations.migrate import SchemaPlan as SchemaPlan
    from omnigraph.operations.preparedquery import PreparedQuery as PreparedQuery
    from omnigraph.operations.reconcile import Bounds as Bounds
    from omnigraph.operations.reconcile import Lag as Lag
    from omnigraph.operations.reconcile import Reconciler as Reconciler
    from omnigraph.operations.repair import Repair as Repair
    from omnigraph.operations.stats import Stats as Stats
    from omnigraph.operations.verification import Verification as Verification

__version__ = "0.1.0"

__all__ = [
    "AlgorithmOptions",
    "AsyncGraph",
    "Baseline",
    "BlobStat",
    "Block",
    "Bounds",
    "BranchInfo",
    "Cancellation",
    "Change",
    "ChangeFilter",
    "Cleanup",
    "Commit",
    "CommitFilter",
    "CommitGraph",
    "Copied",
    "Drawing",
    "EmbedResult",
    "Explanation",
    "ExportResult",
    "FeedPage",
    "Graph",
    "Lag",
    "Limits",
    "LoadResult",
    "Loss",
    "MergePreview",
    "MergeResult",
    "OmniGraphError",
    "Options",
    "PreparedQuery",
    "Principal",
    "ProgressEvent",
    "ReadDraft",
    "Reconciler",
    "Recoveries",
    "Repair",
    "Result",
    "Rows",
    "SchemaChange",
    "SchemaPlan",
    "SchemaText",
    "Snapshot",
    "SparkSettings",
    "Stats",
    "Tag",
    "Target",
    "Upkeep",
    "Verification",
    "WriteDraft",
    "WriteResult",
    "__version__",
    "aio",
    "builder",
    "connect",
    "draw",
    "errors",
    "init",
    "open",
    "spark",
]

# Public name -> the module that defines it, or None where the name is itself a module.
_HOMES: dict[str, str | None] = {
    "AlgorithmOptions": "omnigraph.operations.algorithm",
    "AsyncGraph": "omnigraph.aio",
    "Baseline": "omnigraph.operations.changes",
    "BlobStat": "omnigraph.operations.blob",
    "Block": "omnigraph.model.feed",
    "Bounds": "omnigraph.operations.reconcile",
    "BranchInfo": "omnigraph.history.branchlist",
    "Cancellation": "omnigraph.engines.base",
    "Change": "omnigraph.model.change",
    "ChangeFilter": "omnigraph.model.change",
    "Cleanup": "omnigraph.operations.cleanup",
    "Commit": "omnigraph.model.commit",
    "CommitFilter": "omnigraph.operations.inspection",
    "CommitGraph": "omnigraph.model.commitgraph",
    "Copied": "omnigraph.operations.copy",
    "Drawing": "omnigraph.drawing",
    "EmbedResult": "omnigraph.operations.embed",
    "Explanation": "omnigraph.engines.explanation",
    "ExportResult": "omnigraph.operations.export",
    "FeedPage": "omnigraph.model.feed",
    "Graph": "omnigraph.graph",
    "Lag": "omnigraph.operations.reconcile",
    "Limits": "omnigraph.engines.base",
    "LoadResult": "omnigraph.operations.load",
    "Loss": "omnigraph.commit.damage",
    "MergePreview": "omnigraph.operations.merge",
    "MergeResult": "omnigraph.operations.merge",
    "OmniGraphError": "omnigraph.errors",
    "Options": "omnigraph.engines.base",
    "PreparedQuery": "omnigraph.operations.preparedquery",
    "Principal": "omnigraph.model.principal",
    "ProgressEvent": "omnigraph.engines.spark.jobevents",
    "ReadDraft": "omnigraph.builder",
    "Reconciler": "omnigraph.operations.reconcile",
    "Recoveries": "omnigraph.operations.inspection",
    "Repair": "omnigraph.operations.repair",
    "Result": "omnigraph.model.result",
    "Rows": "omnigraph.drawing.elements",
    "SchemaChange": "omnigraph.operations.migrate",
    "SchemaPlan": "omnigraph.operations.migrate",
    "SchemaText": "omnigraph.model.schematext",
    "Snapshot": "omnigraph.model.snapshot",
    "SparkSettings": "omnigraph.engines.spark.settings",
    "Stats": "omnigraph.operations.stats",
    "Tag": "omnigraph.history.refs",
    "Target": "omnigraph.history.resolve",
    "Upkeep": "omnigraph.operations.maintain",
    "Verification": "omnigraph.operations.verification",
    "WriteDraft": "omnigraph.builder",
    "WriteResult": "omnigraph.model.write",
    "aio": None,
    "builder": None,
    "connect": "omnigraph.config.connection",
    "draw": "omnigraph.drawing",
    "errors": None,
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
    "spark": None,
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(home), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value  # so that the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
