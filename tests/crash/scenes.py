"""What the killed processes do: each scene has a graph to begin with and one operation.

Scenes are run by name in children of the nursery. `act` is where a child dies; if it does not, it
returns an acknowledgement, and then the operation must be there for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.crash.deeds import BETWEEN, DEEDS
from tests.crash.verbs import VERBS
from tests.support.doorgraph import ACTOR, branch, catalog_of, head, new_graph, rows, write

from omnigraph import faults
from omnigraph.commit.branches import delete_branch, rename_branch
from omnigraph.commit.genesis import store_schema
from omnigraph.commit.recovery import sweep
from omnigraph.commit.tags import create_tag
from omnigraph.errors import AlreadyExistsError, BranchNotFoundError, ConflictError
from omnigraph.history.log import BranchLog
from omnigraph.model.commit import CommitKind, TableUnchanged
from omnigraph.model.principal import Principal
from omnigraph.operations.context import Context
from omnigraph.operations.requests import CherryPick, Merge, Rebase, Revert
from omnigraph.operations.verbs import run
from omnigraph.storage.root import GraphRoot

OLD = {"A": {"x": 1}, "B": {"y": 1}, "Link": {"l": 1}}
NEW = {"A": {"x": 2}, "B": {"y": 2}, "Link": {"l": 2}}


@dataclass(frozen=True)
class Scene:
    """`prepare` makes the graph; `act` does the one thing that may be interrupted."""

    prepare: Callable[[str], object]
    act: Callable[[GraphRoot], object]


def _with_old(uri: str) -> None:
    write(new_graph(uri), OLD)


def _with_branch(uri: str) -> None:
    _with_old(uri)
    branch(GraphRoot.at(uri), "f")


def _with_moved_branch(uri: str) -> None:
    _with_branch(uri)
    write(GraphRoot.at(uri), {"A": {"x": 7}}, branch="f")


def _with_two_sides(uri: str) -> None:
    """A branch and main that both went on: A and Link on both, B on the branch alone."""
    _with_branch(uri)
    root = GraphRoot.at(uri)
    write(root, {"A": {"x": 7}, "B": {"y": 7}, "Link": {"l2": 7}}, branch="f")
    write(root, {"A": {"z": 5}, "Link": {"l": 5}})


def _context(root: GraphRoot) -> Context:
    return Context(root, Principal.named(ACTOR))


def _newest(root: GraphRoot, name: str) -> str:
    return head(root, name).commit_id


def _change_schema(root: GraphRoot) -> object:
    larger = catalog_of(3)
    store_schema(root, larger)
    return write(root, NEW, kind=CommitKind.SCHEMA, schema_hash=larger.hash)


def _tag(root: GraphRoot) -> object:
    line = BranchLog(root, "main")
    return create_tag(root, "v1", line, line.state.head, ACTOR)


SCENES: dict[str, Scene] = {
    "one table": Scene(_with_old, lambda root: write(root, {"A": {"x": 2}})),
    "three tables": Scene(_with_old, lambda root: write(root, NEW)),
    "first rows": Scene(new_graph, lambda root: write(root, OLD)),
    "rows and first rows": Scene(
        lambda uri: write(new_graph(uri), {"A": {"x": 1}}), lambda root: write(root, NEW)
    ),
    "first write on a branch": Scene(_with_branch, lambda root: write(root, NEW, branch="f")),
    "later write on a branch": Scene(_with_moved_branch, lambda root: write(root, NEW, branch="f")),
    "merge": Scene(_with_old, lambda root: write(root, NEW, kind=CommitKind.MERGE)),
    "schema": Scene(_with_old, _change_schema),
    "no table": Scene(_with_old, lambda root: write(root, dropped=(1,))),
    "keyed": Scene(_with_old, lambda root: write(root, NEW, idempotency_key="k")),
    "init": Scene(lambda uri: None, lambda root: new_graph(root.uri)),
    "branch create": Scene(_with_old, lambda root: branch(root, "f")),
    "branch delete": Scene(_with_moved_branch, lambda root: delete_branch(root, "f", ACTOR)),
    "branch rename": Scene(_with_moved_branch, lambda root: rename_branch(root, "f", "g", ACTOR)),
    "tag": Scene(_with_old, _tag),
    "merge of two sides": Scene(_with_two_sides, lambda root: run(_context(root), Merge("f"))),
    "fast-forward": Scene(_with_moved_branch, lambda root: run(_context(root), Merge("f"))),
    "revert": Scene(
        _with_two_sides, lambda root: run(_context(root), Revert(_newest(root, "main"), "main"))
    ),
    "cherry-pick": Scene(
        _with_two_sides, lambda root: run(_context(root), CherryPick(_newest(root, "f"), "main"))
    ),
    "rebase": Scene(_with_two_sides, lambda root: run(_context(root), Rebase("f"))),
}


# What these publish lies on a branch that nobody sees yet.
PUBLISHED_UNSEEN = ("rebase",)


def _verb(prepare: Callable[[str], object], act: Callable[[str], object]) -> Scene:
    return Scene(prepare, lambda root: act(root.uri))


SCENES |= {name: _verb(*parts) for name, parts in (VERBS | DEEDS).items()}


def prepare(name: str, uri: str) -> None:
    SCENES[name].prepare(uri)


def prepare_between(name: str, uri: str) -> None:
    BETWEEN[name](uri)


def act(name: str, uri: str) -> str:
    SCENES[name].act(GraphRoot.at(uri))
    return "done"


def perform(name: str, uri: str) -> str:
    """Both, in one process: faults count from the first step of `prepare`."""
    prepare(name, uri)
    return act(name, uri)


def watch(name: str, uri: str) -> dict[str, int]:
    """Act without faults and say how often each fault point was passed."""
    with counted() as passed:
        act(name, uri)
    return passed


def reopen(uri: str) -> list[str]:
    return [str(outcome) for outcome in sweep(GraphRoot.at(uri))]


def watch_reopen(uri: str) -> dict[str, int]:
    with counted() as passed:
        reopen(uri)
    return passed


def write_again(uri: str) -> str:
    """A writer that comes across what another has left."""
    write(GraphRoot.at(uri), {"Link": {"z": 26}})
    return "done"


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How often each fault point is passed in a block."""
    points = [faults.arm(point, faults.Delay(0)) for point in faults.POINTS]
    passed: Counter[str] = Counter()
    try:
        yield passed
    finally:
        for point in points:
            if point.hits:
                passed[point.point] = point.hits
            faults.disarm(point)


@contextmanager
def armed(text: str) -> Iterator[None]:
    """Arm what the variable `OMNIGRAPH_FAULTS` would."""
    with ExitStack() as stack:
        for point, action in faults.parse(text):
            stack.enter_context(faults.armed(point, action))
        yield


def loop(uri: str, announce: str, count: int) -> Any:
    """Commit to two tables again and again, writing each acknowledgement down."""
    root = GraphRoot.at(uri)
    with open(announce, "a", buffering=1) as said:
        for n in range(count):
            write(root, {"A": {"x": n}, "B": {"y": n}})
            said.write(f"{n}\n")
    return count


def increment(uri: str, times: int) -> int:
    """Read a number, add one, write it back if nobody else has; returns how often others had."""
    root = GraphRoot.at(uri)
    conflicts = 0
    for _ in range(times):
        while True:
            base = head(root)
            seen = rows(root, base)["A"]["x"]
            unchanged = TableUnchanged(1, base.tables[1].logical)
            try:
                write(root, {"A": {"x": seen + 1}}, base=base, requires=(unchanged,))
                break
            except ConflictError as error:
                if not error.retryable:
                    raise
                conflicts += 1
    return conflicts


def write_often(uri: str, name: str, times: int) -> str:
    """Write to a branch; any conflict at all is an error."""
    root = GraphRoot.at(uri)
    for n in range(times):
        write(root, {"A": {"x": n}, "B": {"y": n}}, branch=name)
    return "done"


def read_often(uri: str, until: int) -> int:
    """Look again and again until a number is reached: both tables always agree, and never go
    back. Returns how many different states were seen."""
    root = GraphRoot.at(uri)
    last, states = -1, set()
    while last < until:
        shown = rows(root)
        assert shown["A"]["x"] == shown["B"]["y"], shown
        assert shown["A"]["x"] >= last
        last = shown["A"]["x"]
        states.add(last)
    return len(states)


def create_branch(uri: str, name: str) -> str | None:
    """Try to create a branch; returns its id if we won."""
    try:
        return branch(GraphRoot.at(uri), name).id
    except AlreadyExistsError:
        return None


def churn(uri: str, name: str, times: int) -> int:
    """Create, write to and delete one branch, beside others that do the same."""
    root = GraphRoot.at(uri)
    made = 0
    for n in range(times):
        try:
            branch(root, name)
            write(root, {"A": {"x": n}}, branch=name)
            made += 1
            delete_branch(root, name, ACTOR)
        except (AlreadyExistsError, BranchNotFoundError, ConflictError):
            continue
    return made
