"""Ancestry of table versions: the common ancestor of two versions.

Where a fork began is read from the file that Lance keeps for it: to list a table's forks reads the
files of all of them, and there is one for every branch that wrote to the table.

Guarantees: a fork is asked for once and remembered, since it never changes where it began; a
version outside any known line gives None.
Deliberately absent: rows.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import open_line


@dataclass(frozen=True, slots=True)
class Point:
    """A version on a line of one table."""

    fork: str | None
    version: int

    @staticmethod
    def of(version: TableVersion) -> Point:
        return Point(version.fork, version.version)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of versions on one line."""

    fork: str | None
    begin: int
    end: int


@dataclass(frozen=True)
class Meeting:
    """The newest version that two versions both grew from, and the ways from it to each."""

    point: Point
    to_before: tuple[Span, ...]
    to_after: tuple[Span, ...]


def meeting_of(root: GraphRoot, before: TableVersion, after: TableVersion) -> Meeting | None:
    if before.path != after.path or _is_of_another_graph(before, after):
        return None
    left, right = _descent(root, before), _descent(root, after)
    if left is None or right is None:
        return None
    reached = {point.fork: point.version for point in right}
    for point in left:
        if point.fork in reached:
            meeting = Point(point.fork, min(point.version, reached[point.fork]))
            return Meeting(meeting, _way(left, meeting), _way(right, meeting))
    return None


def _is_of_another_graph(before: TableVersion, after: TableVersion) -> bool:
    """Whether the graph was replaced between the reading of the two."""
    labels = {before.incarnation, after.incarnation}
    return len(labels) == 2 and "" not in labels


def _descent(root: GraphRoot, version: TableVersion) -> list[Point] | None:
    """The version itself, then where its line was forked from, and so on to the first line."""
    points = [Point.of(version)]
    while points[-1].fork is not None:
        parent = _parents.of(root, version.path, points[-1].fork)
        if parent is None:
            return None
        points.append(Point(parent.fork, min(parent.version, points[-1].version)))
    return points


def _way(descent: list[Point], start: Point) -> tuple[Span, ...]:
    """The spans from `start` to the top of a descent, newest first."""
    spans = []
    for upper, lower in zip(descent, [*descent[1:], None], strict=True):
        if upper.fork == start.fork:
            spans.append(Span(upper.fork, start.version, upper.version))
            break
        assert lower is not None
        spans.append(Span(upper.fork, lower.version, upper.version))
    return tuple(span for span in spans if span.begin < span.end)


class _Parents:
    """Where each fork of each table began."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[tuple[str, str, str, str], Point] = {}

    def of(self, root: GraphRoot, path: str, fork: str) -> Point | None:
        key = (root.key, root.incarnation, path, fork)
        with self._guard:
            known = self._known.get(key)
        if known is not None:
            return known
        found = _read_fork(root, path, fork)
        if found is not None:
            with self._guard:
                self._known[key] = found
        return found


_parents = _Parents()


def _read_fork(root: GraphRoot, path: str, fork: str) -> Point | None:
    kept = root.objects.get_or_none(f"{path}/_refs/branches/{fork}.json")
    if kept is None:
        return None
    try:
        told = json.loads(kept.data)
        return Point(told.get("parentBranch"), int(told["parentVersion"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _ask_for_fork(root, path, fork)


def _ask_for_fork(root: GraphRoot, path: str, fork: str) -> Point | None:
    """The same from Lance, which knows what to make of a file that says something else."""
    dataset = open_line(root, path, None)
    with translated("list", dataset.uri):
        told = dataset.branches.list().get(fork)
    return Point(told.get("parent_branch"), int(told["parent_version"])) if told else None
