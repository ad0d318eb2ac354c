"""How long commands take in a new process, from the first byte of Python to the last of output.

A load that starts Spark is compared with a program that does nothing but start the same Spark. One
that names no Spark does so few rows in its own process, which is told beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import omnigraph
from benchmarks.measure import AGAIN, OURS, Findings, Measure, timed_s
from benchmarks.pipeline import SCHEMA, write_jsonl
from benchmarks.suites import Setting

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
QUESTION = "query q() { match { $p: Person $p knows $q } return { $p.name, $q.name } }"
EMPTY = (
    "from omnigraph.engines.spark.session import get_session;"
    "from omnigraph.engines.spark.settings import read_settings;"
    "get_session(read_settings({master!r}))"
)
MASTER = "local[2]"
ROWS = 10
UNCOUNTED, COLD, WARM, QUICK = 2, 4, 4, 8


def run(setting: Setting) -> Findings:
    folder = setting.folder / "start"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    graph, file = folder / "graph", folder / "ten.jsonl"
    write_jsonl(file, ROWS - 2, 2)
    omnigraph.init(str(graph), SCHEMA).ingest(file)
    measures = [
        _quick("omnigraph --help", ["--help"], 150),
        _quick("omnigraph query", ["query", "-e", QUESTION, "--store", str(graph)], 900),
    ]
    load = [PROGRAM, "load", str(graph), "--data", str(file), "--mode", "merge"]
    try:
        measures += [*_cold(load), _resident(load, folder)]
    except FailedError as reason:
        return Findings(measures, {"Spark": str(reason)})
    return Findings(measures)


class FailedError(Exception):
    """A command that failed, in its own last words."""


def _quick(name: str, arguments: list[str], target: float) -> Measure:
    action = partial(_run, [PROGRAM, *arguments], {})
    action()
    samples: dict[str, list[float]] = {OURS: [], AGAIN: []}
    for _ in range(QUICK):
        for found in samples.values():
            found.append(1000 * timed_s(action))
    return Measure(f"`{name}`", "ms", samples, target=target)


def _cold(load: list[str]) -> list[Measure]:
    """All in turns, after some of each: the archive of Java classes is written behind the first and
    used from the third on."""
    environ = {"OMNIGRAPH_SPARK_RESIDENT": "off"}
    commands = {
        "an empty session": [sys.executable, "-c", EMPTY.format(master=MASTER)],
        f"`omnigraph load --master {MASTER}`": [*load, "--master", MASTER],
        "`omnigraph load`": load,
    }
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(UNCOUNTED + COLD):
        for name, command in commands.items():
            seconds = timed_s(partial(_run, command, environ))
            if turn >= UNCOUNTED:
                samples[name].append(seconds)
    empty, loaded, _ = samples.values()
    above = [mine - least for mine, least in zip(loaded, empty, strict=True)]
    return [
        Measure("cold `omnigraph load` of ten rows", "s", samples, peers=False),
        Measure("a load that starts Spark, above an empty session", "s", {OURS: above}, target=2),
    ]


def _resident(load: list[str], folder: Path) -> Measure:
    environ = {"OMNIGRAPH_SPARK_RESIDENT": str(folder / "resident.json")}
    _run([PROGRAM, "spark", "start"], environ)
    try:
        action = partial(_run, load, environ)
        action()
        seconds = [timed_s(action) for _ in range(WARM)]
    finally:
        _run([PROGRAM, "spark", "stop"], environ)
    return Measure("load of ten rows, resident session", "s", {OURS: seconds}, target=3.5)


def _run(command: list[str], environ: Mapping[str, str]) -> None:
    # Bytecode is kept, as it is for users; a shell may have said otherwise.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, env={**inherited, **environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "no words").splitlines()
        raise FailedError(f"{Path(command[0]).name} {command[1]}: {words[-1]}")
