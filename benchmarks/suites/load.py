"""Loading: the social graph into each embedded system, and on Spark beside plain Spark.

Ours checks every row (types, required values, keys, both ends of every edge) and commits once per
type; on Spark the whole load is one commit. Plain Spark parses the same files and writes Parquet.
In full, memory of a larger load is measured too, by `benchmarks.pipeline_memory`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.measure import AGAIN, OURS, Findings, Measure, timed_s
from benchmarks.pipeline import SCHEMA, plain_jsonl, plain_parquet, write_jsonl, write_parquet
from benchmarks.social import crowd, write_social
from benchmarks.suites import Setting
from omnigraph.errors import EngineUnavailableError

NODES, EDGES = 100_000, 2_300_000
PLAIN_SPARK = "plain Spark"
SLOWER = 1.4  # than plain Spark, with all checks
SCAN_RATE = 0.7  # of plain Spark's over Parquet
GROWN = 12.0  # ten times the input takes ten times as long, and a fifth more at most
ROUNDS = 2
SCANS = 9
ALL_COLUMNS, TWO_COLUMNS = "id string, src string, dst string, since int", "src string, since int"
MEGABYTES = 1_000  # of the 5,000 that are promised; those take some minutes


def run(setting: Setting) -> Findings:
    folder = setting.folder / "load"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    data = write_social(setting.folder, setting.scale, setting.seed)
    with crowd(setting.folder, data) as found:
        loading = {s: [seconds] for s, seconds in found.loading.items()}
        ready = {s: [loading[s][0] + seconds] for s, seconds in found.settling.items()}
    measures = [
        Measure("load the social graph, Parquet", "s", loading),
        Measure("the same with indexes", "s", ready),
    ]
    skipped = dict(found.skipped)
    try:
        measures += Pipeline(folder, setting).measures()
        measures += _memory(int(MEGABYTES * setting.scale)) if setting.full else []
    except (ImportError, EngineUnavailableError) as reason:
        skipped["Spark"] = str(reason).splitlines()[0]
    return Findings(measures, skipped, found.versions)


def _memory(megabytes: int) -> list[Measure]:
    """What processes hold at most, with 2 GB for an executor and its Python, 1 GB for a driver."""
    command = [sys.executable, "-m", "benchmarks.pipeline_memory", "--megabytes", str(megabytes)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peaks = json.loads(told.splitlines()[-1])["peak_mb"]
    executor = peaks["executor (Java)"] + peaks.get("worker (Python)", 0)
    driver = max(peaks["driver (Java)"], peaks["driver (Python)"])
    about = f"load of {megabytes:,} MB on two executors"
    return [
        Measure(f"{about}, an executor with its Python", "MB", {OURS: [executor]}, target=2048),
        Measure(f"{about}, the driver", "MB", {OURS: [driver]}, target=1024),
    ]


class Pipeline:
    """One warm session, and both ways to use it, in turns."""

    def __init__(self, place: Path, setting: Setting) -> None:
        from omnigraph.engines.spark.session import get_session
        from omnigraph.engines.spark.settings import read_settings

        self.place = place
        self.setting = setting
        self.spark: Any = get_session(read_settings("local[2]"))
        omnigraph.spark.register(self.spark)

    def measures(self) -> list[Measure]:
        from omnigraph.engines.spark.session import stop_session

        try:
            self.warm()
            lines, columns = self.place / "in.jsonl", self.place / "columns"
            self.lines(lines, self.setting.scale)
            write_parquet(columns, *self._size(self.setting.scale))
            jsonl = self.race("JSONL", lines, plain_jsonl)
            parquet = self.race("Parquet", columns, plain_parquet)
            return [jsonl, parquet, *self.scans("JSONL"), *self.growth(jsonl.samples[OURS])]
        finally:
            stop_session()

    def warm(self) -> None:
        """The code that loads need, on both sides, has been compiled."""
        file = self.place / "warm.jsonl"
        write_jsonl(file, 1_000, 30_000)
        for number in range(2):
            self.load(f"warm-{number}", file)
            plain_jsonl(self.spark, file, self.place / f"warm-plain-{number}")

    def load(self, name: str, source: Path) -> None:
        omnigraph.init(str(self.place / f"graph-{name}"), SCHEMA).load(str(source))

    def lines(self, file: Path, scale: float) -> Path:
        write_jsonl(file, *self._size(scale))
        return file

    @staticmethod
    def _size(scale: float) -> tuple[int, int]:
        return int(NODES * scale), int(EDGES * scale)

    def race(self, name: str, source: Path, plain: Callable[[Any, Path, Path], None]) -> Measure:
        samples: dict[str, list[float]] = {OURS: [], PLAIN_SPARK: []}
        for turn in range(ROUNDS):
            ours, theirs = f"{name}-{turn}", self.place / f"plain-{name}-{turn}"
            samples[OURS].append(timed_s(lambda: self.load(ours, source)))  # noqa: B023 - called at once
            samples[PLAIN_SPARK].append(timed_s(lambda: plain(self.spark, source, theirs)))  # noqa: B023
        same = _agree(*self._edges(name))
        bound = self.setting.promised(SLOWER)
        return Measure(f"load {name} on Spark", "s", samples, same=same, bound=bound)

    def _edges(self, name: str) -> tuple[Any, Any]:
        """The edges of the last load as both have them, with one aggregate over each."""
        uri = str(self.place / f"graph-{name}-{ROUNDS - 1}")
        reader = self.spark.read.format("omnigraph").schema("src string, since int")
        ours = reader.options(graph=uri, type="Knows").load()
        theirs = self.spark.read.parquet(str(self.place / f"plain-{name}-{ROUNDS - 1}" / "Knows"))
        return tuple(
            rows.selectExpr("count(*)", "sum(since)", f"max({key})")
            for rows, key in ((ours, "src"), (theirs, "`from`"))
        )  # type: ignore[return-value]

    def scans(self, name: str) -> list[Measure]:
        """A snapshot's edges and the same rows in Parquet: all columns, then two of them."""
        uri, rows = str(self.place / f"graph-{name}-0"), str(self.place / "rows")
        self.spark.read.format("omnigraph").options(graph=uri, type="Knows").load().write.parquet(
            rows
        )

        def ours(schema: str) -> Any:
            reader = self.spark.read.format("omnigraph").schema(schema)
            return _largest(reader.options(graph=uri, type="Knows").load(), schema)

        def theirs(schema: str) -> Any:
            return _largest(self.spark.read.parquet(rows), schema)

        bound = self.setting.promised(1 / SCAN_RATE)
        note = f"the bound is a rate of at least {SCAN_RATE:g} × plain Spark's"
        return [
            _scan("read all edges on Spark", ALL_COLUMNS, ours, theirs, bound, note),
            _scan("two columns of them", TWO_COLUMNS, ours, theirs, None, ""),
        ]

    def growth(self, largest: Any) -> list[Measure]:
        """A tenth of the input and all of it; in full, all of it and ten times as much."""
        scale = self.setting.scale
        if self.setting.full:
            small, large = list(largest), self._loads("ten", 10 * scale, 1)
        else:
            small, large = self._loads("tenth", scale / 10, 2), list(largest)
        grown = min(large) / min(small)
        nodes, edges = self._size(10 * scale if self.setting.full else scale)
        note = f"up to {nodes:,} nodes and {edges:,} edges"
        samples = {"× 1": small, "× 10": large}
        return [
            Measure("load JSONL on Spark, by size", "s", samples, peers=False, note=note),
            Measure("load of ten times as much over one", "times", {OURS: [grown]}, target=GROWN),
        ]

    def _loads(self, name: str, scale: float, times: int) -> list[float]:
        file = self.lines(self.place / f"{name}.jsonl", scale)
        return [timed_s(lambda: self.load(f"{name}-{n}", file)) for n in range(times)]  # noqa: B023


def _scan(
    name: str,
    schema: str,
    ours: Callable[[str], Any],
    theirs: Callable[[str], Any],
    bound: float | None,
    note: str,
) -> Measure:
    same = _agree(ours(schema), theirs(schema))
    samples: dict[str, list[float]] = {OURS: [], PLAIN_SPARK: [], AGAIN: []}
    for _ in range(SCANS):
        for subject, rows in ((OURS, ours), (PLAIN_SPARK, theirs), (AGAIN, ours)):
            # A frame that was collected before would read what its first scan had shuffled.
            samples[subject].append(timed_s(rows(schema).collect))
    return Measure(name, "s", samples, same=same, bound=bound, note=note)


def _agree(ours: Any, theirs: Any) -> bool:
    return [tuple(row) for row in ours.collect()] == [tuple(row) for row in theirs.collect()]


def _largest(rows: Any, schema: str) -> Any:
    """One row, for which every value of these columns is looked at."""
    names = [column.split()[0] for column in schema.split(", ")]
    return rows.selectExpr("count(*)", *(f"max({name})" for name in names))
