"""One case of the crash matrix: a graph, a kill, what is seen before and after recovery."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

from tests.crash import scenes
from tests.crash.nursery import Nursery
from tests.support.doorgraph import (
    ACTOR,
    audit_rows,
    branch,
    head,
    log_of,
    new_graph,
    pending,
    rows,
    write,
)

from omnigraph.commit.branches import delete_branch
from omnigraph.commit.recovery import sweep
from omnigraph.errors import GraphNotFoundError
from omnigraph.history.refs import Branch, list_branches, list_tags
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.table import open_table
from omnigraph.storage.tableforks import owner_of
from omnigraph.storage.tablehead import version_exists


@dataclass(frozen=True)
class View:
    """Everything that a reader can see of a graph, without ids and times."""

    branches: dict[str, dict[str, dict[str, dict[str, int | None]]]]
    types: tuple[tuple[str, ...], ...]
    tags: tuple[str, ...]


def view(uri: str) -> View | None:
    """What a read-only opener sees, None if there is no graph."""
    root = GraphRoot.at(uri)
    try:
        tables = list(head(root).catalog.tables())
    except GraphNotFoundError:
        return None
    # A rebase works on a branch of its own, which a crash may leave for a person to delete.
    names = [b.name for b in list_branches(root) if not b.name.startswith("rebase/")]
    return View(
        {name: values(root, name) for name in names},
        tuple((table.name, *(p.name for p in table.properties)) for table in tables),
        tuple(tag.name for tag in list_tags(root)),
    )


def values(root: GraphRoot, name: str) -> dict[str, dict[str, dict[str, int | None]]]:
    """What a branch shows, as `{type: {id: {property: value}}}`."""
    shown, found = head(root, name), {}
    for table in shown.catalog.tables():
        version = shown.table(table.id)
        if version is not None:
            columns = {item.column: item.name for item in table.properties}
            read = open_table(root.location, version).read(["id", *columns]).to_pylist()
            found[table.name] = {
                row["id"]: {name: row[column] for column, name in columns.items()}
                for row in sorted(read, key=lambda row: str(row["id"]))
            }
    return found


@cache
def views(scene: str, folder: Path) -> tuple[View | None, View | None]:
    """What is seen before and after a scene that nobody interrupts."""
    uri = str(folder / uuid4().hex)
    scenes.prepare(scene, uri)
    before = view(uri)
    scenes.act(scene, uri)
    return before, view(uri)


class Graph:
    """One graph of one case, from its making to the last look at it."""

    def __init__(self, nursery: Nursery, scene: str, folder: Path, place: str = "") -> None:
        self.nursery = nursery
        self.scene = scene
        self.before, self.after = views(scene, folder)
        self.uri = f"{place or folder}/{uuid4().hex}"
        self.interrupted = 0
        scenes.prepare(scene, self.uri)
        assert view(self.uri) == self.before

    def kill(self, point: str, nth: int) -> None:
        """Kill the scene's operation at a point, and look at what readers see before recovery."""
        ending = self.nursery.run("act", self.scene, self.uri, faults=f"{point}=kill@{nth}")
        assert ending.killed, f"{point} was not reached: {ending}"
        self.seen = view(self.uri)
        assert self.seen in (self.before, self.after), "half of an operation is visible"
        published = "after_publish" in point or "disarm" in point
        if published and self.scene not in scenes.PUBLISHED_UNSEEN:
            assert self.seen == self.after
        self.interrupted = len(pending(GraphRoot.at(self.uri)))

    def check_recovered(self) -> None:
        root = GraphRoot.at(self.uri)
        assert sweep(root) == []
        if self.scene.startswith("verb repair"):
            scenes.act(self.scene, self.uri)  # what it was called for is still to be done
        shown = view(self.uri)
        assert shown in (self.before, self.after)
        if self.seen == self.after:
            assert shown == self.after, "what was visible is gone"
        if shown is None:
            new_graph(self.uri)
        assert pending(root) == []
        assert len(audit_rows(root)) == self.interrupted
        for each in list_branches(root):
            self._check_branch(root, each)
        self._check_writable(root)

    def remove(self) -> None:
        """Make room; what lies in a bucket goes with its server."""
        shutil.rmtree(self.uri, ignore_errors=True)

    def _check_branch(self, root: GraphRoot, each: Branch) -> None:
        log = log_of(root, each.name)
        assert len({commit.id for commit in log}) == len(log), "a commit is there twice"
        recovered = [c for c in log if c.actor == RECOVERY_ACTOR]
        assert len(recovered) <= self.interrupted
        for version in head(root, each.name).tables.values():
            if owner_of(version) == each.id:
                next_one = (version.path, version.fork, version.version + 1)
                assert not version_exists(root, *next_one), f"{version} has drifted"

    def _check_writable(self, root: GraphRoot) -> None:
        branch(root, "afterwards")
        for each in list_branches(root):
            before = rows(root, each.name)
            tables = {name: {"new": 1} for name in ("A", "B", "Link")}
            write(root, tables, branch=each.name)
            expected = {name: {**before.get(name, {}), "new": 1} for name in tables}
            assert rows(GraphRoot.at(self.uri), each.name) == {**before, **expected}
        delete_branch(root, "afterwards", ACTOR)
        assert pending(root) == []
        assert len(audit_rows(root)) == self.interrupted


def run_case(
    nursery: Nursery,
    folder: Path,
    scene: str,
    point: str,
    nth: int,
    place: str = "",
    again: bool = True,
) -> None:
    """Kill a scene at a point and recover it; then, with `again`, kill that recovery at each of its
    points. Graphs are made below `place`, or in the folder."""
    place = place or str(folder)
    graph = Graph(nursery, scene, folder, place)
    graph.kill(point, nth)
    passed: dict[str, int] = nursery.run("watch_reopen", graph.uri).result()
    graph.check_recovered()
    graph.remove()
    for inner, count in passed.items() if again else ():
        for time in range(1, count + 1):
            graph = Graph(nursery, scene, folder, place)
            graph.kill(point, nth)
            ending = nursery.run("reopen", graph.uri, faults=f"{inner}=kill@{time}")
            assert ending.killed, f"{inner} was not reached: {ending}"
            assert view(graph.uri) in (graph.before, graph.after)
            nursery.run("reopen", graph.uri).result()
            graph.check_recovered()
            graph.remove()
