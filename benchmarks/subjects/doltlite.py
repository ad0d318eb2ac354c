"""DoltLite, which is SQLite with branches, through Python's `sqlite3`.

It puts itself below `sqlite3` when it is imported, which works only before anything else has
imported that: so this module imports nothing of OmniGraph.
"""

from __future__ import annotations

from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import doltlite  # noqa: F401 - see above

from benchmarks.people import people, person, two_sides


class DoltLite:
    def __init__(self, folder: Path) -> None:
        self._file = str(folder / "people.db")
        self._connection = self._connect()
        self._changes, self._branches = count(1), count(1)
        self.rows = 0

    def _connect(self) -> Any:
        import sqlite3

        return sqlite3.connect(self._file, isolation_level=None)

    @staticmethod
    def version() -> str:
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
        name = person(next(self._changes), self.rows)
        self._run("UPDATE person SET age = age + 1 WHERE name = ?", name)
        self._commit()

    def branch(self) -> None:
        self._run("SELECT dolt_branch(?)", f"branch-{next(self._branches)}")

    def fork(self, number: int) -> None:
        for branch, rows in zip(("ours", "theirs"), two_sides(self.rows, number), strict=True):
            self._run("SELECT dolt_branch(?)", f"{branch}-{number}")
            self._run("SELECT dolt_checkout(?)", f"{branch}-{number}")
            self._insert(people(rows.tolist(), number + 1))
            self._commit()
            self._run("SELECT dolt_checkout('main')")
        self._run("SELECT dolt_branch(?)", f"still-{number}")

    def diff(self, number: int) -> int:
        found = self._run("SELECT * FROM dolt_diff_person('main', ?)", f"ours-{number}")
        return len(found)

    def forward(self, number: int) -> None:
        self._merge(f"still-{number}", f"ours-{number}")

    def merge(self, number: int) -> None:
        self._merge(f"ours-{number}", f"theirs-{number}")

    def _merge(self, target: str, source: str) -> None:
        self._run("SELECT dolt_checkout(?)", target)
        self._run("SELECT dolt_merge(?)", source)
        self._run("SELECT dolt_checkout('main')")

    def merged(self, number: int) -> int:
        """A sum over every row of a merged branch, to compare."""
        self._run("SELECT dolt_checkout(?)", f"ours-{number}")
        [(total,)] = self._run("SELECT sum(age) FROM person")
        self._run("SELECT dolt_checkout('main')")
        return int(total)

    def reopen(self) -> int:
        connection = self._connect()
        found = connection.execute("SELECT city FROM person WHERE name = 'person-00000001'")
        rows = len(found.fetchall())
        connection.close()
        return rows
