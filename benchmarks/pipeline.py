"""How long loads, reads and exports take on Spark, beside plain Spark on the same input.

    python -m benchmarks.pipeline [--nodes 100000] [--edges 2300000] [--master 'local[2]']
                                  [--rounds 3] [--only load,read,start,scale]

Prints one JSON line per measure. Both sides take turns over one warm session and the best of each
counts, so that a neighbour on the machine disturbs neither alone; `cpu_ratio` compares CPU seconds
of all processes, which a neighbour disturbs least.

| measure | target |
|---|---|
| load jsonl, load parquet | at most 1.4 × parsing with plain Spark and writing Parquet by type |
| read | at least 0.7 × the rate of Spark's Parquet scan |
| cold command | ten rows at most 2 s above starting an empty session |
| resident command | ten rows in at most 3.5 s |
| scale | ten times the input takes 8 to 12 times as long |

Memory is measured by `python -m benchmarks.pipeline_memory`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from benchmarks.processes import cpu_seconds
from omnigraph.engines.spark.session import get_session
from omnigraph.engines.spark.settings import read_settings

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    born: Date?
}
edge Knows: Person -> Person {
    since: I32?
}
"""
_PLAIN = (
    "type string, edge string, `from` string, `to` string, "
    "data struct<name: string, age: int, born: string, since: int>"
)
_SMALL = 10
_EMPTY = (
    "from omnigraph.engines.spark.session import get_session;"
    "from omnigraph.engines.spark.settings import read_settings;"
    "get_session(read_settings({!r}))"
)


def report(name: str, **figures: Any) -> None:
    rounded = {k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({"measure": name, **rounded}), flush=True)


# Inputs.


def write_jsonl(file: Path, nodes: int, edges: int) -> None:
    with file.open("w") as out:
        for n in range(nodes):
            day = f"19{n % 90 + 10}-0{n % 9 + 1}-1{n % 9}"
            out.write(
                f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 90},"born":"{day}"}}}}\n'
            )
        for n in range(edges):
            src, dst = n * 7919 % nodes, n * 104729 % nodes
            out.write(
                f'{{"edge":"Knows","from":"p{src}","to":"p{dst}","data":{{"since":{n % 30}}}}}\n'
            )


def write_parquet(folder: Path, nodes: int, edges: int) -> None:
    folder.mkdir()
    people = {"name": [f"p{n}" for n in range(nodes)], "age": [n % 90 for n in range(nodes)]}
    pq.write_table(pa.table(people), folder / "Person.parquet")
    links = {
        "from": [f"p{n * 7919 % nodes}" for n in range(edges)],
        "to": [f"p{n * 104729 % nodes}" for n in range(edges)],
        "since": pa.array([n % 30 for n in range(edges)], pa.int32()),
    }
    pq.write_table(pa.table(links), folder / "Knows.parquet", row_group_size=100_000)


# The same by Spark alone.


def plain_jsonl(spark: Any, file: Path, out: Path) -> None:
    rows = spark.read.schema(_PLAIN).json(str(file))
    people = rows.where("type is not null").select("data.name", "data.age", "data.born")
    people.write.parquet(str(out / "Person"))
    links = rows.where("edge is not null").select("from", "to", "data.since")
    links.write.parquet(str(out / "Knows"))


def plain_parquet(spark: Any, folder: Path, out: Path) -> None:
    for name in ("Person", "Knows"):
        spark.read.parquet(str(folder / f"{name}.parquet")).write.parquet(str(out / name))


class Race:
    """Two ways to do the same, in turns."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.best: dict[str, float] = {}
        self._cpu: dict[str, float] = {}

    def run(self, ways: dict[str, Callable[[int], Any]]) -> None:
        for number in range(self._rounds):
            for name, way in ways.items():
                began, used = time.perf_counter(), cpu_seconds(os.getpid())
                way(number)
                self._keep(self.best, name, time.perf_counter() - began)
                self._keep(self._cpu, name, cpu_seconds(os.getpid()) - used)

    @staticmethod
    def _keep(kept: dict[str, float], name: str, value: float) -> None:
        kept[name] = min(value, kept.get(name, value))

    def figures(self) -> dict[str, float]:
        ours, plain = self.best["ours"], self.best["plain"]
        cpu = self._cpu["ours"] / max(self._cpu["plain"], 1e-9)
        return {"seconds": ours, "plain": plain, "ratio": ours / plain, "cpu_ratio": cpu}


class Pipeline:
    def __init__(self, place: Path, given: argparse.Namespace) -> None:
        self.place = place
        self.given = given
        self.spark: Any = None

    def prepare(self) -> None:
        self.lines, self.columns = self.place / "in.jsonl", self.place / "columns"
        write_jsonl(self.lines, self.given.nodes, self.given.edges)
        write_parquet(self.columns, self.given.nodes, self.given.edges)
        self.spark = get_session(read_settings(self.given.master))
        omnigraph.spark.register(self.spark)
        warm = self.place / "warm.jsonl"
        write_jsonl(warm, 1000, 30_000)
        for number in range(2):
            self.load(f"warm-{number}", warm)
            plain_jsonl(self.spark, warm, self.place / f"warm-plain-{number}")

    def load(self, name: str, source: Path) -> Any:
        graph = omnigraph.init(str(self.place / f"graph-{name}"), SCHEMA)
        graph.load(str(source))
        return graph

    def measure_loads(self) -> None:
        for name, source, plain in (
            ("jsonl", self.lines, plain_jsonl),
            ("parquet", self.columns, plain_parquet),
        ):
            race = Race(self.given.rounds)
            race.run(
                {
                    "ours": lambda n: self.load(f"{name}-{n}", source),  # noqa: B023
                    "plain": lambda n: plain(self.spark, source, self.place / f"{name}-{n}"),  # noqa: B023
                }
            )
            report(f"load {name}", target="ratio ≤ 1.4", **race.figures())

    def measure_read(self) -> None:
        graph = self.load("read", self.lines)
        plain_jsonl(self.spark, self.lines, self.place / "plain-read")
        reader = self.spark.read.format("omnigraph").schema("src string, since int")
        read = reader.options(graph=graph.uri, type="Knows").load()
        held = self.spark.read.parquet(str(self.place / "plain-read" / "Knows"))
        race = Race(self.given.rounds + 2)
        race.run(
            {
                "ours": lambda n: read.selectExpr("max(since)", "max(src)").collect(),
                "plain": lambda n: held.selectExpr("max(since)", "max(`from`)").collect(),
            }
        )
        figures = race.figures()
        report("read", target="rate ≥ 0.7", rate=1 / figures["ratio"], **figures)
        began = time.perf_counter()
        graph.export(str(self.place / "export"), engine="spark", format="parquet")
        report("export parquet", seconds=time.perf_counter() - began)

    def measure_scale(self) -> None:
        seconds = []
        for factor in (1, 10):
            file = self.place / f"scale-{factor}.jsonl"
            write_jsonl(file, self.given.nodes * factor // 4, self.given.edges * factor // 4)
            best = []
            for number in range(2):
                began = time.perf_counter()
                self.load(f"scale-{factor}-{number}", file)
                best.append(time.perf_counter() - began)
            seconds.append(min(best))
        ratio = seconds[1] / seconds[0]
        report("scale ×10", target="8 to 12", one=seconds[0], ten=seconds[1], ratio=ratio)

    def measure_start(self) -> None:
        file, graph = self.place / "ten.jsonl", self.place / "ten"
        write_jsonl(file, _SMALL - 2, 2)
        omnigraph.init(str(graph), SCHEMA)
        program = str(Path(sys.executable).with_name("omnigraph"))
        load = [program, "load", str(graph), "--data", str(file), "--mode", "merge"]
        cold = {"OMNIGRAPH_SPARK_RESIDENT": "off"}
        empty = [sys.executable, "-c", _EMPTY.format(self.given.master)]
        ways = {"empty": empty, "ours": load, "named": [*load, "--master", self.given.master]}
        race = Race(self.given.rounds)
        race.run({name: _turn(way, cold) for name, way in ways.items()})
        for name, way in (("cold command", "ours"), ("cold command, master named", "named")):
            ours, plain = race.best[way], race.best["empty"]
            above = ours - plain
            report(name, target="above ≤ 2", seconds=ours, empty=plain, above=above)
        warm = {"OMNIGRAPH_SPARK_RESIDENT": str(self.place / "resident.json")}
        _run([program, "spark", "start", "--master", self.given.master], warm)
        try:
            race = Race(self.given.rounds + 2)
            race.run({"ours": _turn(load, warm)})
        finally:
            _run([program, "spark", "stop"], warm)
        report("resident command", target="seconds ≤ 3.5", seconds=race.best["ours"])


def _turn(command: list[str], environ: dict[str, str]) -> Callable[[int], None]:
    return lambda number: _run(command, environ)


def _run(command: list[str], environ: dict[str, str]) -> None:
    done = subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=2_300_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="start,load,read,scale")
    given = parser.parse_args()
    wanted = given.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline(Path(folder), given)
        if "start" in wanted:
            pipeline.measure_start()
        if {"load", "read", "scale"} & set(wanted):
            pipeline.prepare()
        for name in ("load", "read", "scale"):
            if name in wanted:
                getattr(pipeline, {"load": "measure_loads"}.get(name, f"measure_{name}"))()


if __name__ == "__main__":
    main()
