"""The social graph on disk, and the systems that answer questions about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.generate import social_graph
from benchmarks.measure import AGAIN, OURS
from benchmarks.questions import Question
from benchmarks.workers import AbsentError, Worker

_TOOK = "took.json"  # written last: what is beside it is whole
SYSTEMS = (OURS, "kuzu", "ladybug", "duckdb")


@dataclass
class Crowd:
    """Running workers by subject, what loading took, and who is missing."""

    workers: dict[str, Worker] = field(default_factory=dict)
    loading: dict[str, float] = field(default_factory=dict)
    settling: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def versions(self) -> dict[str, str]:
        return {s: w.version for s, w in self.workers.items() if s not in (OURS, AGAIN)}


def write_social(folder: Path, scale: float, seed: int) -> Path:
    """The graph's tables as Parquet files, one per type; made once in a folder."""
    data = folder / f"social-{scale:g}-{seed}"
    if not data.exists():
        unfinished = data.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for name, table in social_graph(scale, seed).items():
            pq.write_table(table, unfinished / f"{name}.parquet")
        unfinished.rename(data)
    return data


@contextmanager
def crowd(
    folder: Path, data: Path, systems: Sequence[str] = SYSTEMS, *, again: bool = False
) -> Iterator[Crowd]:
    """Every system that works here, loaded; those that another suite has loaded into the folder are
    used as they are, and what loading them took then is known. `again`: ours a second time, over
    the same graph."""
    found = Crowd()
    with ExitStack() as stack:
        for system in systems:
            place = folder / f"{data.name}-{system}"
            try:
                worker = stack.enter_context(_loaded(system, place, data))
            except (AbsentError, RuntimeError) as reason:
                found.skipped[system] = _first_words(reason)
                continue
            found.workers[system] = worker
            took = json.loads((place / _TOOK).read_text())
            found.loading[system], found.settling[system] = took["load"], took["settle"]
        if again:
            place = folder / f"{data.name}-{OURS}"
            found.workers[AGAIN] = stack.enter_context(Worker(OURS, place))
        yield found


def _loaded(system: str, place: Path, data: Path) -> Worker:
    if (place / _TOOK).exists():
        return Worker(system, place)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    worker = Worker(system, place)
    try:
        took = {"load": worker.time("load", data), "settle": worker.time("settle")}
    except RuntimeError:
        worker.close()
        raise
    (place / _TOOK).write_text(json.dumps(took))
    return worker


def same_answers(answers: dict[str, list[tuple[Any, ...]]], question: Question) -> bool | None:
    """None if nobody else was there to answer."""
    if not set(answers) - {OURS, AGAIN}:
        return None
    found = [_comparable(rows, question.ordered) for rows in answers.values()]
    return all(rows == found[0] for rows in found)


def _comparable(rows: list[tuple[Any, ...]], ordered: bool) -> list[tuple[Any, ...]]:
    plain = [tuple(_plain(value) for value in row) for row in rows]
    return plain if ordered else sorted(plain)


def _plain(value: Any) -> Any:
    """Decimals are whole numbers here; averages agree to nine digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value if isinstance(value, str | bool | int | None) else int(value)


def _first_words(reason: Exception) -> str:
    return str(reason).splitlines()[0][:120]
