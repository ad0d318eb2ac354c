"""Running a graph algorithm on a snapshot, and keeping its results.

    options = AlgorithmOptions(edges=("Knows",))
    run(context, RunAlgorithm("pagerank", HEAD, options))                # a Spark DataFrame
    run(context, WriteAlgorithm("pagerank", "rank", "main", options))    # a property, in one commit

Guarantees: one snapshot; results name type and id; written back, they are one commit of all types,
which lands only if the branch still stands where it was read.
Deliberately absent: the algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.arguments import checked
from omnigraph.engines.spark.algorithms import ALGORITHMS, Settings
from omnigraph.engines.spark.jobprogress import observed
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.settings import SparkSettings
from omnigraph.engines.spark.sparktypes import spark_type
from omnigraph.engines.spark.tableframes import table_frame
from omnigraph.errors import InvalidArgumentError, TypeNotFoundError
from omnigraph.history.resolve import Target
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.snapshot import Snapshot
from omnigraph.model.types import Kind
from omnigraph.operations.context import Context
from omnigraph.operations.load import LoadOptions, LoadResult
from omnigraph.operations.requests import Load, RunAlgorithm, WriteAlgorithm
from omnigraph.operations.verbs import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Between type and id in the name of a vertex; no type has it.
_MARK = "/"
# What a result may be written into without losing anything of it.
_FLOATS = frozenset({Kind.F32, Kind.F64})
_FITS = {
    Kind.STRING: frozenset({Kind.STRING}),
    Kind.I64: _FLOATS | {Kind.I32, Kind.I64, Kind.U32, Kind.U64},
    Kind.F64: _FLOATS,
}
_WORDS = {Kind.STRING: "texts", Kind.I64: "whole numbers", Kind.F64: "fractions"}


@checked
@dataclass(frozen=True)
class AlgorithmOptions:
    """`edges` empty: all types of edges. `weight` names a numeric property of all of them.
    `sources` are `Type/id`, for algorithms with start nodes."""

    edges: tuple[str, ...] = ()
    weight: str | None = None
    sources: tuple[str, ...] = ()
    directed: bool = True
    damping: float = 0.85
    tolerance: float = 1e-6
    rounds: int | None = None
    spark: SparkSettings | None = None


DEFAULTS = AlgorithmOptions()


def algorithm(context: Context, request: RunAlgorithm) -> DataFrame:
    """The results as a DataFrame: `type`, `id` and the algorithm's own columns."""
    snapshot = context.snapshot(request.target)
    return _Run(context, request.name, snapshot, request.options or DEFAULTS).results()


def write_back(context: Context, request: WriteAlgorithm) -> LoadResult:
    """Keep the first result as a property of every node type that has one of that name."""
    branch = request.branch
    snapshot = context.snapshot(Target(branch))
    run = _Run(context, request.name, snapshot, request.options or DEFAULTS)
    return run.write(request.property_name, branch, request.message)


@dataclass
class _Run:
    context: Context
    name: str
    snapshot: Snapshot
    options: AlgorithmOptions
    spark: Any = field(init=False)

    def __post_init__(self) -> None:
        if self.name not in ALGORITHMS:
            raise InvalidArgumentError(
                f"There is no algorithm {self.name!r}.", hint=f"Use one of {', '.join(ALGORITHMS)}."
            )
        self.spark = get_session(self.options.spark)

    def results(self) -> DataFrame:
        from pyspark.sql import functions as f

        edge_types = self._edge_types()
        names = {end for edge in edge_types for end in (edge.src_type, edge.dst_type)}
        nodes = [n for n in self.snapshot.catalog.nodes if n.name in names]
        vertices = _union([self._vertices(node) for node in nodes])
        edges = _union([self._edges(edge) for edge in edge_types])
        o = self.options
        settings = Settings(
            o.damping, o.tolerance, o.rounds, o.directed, o.sources, o.weight is not None
        )
        with observed(self.spark, f"compute {self.name}"):
            found = ALGORITHMS[self.name].run(vertices, edges, settings)
        cut = f.locate(_MARK, f.col("v"))
        return found.select(
            f.expr("substr(v, 1, locate('/', v) - 1)").alias("type"),
            f.expr("substr(v, locate('/', v) + 1)").alias("id"),
            *(c for c in found.columns if c != "v"),
        ).where(cut > 0)

    def _edge_types(self) -> Sequence[EdgeType]:
        catalog = self.snapshot.catalog
        if not self.options.edges:
            return catalog.edges
        found = []
        for name in self.options.edges:
            edge = catalog.edge(name)
            if edge is None:
                raise TypeNotFoundError(f"The graph has no edge type {name!r}.")
            found.append(edge)
        return found

    def _vertices(self, node: NodeType) -> DataFrame:
        frame = self._table(node, ["id"])
        return frame.selectExpr(f"concat('{node.name}{_MARK}', id) as v")

    def _edges(self, edge: EdgeType) -> DataFrame:
        weight = self.options.weight
        columns = ["src", "dst"] if weight is None else ["src", "dst", weight]
        item = edge.get(weight) if weight else None
        if weight is not None and (item is None or not item.type.is_numeric):
            raise InvalidArgumentError(f"{edge.name} has no numeric property {weight!r}.")
        frame = self._table(edge, columns)
        ends = [
            f"concat('{edge.src_type}{_MARK}', src) as src",
            f"concat('{edge.dst_type}{_MARK}', dst) as dst",
        ]
        if weight is not None:
            ends.append(f"coalesce(cast(`{weight}` as double), 1.0) as weight")
        return frame.selectExpr(*ends)

    def _table(self, table: NodeType | EdgeType, columns: Sequence[str] | None) -> DataFrame:
        return table_frame(self.spark, self.context.root.location, self.snapshot, table, columns)

    def write(self, property_name: str, branch: str, message: str) -> LoadResult:
        """Rows are written whole, with the one property changed."""
        result = ALGORITHMS[self.name].results[0]
        self._refuse_misfits(property_name)
        with observed(self.spark, "gather the results"):
            values = self.results().select("type", "id", result).localCheckpoint(eager=True)
        frames = {}
        for node in self.snapshot.catalog.nodes:
            item = node.get(property_name)
            if item is None:
                continue
            own = values.where(values.type == node.name).select(
                "id", values[result].cast(spark_type(item.type)).alias("__value")
            )
            rows = self._table(node, None).join(own, "id")
            frames[node.name] = rows.drop(property_name).withColumnRenamed("__value", property_name)
        return run(
            self.context,
            Load(
                frames,
                options=LoadOptions(
                    mode="merge",
                    branch=branch,
                    message=message or f"{self.name} into {property_name}",
                    if_commit=self.snapshot.commit_id,
                    spark=self.options.spark,
                ),
            ),
        )

    def _refuse_misfits(self, property_name: str) -> None:
        """Before anything is computed: there is a place for the results, and they fit into it."""
        found = [(n, n.get(property_name)) for n in self.snapshot.catalog.nodes]
        items = [(node, item) for node, item in found if item is not None]
        if not items:
            raise InvalidArgumentError(
                f"No node type has a property {property_name!r}.",
                hint="Add it to the schema first.",
            )
        algorithm = ALGORITHMS[self.name]
        weighted = algorithm.weighted if self.options.weight is not None else None
        kind = weighted or algorithm.kind
        for node, item in items:
            if item.type.kind not in _FITS[kind]:
                raise InvalidArgumentError(
                    f"{self.name} gives {_WORDS[kind]}, and {node.name}.{property_name} is "
                    f"{item.type.spelling()}.",
                    hint=f"Write it into a property of type {kind}?.",
                )


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    if not frames:
        raise InvalidArgumentError("The graph has no edges to follow.")
    first, *rest = frames
    for frame in rest:
        first = first.unionByName(frame)
    return first
