"""How far memory grows beyond what an idle process has, beside the data that had to be touched.

The data of a question is what Arrow needs for the columns and edges that it looks at, ids as text,
once. Peaks are taken inside each process; reading files through the system's cache does not count.
"""

from __future__ import annotations

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
        grown = {s: [_growth(s, setting, data.name, [question])] for s in systems}
        measures += _of(name, grown, touched / 2**20, setting.scale)
    whole = sum(pq.read_table(file).nbytes for file in data.glob("*.parquet"))
    grown = {s: [_growth(s, setting, data.name, list(QUESTIONS))] for s in systems}
    measures += _of("all questions", grown, whole / 2**20, setting.scale)
    return Findings(measures, skipped, versions)


def _of(name: str, grown: dict[str, list[float]], touched: float, scale: float) -> list[Measure]:
    over = {OURS: [grown[OURS][0] / touched]}
    target = MOST if scale >= 1 else None  # below, fixed costs are most of it
    return [
        Measure(f"growth, {name}", "MiB", grown, note=f"touches {touched:.0f} MiB"),
        Measure(f"growth over data, {name}", "times", over, target=target),
    ]


def _growth(system: str, setting: Setting, name: str, questions: list[object]) -> float:
    """MiB that the first run of questions adds to a process that has only opened the database."""
    with Worker(system, setting.folder / f"{name}-{system}") as worker:
        worker.call("warm")
        before = worker.memory(reset=True)
        for question in questions:
            worker.call("ask", question)
        return float(worker.memory() - before) / 2**20
