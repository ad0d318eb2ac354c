"""How far memory grows beyond what an idle process has, beside the data that had to be touched.

The data of a question is what Arrow needs for the columns and edges that it looks at, ids as text,
once. Peaks are taken inside each process; reading files through the system's cache does not count.
Allocators may take memory in huge pages, of 2 MiB each however little is in one: how much of our
growth lies in such pages is noted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from benchmarks.measure import OURS, Findings, Measure
from benchmarks.questions import QUESTIONS
from benchmarks.social import crowd, write_social
from benchmarks.suites import Setting
from benchmarks.workers import Worker

MOST = 1.5
TOUCHED = {
    "8 paths of two hops": {"Person": ("handle",), "Follows": ("from", "to")},
    "4 people of an age, by country": {
        "Person": ("handle", "age"),
        "City": ("name",),
        "State": ("name",),
        "Country": ("name",),
        "LivesIn": ("from", "to"),
        "CityIn": ("from", "to"),
        "StateIn": ("from", "to"),
    },
}


def run(setting: Setting) -> Findings:
    data = write_social(setting.folder, setting.scale, setting.seed)
    with crowd(setting.folder, data) as found:
        systems, skipped, versions = list(found.workers), found.skipped, found.versions
    measures = []
    for name, columns in TOUCHED.items():
        question = next(q for q in QUESTIONS if q.name == name)
        touched = sum(
            pq.read_table(data / f"{t}.parquet", columns=list(c)).nbytes for t, c in columns.items()
        )
        grown = {s: _growth(s, setting, data.name, [question]) for s in systems}
        measures += _of(name, grown, touched / 2**20, setting.scale)
    whole = sum(pq.read_table(file).nbytes for file in data.glob("*.parquet"))
    grown = {s: _growth(s, setting, data.name, list(QUESTIONS)) for s in systems}
    measures += _of("all questions", grown, whole / 2**20, setting.scale)
    return Findings(measures, skipped, versions)


@dataclass(frozen=True)
class Growth:
    """In MiB: how far memory grew, and how much of it lies in huge pages."""

    whole: float
    huge: float


def _of(name: str, grown: dict[str, Growth], touched: float, scale: float) -> list[Measure]:
    ours = grown[OURS]
    target = MOST if scale >= 1 else None  # below, fixed costs are most of it
    note = f"touches {touched:.0f} MiB; ours has {ours.huge:.0f} MiB in huge pages"
    samples = {system: [growth.whole] for system, growth in grown.items()}
    over = {OURS: [ours.whole / touched]}
    return [
        Measure(f"growth, {name}", "MiB", samples, note=note),
        Measure(f"growth over data, {name}", "times", over, target=target),
    ]


def _growth(system: str, setting: Setting, name: str, questions: list[object]) -> Growth:
    """What the first run of questions adds to a process that has only opened the database."""
    with Worker(system, setting.folder / f"{name}-{system}") as worker:
        worker.call("warm")
        huge = worker.huge_pages()
        before = worker.memory(reset=True)
        for question in questions:
            worker.call("ask", question)
        return Growth((worker.memory() - before) / 2**20, (worker.huge_pages() - huge) / 2**20)
