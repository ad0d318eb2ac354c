"""Commits, branches, diffs and merges beside DoltLite, over a million rows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.aging import by_age, commits, types
from benchmarks.measure import AGAIN, OURS, Findings, Measure
from benchmarks.suites import Setting
from benchmarks.workers import AbsentError, Worker

ROWS = 1_000_000
LEAST_ROWS = 10_000  # both sides of a merge change 2,000 of them
ROUNDS = 5
OLD, OLD_IN_FULL = 1_000, 10_000
# What is done once in a round, on branches made for it, with what it may take.
ONCE = {
    "diff": ("diff, 2,000", 40.0),
    "preview": ("preview of a merge, 2,000 a side", 60.0),
    "forward": ("fast-forward, 2,000", 30.0),
    "merge": ("merge, 2,000 a side", 100.0),
}
OFTEN = {
    "change_one": "update one row and commit",
    "branch": "create a branch",
    "reopen": "open and read one row",
}
OURS_ALONE = ("preview",)  # DoltLite has no such thing


def run(setting: Setting) -> Findings:
    folder = setting.folder / "versioning"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = max(LEAST_ROWS, int(ROWS * setting.scale))
    with ExitStack() as stack:
        workers, skipped = _workers(stack, folder, rows)
        measures = _beside(workers, setting, rows)
        versions = {s: w.version for s, w in workers.items() if s not in (OURS, AGAIN)}
    measures += _memory(folder, (rows // 10, rows, *([4 * rows] if setting.full else [])))
    measures += [*commits(folder), *types(folder)]
    old = OLD_IN_FULL if setting.full else OLD
    measures += by_age(folder, max(100, int(old * min(1.0, setting.scale))))
    return Findings(measures, skipped, versions)


def _workers(stack: ExitStack, folder: Path, rows: int) -> tuple[dict[str, Worker], dict[str, str]]:
    workers: dict[str, Worker] = {}
    skipped: dict[str, str] = {}
    for subject, system in ((OURS, "versions"), ("doltlite", "doltlite"), (AGAIN, "versions")):
        place = folder / subject.replace(" ", "-")
        place.mkdir()
        try:
            worker = stack.enter_context(Worker(system, place))
            worker.call("fill", rows)
            worker.call("change_one")
        except (AbsentError, RuntimeError) as reason:
            skipped[subject] = str(reason).splitlines()[0][:120]
            continue
        workers[subject] = worker
    return workers, skipped


def _beside(workers: dict[str, Worker], setting: Setting, rows: int) -> list[Measure]:
    samples: dict[str, dict[str, list[float]]] = {verb: {} for verb in (*ONCE, *OFTEN)}
    answers: dict[str, list[tuple[int, int]]] = {}
    for number in range(ROUNDS + 1):  # the first warms up
        for subject, worker in workers.items():
            worker.call("fork", number)
            found = _round(subject, worker, number)
            # Asked again, for the answer: what is timed is the first time.
            count = worker.call("diff", number)
            answers.setdefault(subject, []).append((count, worker.call("merged", number)))
            for verb, times in found.items() if number else ():
                samples[verb].setdefault(subject, []).extend(1000 * s for s in times)
    rivals = set(workers) - {OURS, AGAIN}
    same = len({tuple(found) for found in answers.values()}) == 1 if rivals else None
    return [
        *(Measure(name, "ms", samples[verb]) for verb, name in OFTEN.items()),
        *(
            Measure(
                f"{name} of {rows:,} rows",
                "ms",
                samples[verb],
                target=setting.promised(target),
                same=same if verb in ("diff", "merge") else None,
            )
            for verb, (name, target) in ONCE.items()
        ),
    ]


def _round(subject: str, worker: Worker, number: int) -> dict[str, list[float]]:
    found = {
        verb: [worker.time(verb, number)]
        for verb in ONCE
        if verb not in OURS_ALONE or subject in (OURS, AGAIN)
    }
    # A number of times, not a span of time: everybody's rows must be the same in the next round.
    return found | {verb: worker.times(verb, seconds=60, most=5) for verb in OFTEN}


def _memory(folder: Path, sizes: Sequence[int]) -> list[Measure]:
    """What a merge adds to a process, over tables of some sizes. Rows lie scattered: over a small
    table their blocks are shared, so that the least size takes less than the others."""
    samples: dict[str, list[float]] = {}
    for count in sizes:
        if count < LEAST_ROWS:
            continue
        place = folder / f"memory-{count}"
        place.mkdir()
        with Worker("versions", place) as worker:
            worker.call("fill", count)
            worker.call("fork", 0)
        with Worker("versions", place) as worker:
            worker.call("reopen")
            before = worker.memory(reset=True)
            worker.call("merge", 0)
            samples[f"{count:,} rows"] = [(worker.memory() - before) / 2**20]
    return [Measure("growth of memory by a merge", "MiB", samples, peers=False)]
