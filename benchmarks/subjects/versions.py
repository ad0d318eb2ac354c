"""People under version control. Both sides of a merge change 2,000 rows of their own."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pyarrow as pa

import omnigraph
from benchmarks.people import people, person, two_sides
from benchmarks.subjects.omni import OmniGraph

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    city: String?
}
"""
UPDATE = "query u($n: String) { update Person set { age: age + 1 } where name = $n }"
_ROW = 'query q() { match { $p: Person { name: "person-00000001" } } return { $p.city } }'
_SUM = "query q() { match { $p: Person } return { sum($p.age) as total } }"


class Versions(OmniGraph):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._changes, self._branches = count(1), count(1)
        self.rows = 0

    def fill(self, rows: int) -> None:
        self.rows = rows
        self._graph = omnigraph.init(self.uri, SCHEMA)
        self._graph.ingest(pa.table(people(range(rows))), type="Person")

    def change_one(self) -> None:
        """Update one row and commit."""
        self.graph.mutate(UPDATE, params={"n": person(next(self._changes), self.rows)})

    def branch(self) -> None:
        self.graph.create_branch(f"branch-{next(self._branches)}")

    def fork(self, number: int) -> None:
        """Two branches with changes to different rows, and one without."""
        for branch, rows in zip(("ours", "theirs"), two_sides(self.rows, number), strict=True):
            forked = self.graph.create_branch(f"{branch}-{number}")
            forked.ingest(pa.table(people(rows.tolist(), number + 1)), "merge", type="Person")
        self.graph.create_branch(f"still-{number}")

    def diff(self, number: int) -> int:
        return sum(1 for _ in self.graph.diff("main", f"ours-{number}"))

    def preview(self, number: int) -> None:
        found = self.graph.on(f"ours-{number}").preview_merge(f"theirs-{number}")
        assert found.outcome == "merged"

    def forward(self, number: int) -> None:
        found = self.graph.on(f"still-{number}").merge(f"ours-{number}")
        assert found.outcome == "fast_forward"

    def merge(self, number: int) -> None:
        found = self.graph.on(f"ours-{number}").merge(f"theirs-{number}")
        assert found.outcome == "merged"

    def merged(self, number: int) -> int:
        """A sum over every row of a merged branch, to compare."""
        [row] = self.graph.on(f"ours-{number}").query(_SUM).rows()
        return int(row["total"])

    def reopen(self) -> int:
        """Open the database anew and read one row."""
        return len(omnigraph.open(self.uri).query(_ROW).rows())
