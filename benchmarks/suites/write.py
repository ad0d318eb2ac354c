"""Mutations and ingest, with every check, and what threads and processes are worth.

One-row inserts are compared with the peers, each of which makes every insert durable on its own.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pyarrow as pa

import omnigraph
from benchmarks.measure import AGAIN, OURS, Findings, Measure, timed_s, times_ms
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
EACH, EACH_TOGETHER = 40, 12


def run(setting: Setting) -> Findings:
    folder = setting.folder / "write"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    one, skipped, versions = _one_row(folder)
    measures = [one, *_large(folder, int(ROWS * setting.scale)), *_ingest(folder, setting.scale)]
    measures += [_threads(folder), *_processes(folder)]
    return Findings(measures, skipped, versions)


def new_graph(folder: Path, name: str) -> Graph:
    return omnigraph.init(str(folder / name), SCHEMA, actor="bench")


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


# Into many rows


def _large(folder: Path, rows: int) -> list[Measure]:
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
        "update one row": (lambda: graph.mutate(UPDATE, params={"n": ends["a"]}), 8, None),
        "upsert 1,000 rows": (upsert, 8, 150),
    }
    return [
        Measure(f"{name}, {rows:,} rows there", "ms", {OURS: times_ms(verb, n, 2)}, target=target)
        for name, (verb, n, target) in verbs.items()
    ]


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


def _ingest(folder: Path, scale: float) -> list[Measure]:
    nodes, edges = int(NODES * scale), int(EDGES * scale)
    path = folder / "input.jsonl"
    with path.open("wb") as file:
        file.writelines(envelopes(nodes, edges))
    data = path.read_bytes()
    numbers = count()
    seconds = [
        timed_s(lambda: new_graph(folder, f"ingest-{next(numbers)}").ingest(data)) for _ in range(3)
    ]
    target = 3.0 if scale == 1 else None
    name = f"ingest {nodes:,} nodes and {edges:,} edges of JSONL"
    return [Measure(name, "s", {OURS: seconds}, target=target)]


# Threads and processes


def _threads(folder: Path) -> Measure:
    samples: dict[str, list[float]] = {}
    for threads in CROWDS:
        graph = new_graph(folder, f"threads-{threads}")
        insert_many(graph, "warm", 2)
        workers = [
            threading.Thread(target=insert_many, args=(graph, f"t{n}", EACH))
            for n in range(threads)
        ]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        samples[str(threads)] = [threads * EACH / (time.perf_counter() - begun)]
    return Measure(
        "inserts by so many threads on one branch", "per s", samples, more=True, peers=False
    )


def _processes(folder: Path) -> list[Measure]:
    own: dict[str, list[float]] = {}
    shared: dict[str, list[float]] = {}
    for processes in CROWDS:
        graph = new_graph(folder, f"processes-{processes}")
        insert_many(graph, "start", 2)
        branches = [f"b{n}" for n in range(processes)]
        for branch in branches:
            graph.create_branch(branch)
        own[str(processes)] = [_race([(graph.uri, b, b) for b in branches], EACH)]
        together = [(graph.uri, "main", b) for b in branches]
        shared[str(processes)] = [_race(together, EACH_TOGETHER)]
    return [
        Measure("by so many processes, a branch each", "per s", own, more=True, peers=False),
        Measure("by so many processes on one branch", "per s", shared, more=True, peers=False),
    ]


def _race(tasks: list[tuple[str, str, str]], each: int) -> float:
    """Inserts per second of workers that start together, without the time to start them."""
    command = [sys.executable, "-m", "benchmarks.suites.write"]
    workers = [
        subprocess.Popen(
            [*command, *task, str(each)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for task in tasks
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    begun = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.close()
    for worker in workers:
        assert worker.wait() == 0
        assert worker.stdout is not None
        worker.stdout.close()
    return len(tasks) * each / (time.perf_counter() - begun)


def _work(uri: str, branch: str, prefix: str, amount: int) -> None:
    graph = omnigraph.open(uri, branch=branch)
    insert_many(graph, f"{prefix}-warm", 1)
    print("ready", flush=True)
    sys.stdin.readline()
    insert_many(graph, prefix, amount)


if __name__ == "__main__":
    _work(*sys.argv[1:4], int(sys.argv[4]))
