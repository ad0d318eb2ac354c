"""A long run: workers on one graph, of which some are killed and replaced, under watch."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.activities import SCHEMA
from tests.soak.gauges import Sample, sample
from tests.soak.verdict import expected, growth

import omnigraph

STEADY = ("anna", "ben")
"""Workers that live to the end; their resources are watched."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Report:
    activities: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def soak(folder: Path, seconds: float, seed: int = 1, *, kills: int | None = None) -> Report:
    """Run for some time; the report's `problems` are empty if all is well."""
    uri = str(folder / "graph")
    omnigraph.init(uri, SCHEMA, actor="soak")
    report = Report()
    workers = {name: _start(uri, name, seed, seconds, folder) for name in STEADY}
    try:
        _watch(uri, workers, seconds, seed, folder, report, kills)
    finally:
        for process in workers.values():
            process.kill()
            process.wait()
    _judge(uri, folder, report)
    return report


def _start(uri: str, name: str, seed: int, seconds: float, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [uri, name, f"{seed}", f"{seconds}", str(folder)]
    return subprocess.Popen([sys.executable, "-m", "tests.soak.worker", *arguments], cwd=ROOT)


def _watch(
    uri: str,
    workers: dict[str, subprocess.Popen[bytes]],
    seconds: float,
    seed: int,
    folder: Path,
    report: Report,
    kills: int | None,
) -> None:
    chance = random.Random(seed)
    begun = time.monotonic()
    period = max(0.5, seconds / 120)
    most = kills if kills is not None else max(1, int(seconds / 20))
    next_kill = begun + seconds * chance.uniform(0.1, 0.2)
    victim: subprocess.Popen[bytes] | None = None
    while any(process.poll() is None for process in workers.values()):
        time.sleep(period)
        now = time.monotonic()
        left = seconds - (now - begun)
        pids = {name: process.pid for name, process in workers.items() if process.poll() is None}
        report.samples.append(sample(now - begun, pids, Path(uri)))
        if left > 0 and report.killed < most and now > next_kill:
            if victim is not None:
                victim.kill()
                victim.wait()
                report.killed += 1
            victim = _start(uri, f"victim{report.killed}", seed + report.killed, left, folder)
            next_kill = now + seconds / (most + 1) * chance.uniform(0.6, 1.0)
    if victim is not None:
        victim.kill()
        victim.wait()
        report.killed += 1


def _judge(uri: str, folder: Path, report: Report) -> None:
    for name in STEADY:
        said = folder / f"{name}.json"
        if not said.exists():
            report.problems.append(f"{name} ended without a word")
            continue
        found = json.loads(said.read_text())
        report.activities.update(found["counts"])
        report.problems += found["failures"]
    report.problems += growth(report.samples)
    graph = omnigraph.open(uri, actor="soak")
    rows = graph.query("query q() { match { $n: Note } return { $n.key as key } }").rows()
    keys = [row["key"] for row in rows]
    if len(set(keys)) < len(keys):
        report.problems.append("a row is there twice")
    report.problems += expected(sorted(folder.glob("*.log"))).differences(set(keys))
    report.problems += [str(finding) for finding in graph.verify().findings]


def show(report: Report) -> Sequence[str]:
    lines = [
        f"{report.activities.total()} activities of the workers that lived, {report.killed} killed",
        ", ".join(f"{name}: {n}" for name, n in sorted(report.activities.items())),
    ]
    if report.samples:
        first, last = report.samples[len(report.samples) // 3], report.samples[-1]
        lines += [
            f"{name}: {first.values[name]:.0f} after warm-up, {value:.0f} at the end"
            for name, value in sorted(last.values.items())
            if name in first.values
        ]
    return [*lines, *(f"PROBLEM: {problem}" for problem in report.problems)]
