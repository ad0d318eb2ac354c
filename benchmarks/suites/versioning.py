"""Commits, branches, diffs and merges beside DoltLite; and what a long history costs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from tests.door import ACTOR, age, branch, head, new_graph, write

from benchmarks.measure import AGAIN, OURS, Findings, Measure, timed_s, times_ms
from benchmarks.suites import Setting
from benchmarks.workers import AbsentError, Worker
from omnigraph.commit.branches import delete_branch
from omnigraph.operations.opening import open_graph
from omnigraph.storage.root import GraphRoot

ROWS = 200_000
ROUNDS = 5
YOUNG, OLD = 10, 10_000
ONE = {"A": {"x": 1}}
REPEATS = 40


def run(setting: Setting) -> Findings:
    folder = setting.folder / "versioning"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        workers, skipped = _workers(stack, folder, int(ROWS * setting.scale))
        measures = _beside(workers)
        versions = {s: w.version for s, w in workers.items() if s not in (OURS, AGAIN)}
    measures += _types(folder)
    measures += _flatness(folder, max(100, int(OLD * min(1.0, setting.scale))))
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


def _beside(workers: dict[str, Worker]) -> list[Measure]:
    simple = {"change_one": "update one row and commit", "branch": "create a branch"}
    simple["reopen"] = "open and read one row"
    samples: dict[str, dict[str, list[float]]] = {}
    counts: dict[str, list[int]] = {}
    for number in range(ROUNDS):
        for subject, worker in workers.items():
            worker.call("fork", number)
            counts.setdefault(subject, []).append(worker.call("diff", number))
            for verb in ("diff", "merge"):
                found = samples.setdefault(verb, {}).setdefault(subject, [])
                found.append(1000 * worker.time(verb, number))
            for verb in simple:
                times = worker.times(verb, seconds=0.3, most=8)
                found = samples.setdefault(verb, {}).setdefault(subject, [])
                found += [1000 * seconds for seconds in times]
    same = len({tuple(found) for found in counts.values()}) == 1
    measures = [Measure(name, "ms", samples[verb]) for verb, name in simple.items()]
    measures.append(Measure("diff, 2,000 rows changed", "ms", samples["diff"], same=same))
    measures.append(Measure("merge, 2,000 rows changed on each side", "ms", samples["merge"]))
    return measures


def _types(folder: Path, types: int = 100) -> list[Measure]:
    root = new_graph(str(folder / "types"), types)
    names = [table.name for table in head(root).catalog.nodes]
    write(root, {name: {"x": 1} for name in names})
    made: list[str] = []

    def create() -> None:
        made.append(f"branch-{len(made)}")
        branch(root, made[-1])

    created = times_ms(create, REPEATS)
    deleted = times_ms(lambda: delete_branch(root, made.pop(), ACTOR), REPEATS - 1)
    return [
        Measure(f"create a branch, {types} types", "ms", {OURS: created}),
        Measure(f"delete a branch, {types} types", "ms", {OURS: deleted}),
    ]


def _flatness(folder: Path, commits: int) -> list[Measure]:
    """A young graph and an old one in turns, so that both meet the same moods of the machine."""
    roots = {}
    for label, history in ((f"at {YOUNG} commits", YOUNG), (f"at {commits:,}", commits)):
        roots[label] = new_graph(str(folder / f"aged-{history}"))
        write(roots[label], ONE)
        age(roots[label], history - head(roots[label]).sequence)
    operations: dict[str, Callable[[GraphRoot], object]] = {
        "commit": lambda root: write(root, ONE),
        "open": lambda root: open_graph(root.uri, actor=ACTOR),
        "resolve the head anew": lambda root: head(GraphRoot.at(root.uri)),
    }
    return [_by_age(name, operation, roots) for name, operation in operations.items()]


def _by_age(
    name: str, operation: Callable[[GraphRoot], object], roots: dict[str, GraphRoot]
) -> Measure:
    samples: dict[str, list[float]] = {label: [] for label in roots}
    for turn in range(REPEATS + 2):
        for label, root in roots.items():
            seconds = timed_s(partial(operation, root))
            if turn > 1:
                samples[label].append(1000 * seconds)
    young, old = (median(found) for found in samples.values())
    return Measure(f"{name}, by age", "ms", samples, peers=False, note=f"{old / young:.2f} times")
