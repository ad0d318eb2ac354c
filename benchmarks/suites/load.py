"""Loading: the social graph into each embedded system, and on Spark beside plain Spark.

Ours checks every row (types, required values, keys, both ends of every edge) and commits once per
type; on Spark the whole load is one commit. Plain Spark parses the same files and writes Parquet.
`python -m benchmarks.pipeline` measures Spark in more detail.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.measure import OURS, Findings, Measure, timed_s
from benchmarks.pipeline import SCHEMA, plain_jsonl, plain_parquet, write_jsonl, write_parquet
from benchmarks.social import crowd, write_social
from benchmarks.suites import Setting

NODES, EDGES = 100_000, 2_300_000
PLAIN_SPARK = "plain Spark"


def run(setting: Setting) -> Findings:
    folder = setting.folder / "load"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    data = write_social(setting.folder, setting.scale, setting.seed)
    with crowd(folder, data) as found:
        loading = {s: [seconds] for s, seconds in found.loading.items()}
        ready = {s: [loading[s][0] + seconds] for s, seconds in found.settling.items()}
    measures = [
        Measure("load the social graph, Parquet", "s", loading),
        Measure("the same with indexes", "s", ready),
    ]
    skipped = dict(found.skipped)
    try:
        measures += _spark(folder, setting.scale)
    except ImportError as reason:
        skipped["spark"] = str(reason)
    return Findings(measures, skipped, found.versions)


def _spark(place: Path, scale: float) -> list[Measure]:
    from omnigraph.engines.spark.session import get_session
    from omnigraph.engines.spark.settings import read_settings

    spark = get_session(read_settings("local[2]"))
    lines, columns = place / "in.jsonl", place / "columns"
    write_jsonl(lines, int(NODES * scale), int(EDGES * scale))
    write_parquet(columns, int(NODES * scale), int(EDGES * scale))
    warm = place / "warm.jsonl"
    write_jsonl(warm, 100, 100)
    omnigraph.init(str(place / "warm"), SCHEMA).load(str(warm))
    plain_jsonl(spark, warm, place / "warm-plain")
    measures = []
    for name, source, plain in (
        ("JSONL", lines, plain_jsonl),
        ("Parquet", columns, plain_parquet),
    ):
        graph = omnigraph.init(str(place / f"graph-{name}"), SCHEMA)
        samples = {
            OURS: [timed_s(lambda: graph.load(str(source)))],  # noqa: B023 - called at once
            PLAIN_SPARK: [timed_s(lambda: plain(spark, source, place / f"plain-{name}"))],  # noqa: B023
        }
        measures.append(Measure(f"load {name} on Spark", "s", samples))
    measures.append(_read(spark, place))
    return measures


def _read(spark: Any, place: Path) -> Measure:
    """A scan of the edges, from the graph and from Parquet; the same sums."""
    omnigraph.spark.register(spark)
    uri = str(place / "graph-JSONL")
    ours = spark.read.format("omnigraph").options(graph=uri, type="Knows").load()
    theirs = spark.read.parquet(str(place / "plain-JSONL" / "Knows"))
    answers = {}
    samples = {}
    for subject, rows, key in ((OURS, ours, "src"), (PLAIN_SPARK, theirs, "`from`")):
        query = rows.selectExpr("sum(since) AS total", f"max({key}) AS last")
        answers[subject] = [tuple(row) for row in query.collect()]
        samples[subject] = [timed_s(query.collect) for _ in range(3)]
    same = answers[OURS] == answers[PLAIN_SPARK]
    return Measure("scan the edges on Spark", "s", samples, same=same)
