"""Graph algorithms over DataFrames.

Vertices have one column `v`, a text that names type and id; edges have `src` and `dst`, and
`weight` where one is asked for. Every function returns a DataFrame of `v` and its results.

Guarantees: deterministic (ties are broken by name); parallel edges count as often as they occur in
`degree` and `pagerank` and once elsewhere; loops keep their lineage short, so that many rounds cost
no more than their work.
Deliberately absent: which graph, and what happens to the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.types import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class Settings:
    """The options of algorithms. `sources` are start vertices."""

    damping: float = 0.85
    tolerance: float = 1e-6
    rounds: int | None = None
    directed: bool = True
    sources: tuple[str, ...] = ()
    weighted: bool = False


@dataclass(frozen=True)
class Algorithm:
    """A function and the columns that it returns besides `v`; the first is what is written back,
    a value of the given kind (of `weighted`, where edges have weights)."""

    run: Callable[[DataFrame, DataFrame, Settings], DataFrame]
    results: tuple[str, ...]
    summary: str
    kind: Kind
    weighted: Kind | None = None


def _functions() -> Any:
    from pyspark.sql import functions

    return functions


def _short(frame: DataFrame) -> DataFrame:
    """The same rows, computed now and without their history."""
    return frame.localCheckpoint(eager=True)


def _one(frame: DataFrame) -> tuple[Any, ...]:
    """The one row of an aggregation."""
    return tuple(frame.collect()[0])


def _both_ways(edges: DataFrame) -> DataFrame:
    """Neighbours in either direction, each once, without loops."""
    there = edges.select("src", "dst")
    back = edges.selectExpr("dst as src", "src as dst")
    return there.unionByName(back).where("src <> dst").distinct()


def degree(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """How many edges leave and enter; a loop does both."""
    out = edges.groupBy(edges.src.alias("v")).count().withColumnRenamed("count", "out_degree")
    into = edges.groupBy(edges.dst.alias("v")).count().withColumnRenamed("count", "in_degree")
    joined = vertices.join(out, "v", "left").join(into, "v", "left")
    joined = joined.na.fill(0, ["out_degree", "in_degree"])
    return joined.selectExpr("v", "out_degree + in_degree as degree", "out_degree", "in_degree")


def components(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """The smallest vertex that can be reached in either direction.

    Alternates two steps (each vertex hands its neighbours on to the smallest one it knows, first
    the larger ones, then the smaller), which halves distances: rounds grow with their logarithm.
    """
    f = _functions()
    links = _short(edges.select("src", "dst").where("src <> dst").distinct())
    seen = None
    for _ in range(_MOST_ROUNDS):
        links = _short(_small_star(_large_star(links)))
        digest = f.sum(f.xxhash64("src", "dst").cast("decimal(38,0)"))
        now = _one(links.agg(f.count("*"), digest))
        if now == seen:
            break
        seen = now
    # What is left are stars: each vertex points to the smallest of its component.
    labels = links.selectExpr("src as v", "dst as component")
    joined = vertices.join(labels, "v", "left")
    return joined.select("v", f.coalesce("component", "v").alias("component"))


def _large_star(links: DataFrame) -> DataFrame:
    f = _functions()
    both = links.unionByName(links.selectExpr("dst as src", "src as dst")).distinct()
    least = both.groupBy("src").agg(f.least(f.min("dst"), f.first("src")).alias("m"))
    joined = both.join(least, "src").where("dst > src")
    return joined.selectExpr("dst as src", "m as dst").where("src <> dst").distinct()


def _small_star(links: DataFrame) -> DataFrame:
    f = _functions()
    down = links.select(f.greatest("src", "dst").alias("src"), f.least("src", "dst").alias("dst"))
    least = down.groupBy("src").agg(f.min("dst").alias("m"))
    joined = down.join(least, "src")
    onward = joined.selectExpr("dst as src", "m as dst")
    own = least.selectExpr("src", "m as dst")
    return onward.unionByName(own).where("src <> dst").distinct()


def pagerank(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """Ranks that sum to one; what ends nowhere is spread over all."""
    f = _functions()
    count = vertices.count()
    if count == 0:
        return vertices.selectExpr("v", "cast(null as double) as pagerank")
    strength = f.sum("weight") if settings.weighted else f.count("*").cast("double")
    links = edges if settings.weighted else edges.withColumn("weight", f.lit(1.0))
    links = links.groupBy("src", "dst").agg(f.sum("weight").alias("weight"))
    total = edges.groupBy("src").agg(strength.alias("total"))
    shares = _short(links.join(total, "src").selectExpr("src", "dst", "weight / total as share"))
    ends = _short(vertices.join(total.selectExpr("src as v"), "v", "left_anti"))
    ranks = _short(vertices.withColumn("pagerank", f.lit(1.0 / count)))
    for _ in range(settings.rounds or 100):
        loose = _one(ranks.join(ends, "v").agg(f.sum("pagerank")))[0] or 0.0
        base = (1.0 - settings.damping + settings.damping * loose) / count
        flow = shares.join(ranks, shares.src == ranks.v)
        flow = flow.groupBy("dst").agg(f.sum(f.col("pagerank") * f.col("share")).alias("got"))
        after = ranks.join(flow, ranks.v == flow.dst, "left").select(
            "v",
            f.col("pagerank").alias("before"),
            (f.lit(base) + f.lit(settings.damping) * f.coalesce("got", f.lit(0.0))).alias(
                "pagerank"
            ),
        )
        after = _short(after)
        (moved,) = _one(after.agg(f.sum(f.abs(f.col("pagerank") - f.col("before")))))
        ranks = after.select("v", "pagerank")
        if moved < count * settings.tolerance:
            break
    return ranks


def label_propagation(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """Each vertex takes the label that most of its neighbours have, the smallest of those, all at
    once, until nothing changes or the rounds are over."""
    f = _functions()
    links = _short(_both_ways(edges))
    labels = _short(vertices.select("v", f.col("v").alias("label")))
    for _ in range(settings.rounds or 10):
        votes = links.join(labels, links.dst == labels.v)
        votes = votes.groupBy("src", "label").count()
        best = votes.groupBy("src").agg(
            f.min(f.struct((-f.col("count")).alias("fewest"), "label")).alias("best")
        )
        best = best.select(f.col("src").alias("v"), f.col("best.label").alias("next"))
        after = _short(
            labels.join(best, "v", "left").select(
                "v", f.col("label").alias("before"), f.coalesce("next", "label").alias("label")
            )
        )
        changed = after.where("before <> label").limit(1).count()
        labels = after.select("v", "label")
        if not changed:
            break
    return labels


def triangles(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """How many triangles each vertex is a corner of."""
    f = _functions()
    # Each edge once, from the end with fewer neighbours, so that hubs start no pairs.
    both = _both_ways(edges)
    sizes = both.groupBy("src").count().withColumnRenamed("count", "size")
    ranked = both.join(sizes, "src").join(sizes.selectExpr("src as dst", "size as other"), "dst")
    up = _short(ranked.where("size < other or (size = other and src < dst)").select("src", "dst"))
    first = up.selectExpr("src as a", "dst as b")
    second = up.selectExpr("src as a", "dst as c")
    pairs = first.join(second, "a").where("b <> c")
    closed = up.selectExpr("src as b", "dst as c")
    found = pairs.join(closed, ["b", "c"])
    corners = found.select(f.explode(f.array("a", "b", "c")).alias("v")).groupBy("v").count()
    joined = vertices.join(corners, "v", "left").na.fill(0, ["count"])
    return joined.selectExpr("v", "count as triangles")


def shortest_paths(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """The least number of hops, or the least weight, from the nearest source; null: none leads
    there."""
    f = _functions()
    if not settings.sources:
        raise InvalidArgumentError("Shortest paths need a vertex to start from.")
    links = edges if settings.weighted else edges.withColumn("weight", f.lit(1.0))
    if settings.weighted and links.where("weight < 0").limit(1).count():
        raise InvalidArgumentError("Weights must not be negative.")
    links = links.select("src", "dst", "weight")
    if not settings.directed:
        links = links.unionByName(links.selectExpr("dst as src", "src as dst", "weight"))
    links = _short(links.groupBy("src", "dst").agg(f.min("weight").alias("weight")))
    start = f.when(f.col("v").isin(list(settings.sources)), f.lit(0.0))
    known = _short(vertices.select("v", start.alias("distance")))
    frontier = known.where("distance is not null")
    for _ in range(settings.rounds or _MOST_ROUNDS):
        reached = frontier.join(links, frontier.v == links.src)
        reached = reached.groupBy("dst").agg(
            f.min(f.col("distance") + f.col("weight")).alias("offer")
        )
        after = _short(
            known.join(reached, known.v == reached.dst, "left").select(
                "v",
                f.least("distance", "offer").alias("distance"),
                (f.col("offer") < f.coalesce("distance", f.lit(float("inf")))).alias("nearer"),
            )
        )
        known = after.select("v", "distance")
        frontier = after.where("nearer").select("v", "distance")
        if not frontier.limit(1).count():
            break
    return known


def k_core(vertices: DataFrame, edges: DataFrame, settings: Settings) -> DataFrame:
    """The largest k such that the vertex lies in a part where everybody has k neighbours.

    Starts from the degrees; each vertex then takes the largest h such that h of its neighbours
    have at least h, until nothing changes: that ends at the core numbers.
    """
    f = _functions()
    links = _short(_both_ways(edges))
    cores = links.groupBy("src").count().selectExpr("src as v", "count as core")
    cores = _short(vertices.join(cores, "v", "left").na.fill(0, ["core"]))
    for _ in range(_MOST_ROUNDS):
        held = links.join(cores, links.dst == cores.v)
        held = held.groupBy("src").agg(f.sort_array(f.collect_list("core"), False).alias("cs"))
        index = f.expr("size(filter(transform(cs, (c, i) -> c >= i + 1), x -> x))")
        after = _short(
            cores.join(held, cores.v == held.src, "left").select(
                "v",
                f.col("core").alias("before"),
                f.coalesce(f.least("core", index.cast("bigint")), f.lit(0)).alias("core"),
            )
        )
        changed = after.where("before <> core").limit(1).count()
        cores = after.select("v", "core")
        if not changed:
            break
    return cores


ALGORITHMS: dict[str, Algorithm] = {
    "degree": Algorithm(
        degree, ("degree", "out_degree", "in_degree"), "edges at each node", Kind.I64
    ),
    "components": Algorithm(components, ("component",), "connected components", Kind.STRING),
    "pagerank": Algorithm(pagerank, ("pagerank",), "PageRank", Kind.F64),
    "labels": Algorithm(
        label_propagation, ("label",), "communities by label propagation", Kind.STRING
    ),
    "triangles": Algorithm(triangles, ("triangles",), "triangles at each node", Kind.I64),
    "paths": Algorithm(
        shortest_paths, ("distance",), "distance from the nearest source", Kind.I64, Kind.F64
    ),
    "core": Algorithm(k_core, ("core",), "core numbers", Kind.I64),
}
