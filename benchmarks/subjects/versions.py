"""People under version control: OmniGraph, and DoltLite, which is SQLite with branches."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.subjects.omni import OmniGraph

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    city: String?
}
"""
CHANGED = 2_000
UPDATE = "query u($n: String) { update Person set { age: age + 1 } where name = $n }"


def people(numbers: Any, offset: int = 0) -> dict[str, list[Any]]:
    return {
        "name": [f"person-{number:08d}" for number in numbers],
        "age": [int(number + offset) % 90 for number in numbers],
        "city": [f"city {number % 997}" for number in numbers],
    }


class Versions(OmniGraph):
    """OmniGraph. Both sides of a merge change 2,000 rows of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._numbers = count(1)
        self.rows = 0

    def fill(self, rows: int) -> None:
        self.rows = rows
        self._graph = omnigraph.init(self.uri, SCHEMA)
        self._graph.ingest(pa.table(people(range(rows))), type="Person")

    def change_one(self) -> None:
        """Update one row and commit."""
        name = f"person-{next(self._numbers) * 7919 % self.rows:08d}"
        self.graph.mutate(UPDATE, params={"n": name})

    def branch(self) -> None:
        self.graph.create_branch(f"branch-{next(self._numbers)}")

    def fork(self, number: int) -> None:
        """Two branches with changes to different rows."""
        for branch, rows in zip(("ours", "theirs"), _two_sides(self.rows, number), strict=True):
            forked = self.graph.create_branch(f"{branch}-{number}")
            forked.ingest(pa.table(people(rows, number + 1)), "merge", type="Person")

    def diff(self, number: int) -> int:
        return sum(1 for _ in self.graph.diff("main", f"ours-{number}"))

    def merge(self, number: int) -> None:
        self.graph.on(f"ours-{number}").merge(f"theirs-{number}")

    def reopen(self) -> int:
        """Open the database anew and read one row."""
        graph = omnigraph.open(self.uri)
        text = 'query q() { match { $p: Person { name: "person-00000001" } } return { $p.city } }'
        return len(graph.query(text).rows())


class DoltLite(Versions):
    """DoltLite, through Python's `sqlite3`."""

    def __init__(self, folder: Path) -> None:
        import doltlite  # noqa: F401 - puts itself below sqlite3

        super().__init__(folder)
        self._file = str(folder / "people.db")
        self._connection = self._connect()

    def _connect(self) -> Any:
        import sqlite3

        return sqlite3.connect(self._file, isolation_level=None)

    @staticmethod
    def version() -> str:
        from importlib import metadata

        return metadata.version("doltlite")

    def _run(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(statement, values).fetchall()

    def _commit(self) -> None:
        self._run("SELECT dolt_commit('-A', '-m', 'change')")

    def fill(self, rows: int) -> None:
        self.rows = rows
        self._run("CREATE TABLE person(name TEXT PRIMARY KEY, age INT, city TEXT)")
        self._insert(people(range(rows)))
        self._commit()

    def _insert(self, rows: dict[str, list[Any]]) -> None:
        self._run("BEGIN")
        values = zip(*rows.values(), strict=True)
        self._connection.executemany("INSERT OR REPLACE INTO person VALUES (?, ?, ?)", values)
        self._run("COMMIT")

    def change_one(self) -> None:
        name = f"person-{next(self._numbers) * 7919 % self.rows:08d}"
        self._run("UPDATE person SET age = age + 1 WHERE name = ?", name)
        self._commit()

    def branch(self) -> None:
        self._run("SELECT dolt_branch(?)", f"branch-{next(self._numbers)}")

    def fork(self, number: int) -> None:
        for branch, rows in zip(("ours", "theirs"), _two_sides(self.rows, number), strict=True):
            self._run("SELECT dolt_branch(?)", f"{branch}-{number}")
            self._run("SELECT dolt_checkout(?)", f"{branch}-{number}")
            self._insert(people(rows, number + 1))
            self._commit()
            self._run("SELECT dolt_checkout('main')")

    def diff(self, number: int) -> int:
        found = self._run("SELECT * FROM dolt_diff_person('main', ?)", f"ours-{number}")
        return len(found)

    def merge(self, number: int) -> None:
        self._run("SELECT dolt_checkout(?)", f"ours-{number}")
        self._run("SELECT dolt_merge(?)", f"theirs-{number}")
        self._run("SELECT dolt_checkout('main')")

    def reopen(self) -> int:
        connection = self._connect()
        found = connection.execute("SELECT city FROM person WHERE name = 'person-00000001'")
        rows = len(found.fetchall())
        connection.close()
        return rows


def _two_sides(rows: int, number: int) -> list[Any]:
    chosen = np.random.default_rng(number).choice(rows, 2 * CHANGED, replace=False)
    return [np.sort(chosen[:CHANGED]), np.sort(chosen[CHANGED:])]
