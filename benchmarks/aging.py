"""What commits, branches, merges and opening cost, with many types, and with a long past.

Every commit of the past went through the write door with a row of its own, as users' commits do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from tests.support.doorgraph import ACTOR, branch, head, new_graph, write

import omnigraph
from benchmarks.measure import AGAIN, OURS, Measure, timed_s, times_ms
from omnigraph.commit.branches import delete_branch
from omnigraph.graph import Graph
from omnigraph.operations.lifecycle import open_graph
from omnigraph.storage.root import GraphRoot

YOUNG = 10
ONE = {"A": {"x": 1}}
THREE = {"A": {"x": 1}, "B": {"y": 1}, "Link": {"l": 1}}
REPEATS, WARM = 30, 2
MERGES = 12  # each needs branches of its own, which take longer than what is measured
FLAT = 1.2
Samples = dict[str, list[float]]  # milliseconds, by what was measured


def commits(folder: Path) -> list[Measure]:
    """The door alone, without a query in front of it; and opening, and resolving what is open."""
    root = new_graph(str(folder / "door"))
    write(root, THREE)
    operations: dict[str, tuple[Callable[[], object], float]] = {
        "commit one row of one table": (lambda: write(root, ONE), 25),
        "commit one row of three tables": (lambda: write(root, THREE), 45),
        "open a graph": (lambda: open_graph(root.uri, actor=ACTOR), 15),
        "resolve a snapshot": (lambda: head(root), 1),
    }
    return [
        Measure(
            name,
            "ms",
            {subject: times_ms(operation, REPEATS, 3) for subject in (OURS, AGAIN)},
            target=target,
        )
        for name, (operation, target) in operations.items()
    ]


def types(folder: Path, count: int = 100) -> list[Measure]:
    root = new_graph(str(folder / "types"), count)
    names = [table.name for table in head(root).catalog.nodes]
    write(root, {name: {"x": 1} for name in names})
    made: list[str] = []

    def create() -> None:
        made.append(f"branch-{len(made)}")
        branch(root, made[-1])

    created = times_ms(create, REPEATS)
    deleted = times_ms(lambda: delete_branch(root, made.pop(), ACTOR), REPEATS - 1)
    return [
        Measure(f"create a branch, {count} types", "ms", {OURS: created}, target=10),
        Measure(f"delete a branch, {count} types", "ms", {OURS: deleted}, target=20),
    ]


def by_age(folder: Path, history: int) -> list[Measure]:
    """A young graph and an old one in turns, so that both meet the same moods of the machine."""
    roots = {}
    for label, length in ((f"at {YOUNG} commits", YOUNG), (f"at {history:,}", history)):
        root = roots[label] = new_graph(str(folder / f"aged-{length}"))
        while head(root).sequence < length:
            write(root, ONE)
    operations: dict[str, Callable[[GraphRoot], object]] = {
        "commit": lambda root: write(root, ONE),
        "open": lambda root: open_graph(root.uri, actor=ACTOR),
        "resolve the head anew": lambda root: head(GraphRoot.at(root.uri)),
    }
    samples = {name: _in_turns(action, roots) for name, action in operations.items()}
    samples |= _merges_in_turns(roots)
    return [measure for name, found in samples.items() for measure in _compared(name, found)]


def _in_turns(operation: Callable[[GraphRoot], object], roots: dict[str, GraphRoot]) -> Samples:
    samples: Samples = {label: [] for label in roots}
    for turn in range(WARM + REPEATS):
        for label, root in roots.items():
            seconds = timed_s(partial(operation, root))
            if turn >= WARM:
                samples[label].append(1000 * seconds)
    return samples


def _merges_in_turns(roots: dict[str, GraphRoot]) -> dict[str, Samples]:
    """The same for diffs and merges, each time between branches that were made for it."""
    found: dict[str, Samples] = {}
    for turn in range(WARM + MERGES):
        for label, root in roots.items():
            graph = omnigraph.open(root.uri, actor=ACTOR)
            for name, operation in _of_branches(graph, *_fork(root, turn)).items():
                seconds = timed_s(operation)
                if turn >= WARM:
                    found.setdefault(name, {}).setdefault(label, []).append(1000 * seconds)
    return found


def _fork(root: GraphRoot, number: int) -> tuple[str, str, str]:
    """Two branches that changed different rows of one table, and one without changes."""
    ours, theirs, still = (f"{name}-{number}" for name in ("ours", "theirs", "still"))
    for name in (ours, theirs, still):
        branch(root, name)
    write(root, {"A": {"x": 2}}, branch=ours)
    write(root, {"A": {"z": 2}}, branch=theirs)
    return ours, theirs, still


def _of_branches(
    graph: Graph, ours: str, theirs: str, still: str
) -> dict[str, Callable[[], object]]:
    return {
        "diff": lambda: list(graph.diff("main", ours)),
        "preview a merge": lambda: graph.on(ours).preview_merge(theirs),
        "fast-forward": lambda: graph.on(still).merge(ours),
        "merge": lambda: graph.on(ours).merge(theirs),
    }


def _compared(name: str, samples: Samples) -> list[Measure]:
    (young, early), (old, late) = samples.items()
    # Of medians, because one slow commit of thirty would decide a ratio taken turn by turn.
    grown = [median(late) / median(early)]
    return [
        Measure(f"{name}, by age", "ms", samples, peers=False),
        Measure(f"{name}: {old} over {young}", "times", {OURS: grown}, target=FLAT),
    ]
