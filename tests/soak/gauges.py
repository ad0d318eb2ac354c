"""Resources of a long run, sampled: processes by /proc, the graph by its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CONTROL = ("__locks", "__tmp", "__recovery", "__staging", "__refs", "__keys")


@dataclass(frozen=True)
class Sample:
    """`values` by gauge: `<process> memory` in MiB, `<process> files`, `disk`, `__locks`, …"""

    at: float
    values: dict[str, float]


def sample(at: float, processes: dict[str, int], graph: Path) -> Sample:
    values: dict[str, float] = {}
    for name, pid in processes.items():
        with suppress(OSError, KeyError):  # it has just ended; a zombie has no memory
            values |= _process(name, pid)
    values["disk MiB"] = sum(_sizes(graph)) / 2**20
    for folder in CONTROL:
        values[f"files in {folder}"] = sum(
            1 for file in (graph / folder).rglob("*") if _counts(file)
        )
    return Sample(at, values)


def _counts(file: Path) -> bool:
    """Locks of control objects are striped: there is a fixed number of them."""
    return not file.name.startswith("objects-")


def _process(name: str, pid: int) -> dict[str, float]:
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return {
        f"memory of {name} MiB": int(status["VmRSS"].split()[0]) / 1024,
        f"threads of {name}": int(status["Threads"]),
        f"open files of {name}": len(os.listdir(f"/proc/{pid}/fd")),
    }


def _sizes(graph: Path) -> Iterator[int]:
    for folder, _, files in os.walk(graph):
        for file in files:
            with suppress(OSError):  # removed meanwhile
                yield os.stat(os.path.join(folder, file)).st_size
