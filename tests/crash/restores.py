"""Lives of a graph that is replaced under two live handles, held against a model.

    play(seed, folder)

A life writes, branches, backs up, restores (by copying files, or by `copy`) and makes the graph
anew, in random order. After each operation both handles, which had cached what was there before,
must show what the model says; at the end the graph must be sound.
"""

from __future__ import annotations

import copy
import os
import random
import shutil
from pathlib import Path

import omnigraph
from omnigraph.graph import Graph

SCHEMA = "node Person { name: String @key  age: I64? }\n"
WRITE = "query add($n: String, $a: I64) { insert Person { name: $n, age: $a } }"
GROW = "query grow() { update Person set { age: age + 1 } where age < 1000 }"
READ = "query all() { match { $p: Person } return { $p.name, $p.age } }"
LENGTH = 30
_WEIGHTS = {"write": 8, "grow": 4, "branch": 1, "backup": 2, "files": 2, "copy": 1, "anew": 1}

Content = dict[str, dict[str, int]]


class Life:
    """One address, the graph that is there now, and what it should hold."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.place, self.backup, self.folder = folder / "graph", folder / "backup", folder
        self.model: Content = {"main": {}}
        self.saved: Content | None = None
        self.moved = 0
        first = omnigraph.init(str(self.place), SCHEMA)
        self.handles = [first, omnigraph.open(str(self.place))]

    def step(self, chance: random.Random) -> None:
        handle = chance.choice(self.handles)
        branch = chance.choice(sorted(self.model))
        kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        match kind:
            case "write":
                name, age = f"p{chance.randrange(50)}", chance.randrange(100)
                if name not in self.model[branch]:
                    handle.on(branch).mutate(WRITE, params={"n": name, "a": age})
                    self.model[branch][name] = age
            case "grow":
                handle.on(branch).mutate(GROW)
                self.model[branch] = {key: age + 1 for key, age in self.model[branch].items()}
            case "branch" if "f" not in self.model:
                handle.create_branch("f")
                self.model["f"] = dict(self.model["main"])
            case "backup":
                shutil.rmtree(self.backup, ignore_errors=True)
                shutil.copytree(self.place, self.backup)
                self.saved = copy.deepcopy(self.model)
            case "files" if self.saved is not None:
                self._restore_files(chance)
            case "copy" if self.saved is not None:
                self._restore_copy()
            case "anew":
                self._leave()
                omnigraph.init(str(self.place), SCHEMA)
                self.model = {"main": {}}

    def _restore_files(self, chance: random.Random) -> None:
        """With some commits on top that this process has not seen at this address, so that version
        numbers are often those that it has cached."""
        self.model = copy.deepcopy(self.saved or {})
        aside = self.folder / f"aside{self.moved}"
        shutil.copytree(self.backup, aside)
        other = omnigraph.open(str(aside))
        for number in range(chance.randrange(6)):
            other.mutate(WRITE, params={"n": f"q{self.moved}-{number}", "a": number})
            self.model["main"][f"q{self.moved}-{number}"] = number
        self._leave()
        os.rename(aside, self.place)

    def _restore_copy(self) -> None:
        """From the address that its forks were made at."""
        self.model = copy.deepcopy(self.saved or {})
        self._leave()
        shutil.copytree(self.backup, self.place)
        aside = str(self.folder / f"aside{self.moved}")
        omnigraph.open(str(self.place), read_only=True).copy(aside)
        self._leave()
        omnigraph.open(aside, read_only=True).copy(str(self.place))

    def _leave(self) -> None:
        self.moved += 1
        os.rename(self.place, self.folder / f"broken{self.moved}")

    def look(self) -> None:
        for handle in self.handles:
            for branch, expected in self.model.items():
                assert _content(handle.on(branch)) == expected, branch
            names = sorted(each.name for each in handle.branches())
            assert names == sorted(self.model)


def play(seed: int, folder: Path) -> None:
    chance, life = random.Random(seed), Life(folder)
    for _ in range(LENGTH):
        life.step(chance)
        life.look()
    checked = omnigraph.open(str(life.place)).verify()
    assert checked.is_clean, checked.findings


def _content(graph: Graph) -> dict[str, int]:
    return {row["p.name"]: row["p.age"] for row in graph.query(READ).rows()}
