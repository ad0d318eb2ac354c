"""Mutations and ingest, with every check, and what threads and processes are worth.

One-row inserts are compared with the peers, each of which makes every insert durable on its own.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median

import pyarrow as pa

import omnigraph
from benchmarks.measure import AGAIN, OURS, Findings, Measure, times_ms
from benchmarks.suites import Setting
from benchmarks.workers import AbsentError, Worker
from omnigraph.graph import Graph

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
    born: Date?
    seen: DateTime?
    tags: [String]?
    score: F64 @default(0.5)
    @range(age, 0..150)
}
edge Knows: Person -> Person { since: Date?
    weight: F32? }
"""
INSERT = "query i($n: String) { insert Person { name: $n, age: 30, email: $n } }"
LINK = "query l($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
UPDATE = "query u($n: String) { update Person set { age: age + 1 } where name = $n }"
ROWS = 1_000_000
NODES, EDGES = 100_000, 500_000
CROWDS = (1, 2, 4, 8)
EACH, EACH_TOGETHER = 20, 16
COMPUTED = 300  # as long, about, as the inserts
TURNS = 5
DURABLE_TURNS = 12


def run(setting: Setting) -> Findings:
    folder = setting.folder / "write"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    one, skipped, versions = _one_row(folder)
    measures = [one, *_durability(folder), *_large(folder, setting), *_ingest(folder, setting)]
    measures += [*_threads(folder), *_processes(folder)]
    return Findings(measures, skipped, versions)


def new_graph(folder: Path, name: str, durability: str | None = None) -> Graph:
    return omnigraph.init(str(folder / name), SCHEMA, actor="bench", durability=durability)


def insert_many(graph: Graph, prefix: str, amount: int) -> None:
    for number in range(amount):
        graph.mutate(INSERT, params={"n": f"{prefix}-{number}"})


# One row


def _one_row(folder: Path) -> tuple[Measure, dict[str, str], dict[str, str]]:
    samples: dict[str, list[float]] = {}
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for subject in (OURS, "kuzu", "ladybug", "duckdb", AGAIN):
            system = "inserter" if subject in (OURS, AGAIN) else f"{subject} inserter"
            place = folder / f"one-{subject.replace(' ', '-')}"
            place.mkdir()
            try:
                workers[subject] = stack.enter_context(Worker(system, place))
                workers[subject].call("start")
            except (AbsentError, RuntimeError) as reason:
                workers.pop(subject, None)
                skipped[subject] = str(reason).splitlines()[0][:120]
        for _ in range(5):
            for subject, worker in workers.items():
                times = worker.times("insert", seconds=0.4, most=12)
                samples.setdefault(subject, []).extend(1000 * seconds for seconds in times)
        versions = {s: w.version for s, w in workers.items() if s not in (OURS, AGAIN)}
    return Measure("insert one row, durably", "ms", samples, target=30), skipped, versions


def _durability(folder: Path) -> list[Measure]:
    """What surviving a power cut costs. One after the other in turn, on the disk of the run."""
    modes = ("process", "power")
    graphs = {mode: new_graph(folder, f"durability-{mode}", mode) for mode in modes}
    numbers = count()

    def insert(mode: str) -> None:
        graphs[mode].mutate(INSERT, params={"n": f"{mode}-{next(numbers)}"})

    samples: dict[str, list[float]] = {mode: [] for mode in modes}
    for mode in modes:
        times_ms(lambda mode=mode: insert(mode), 5, 0)  # type: ignore[misc]
    for _ in range(DURABLE_TURNS):
        for mode in modes:
            samples[mode] += times_ms(lambda mode=mode: insert(mode), 5, 0)  # type: ignore[misc]
    ratio = median(samples["power"]) / median(samples["process"])
    return [
        Measure("insert one row, by durability", "ms", samples, peers=False),
        Measure("insert one row with power", "ms", {OURS: samples["power"]}, target=15),
        Measure("power over process, one row", "times", {OURS: [ratio]}, target=1.5),
    ]


# Into many rows


def _large(folder: Path, setting: Setting) -> list[Measure]:
    rows = max(10_000, int(ROWS * setting.scale))
    graph = _large_graph(folder, rows)
    numbers = count()
    chance = random.Random(1)
    ends = {"a": "person-00000005", "b": "person-00000009"}

    def insert() -> None:
        graph.mutate(INSERT, params={"n": f"new-{next(numbers)}"})

    def upsert() -> None:
        names = [f"person-{n:08d}" for n in chance.sample(range(rows), 1000)]
        graph.ingest(pa.table({"name": names, "email": names}), "merge", type="Person")

    verbs: dict[str, tuple[Callable[[], object], int, float | None]] = {
        "insert one row": (insert, 20, 30),
        "insert one edge": (lambda: graph.mutate(LINK, params=ends), 20, None),
        "update one row": (lambda: graph.mutate(UPDATE, params={"n": ends["a"]}), 10, None),
        "upsert 1,000 rows": (upsert, 10, 150),
    }
    found = [
        Measure(
            f"{name}, {rows:,} rows there",
            "ms",
            {OURS: times_ms(verb, n, 2)},
            target=setting.promised(target) if target else None,
        )
        for name, (verb, n, target) in verbs.items()
    ]
    graph.optimize(types=["Person"])
    update, n, _ = verbs["update one row"]
    indexed = {OURS: times_ms(update, n, 2)}
    return [*found, Measure(f"update one row, {rows:,} rows there, indexed", "ms", indexed)]


def _large_graph(folder: Path, rows: int) -> Graph:
    """Many people, a third of them knowing the next."""
    graph = new_graph(folder, "large")
    names = [f"person-{n:08d}" for n in range(rows)]
    people = pa.table({"name": names, "age": [n % 100 for n in range(rows)], "email": names})
    for start in range(0, rows, 500_000):
        graph.ingest(people.slice(start, 500_000), type="Person")
    third = rows // 3
    graph.ingest(pa.table({"src": names[:third], "dst": names[1 : third + 1]}), type="Knows")
    return graph


# Ingest


def envelopes(nodes: int, edges: int) -> Iterator[bytes]:
    chance = random.Random(1)
    lines: list[bytes] = []
    for n in range(nodes):
        data = (
            f'{{"name":"person-{n:06d}","age":{n % 90},"email":"p{n}@example.org",'
            f'"born":"1990-01-{n % 28 + 1:02d}","seen":"2024-05-06T07:08:09.123Z",'
            f'"tags":["a","b"],"score":{n / 7}}}'
        )
        lines.append(f'{{"type":"Person","data":{data}}}\n'.encode())
    for _ in range(edges):
        src, dst = chance.randrange(nodes), chance.randrange(nodes)
        lines.append(
            f'{{"edge":"Knows","from":"person-{src:06d}","to":"person-{dst:06d}",'
            f'"data":{{"since":"2024-01-01","weight":0.5}}}}\n'.encode()
        )
    chance.shuffle(lines)
    yield from lines


def _ingest(folder: Path, setting: Setting) -> list[Measure]:
    nodes, edges = int(NODES * setting.scale), int(EDGES * setting.scale)
    path = folder / "input.jsonl"
    with path.open("wb") as file:
        file.writelines(envelopes(nodes, edges))
    seconds: list[float] = []
    grown: list[float] = []
    for number in range(3):
        place = folder / f"ingest-{number}"
        place.mkdir()
        with Worker("inserter", place) as worker:
            worker.call("prepare", SCHEMA)
            before = worker.memory(reset=True)
            seconds.append(worker.time("ingest", path))
            grown.append((worker.memory() - before) / path.stat().st_size)
        shutil.rmtree(place)
    name = f"ingest {nodes:,} nodes, {edges:,} edges"
    size = f"{path.stat().st_size / 2**20:.0f} MiB"
    return [
        Measure(name, "s", {OURS: seconds}, target=setting.promised(3.0), note=f"JSONL of {size}"),
        Measure(
            "memory of an ingest over its input", "times", {OURS: grown}, target=setting.promised(4)
        ),
    ]


# Threads and processes


def _threads(folder: Path) -> list[Measure]:
    graph = new_graph(folder, "threads")
    insert_many(graph, "warm", 3)

    def rate(turn: int, threads: int) -> float:
        workers = [
            threading.Thread(target=insert_many, args=(graph, f"{turn}-{threads}-{n}", EACH))
            for n in range(threads)
        ]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return threads * EACH / (time.perf_counter() - begun)

    return _gain("inserts by so many threads on one branch", "8 threads", rate, 4.0)


def _processes(folder: Path) -> list[Measure]:
    """Processes that begin together, each on a branch of its own, then all on one. What they could
    gain at most shows when they only compute."""
    graph = new_graph(folder, "processes")
    insert_many(graph, "start", 2)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker("inserter", folder / "processes")) for _ in range(CROWDS[-1])
        ]
        for number, worker in enumerate(workers):
            graph.create_branch(f"b{number}")
            worker.call("join", graph.uri, f"b{number}", f"own-{number}")
        alone = _gain(
            "computing alone by so many processes",
            "8 processes, computing alone,",
            lambda _, crowd: _race(workers[:crowd], COMPUTED, "compute"),
            None,
        )
        apart = _gain(
            "by so many processes, a branch each",
            "8 processes, a branch each,",
            lambda _, crowd: _race(workers[:crowd], EACH),
            3.0,
            note=f"processes that only compute: {median(alone[-1].samples[OURS]):.2f}",
        )
        for number, worker in enumerate(workers):
            worker.call("join", graph.uri, "main", f"shared-{number}")
        together = _gain(
            "by so many processes on one branch",
            "8 processes on one branch",
            lambda _, crowd: _race(workers[:crowd], EACH_TOGETHER),
            1.0,
        )
    return alone + apart + together


def _race(workers: list[Worker], each: int, verb: str = "insert_many") -> float:
    """How much workers do in a second that begin together."""
    begun = time.perf_counter()
    for worker in workers:
        worker.begin(verb, each)
    for worker in workers:
        worker.end()
    return len(workers) * each / (time.perf_counter() - begun)


def _gain(
    name: str, crowd: str, rate: Callable[[int, int], float], least: float | None, note: str = ""
) -> list[Measure]:
    """The rates, and what the largest crowd is worth beside one, turn by turn."""
    samples = {str(size): [rate(0, size)] for size in CROWDS}
    one, many = CROWDS[0], CROWDS[-1]
    for turn in range(1, TURNS):
        for size in (one, many):
            samples[str(size)].append(rate(turn, size))
    gains = [m / o for o, m in zip(samples[str(one)], samples[str(many)], strict=True)]
    return [
        Measure(name, "per s", samples, more=True, peers=False),
        Measure(f"{crowd} over one", "times", {OURS: gains}, target=least, more=True, note=note),
    ]
