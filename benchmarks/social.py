"""The social graph on disk, and the systems that answer questions about it."""

from __future__ import annotations

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
    """The graph's tables as Parquet files, one per type."""
    data = folder / f"social-{scale:g}"
    if not data.exists():
        data.mkdir(parents=True)
        for name, table in social_graph(scale, seed).items():
            pq.write_table(table, data / f"{name}.parquet")
    return data


@contextmanager
def crowd(
    folder: Path, data: Path, systems: Sequence[str] = SYSTEMS, *, again: bool = False
) -> Iterator[Crowd]:
    """Every system that works here, loaded. `again`: ours a second time, over the same graph."""
    found = Crowd()
    with ExitStack() as stack:
        for system in systems:
            place = folder / f"{data.name}-{system}"
            fresh = not place.exists()
            place.mkdir(exist_ok=True)
            try:
                worker = stack.enter_context(Worker(system, place))
                if fresh:
                    found.loading[system] = worker.time("load", data)
                    found.settling[system] = worker.time("settle")
            except (AbsentError, RuntimeError) as reason:
                found.skipped[system] = _first_words(reason)
                continue
            found.workers[system] = worker
        if again:
            place = folder / f"{data.name}-{OURS}"
            found.workers[AGAIN] = stack.enter_context(Worker(OURS, place))
        yield found


def same_answers(answers: dict[str, list[tuple[Any, ...]]], question: Question) -> bool:
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
