"""Maintenance of a table in many processes: tasks that travel, and what runs them.

    spread(run_upkeep, [CompactTask(…), BuildTask(…)], "rewrite files")

A task opens the very version that it was planned on, detached ones too, and writes files that
nothing points to; its answer is a plain value. A task that runs twice leaves litter and nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lance import optimize

from omnigraph.model.location import Location
from omnigraph.model.snapshot import TableVersion
from omnigraph.storage.failures import translated
from omnigraph.storage.indexfiles import StagedIndex, stage_index
from omnigraph.storage.indexplan import IndexTask
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.tableforks import open_line

_LANCE: Any = optimize  # its types leave out the form in JSON


@dataclass(frozen=True)
class TableAt:
    """A line of a table at a version, as another process can open it."""

    location: Location
    path: str
    fork: str | None
    version: int

    @staticmethod
    def of(root: GraphRoot, version: TableVersion, dataset: Any) -> TableAt:
        """The version that a dataset of the line shows, whether the line knows it or not."""
        return TableAt(root.location, version.path, version.fork, int(dataset.version))

    def open(self) -> Any:
        return open_line(GraphRoot(self.location), self.path, self.fork, self.version)


@dataclass(frozen=True)
class CompactTask:
    """Files to be put together, as Lance spells such a task."""

    at: TableAt
    text: str

    def run(self) -> str:
        dataset = self.at.open()
        with translated("compact", dataset.uri):
            done: str = _LANCE.CompactionTask.from_json(self.text).execute(dataset).json()
            return done


@dataclass(frozen=True)
class BuildTask:
    """An index to be built."""

    at: TableAt
    task: IndexTask

    def run(self) -> StagedIndex:
        return stage_index(self.at.open(), self.task)


UpkeepTask: TypeAlias = CompactTask | BuildTask
# Runs every task somewhere; answers come in the order of the tasks.
Spread: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any], str], list[Any]]


def run_upkeep(task: UpkeepTask) -> str | StagedIndex:
    return task.run()
