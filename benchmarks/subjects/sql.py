"""DuckDB: nodes have dense integer keys and edges refer to them, which is how it is quickest.

The integers are made while loading; texts that identify a node have an index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.questions import Question

NODES = {
    "Person": "handle",
    "City": "name",
    "State": "name",
    "Country": "name",
    "Interest": "name",
}
EDGES = {
    "Follows": ("follows", "Person", "Person"),
    "LivesIn": ("lives_in", "Person", "City"),
    "HasInterest": ("has_interest", "Person", "Interest"),
    "CityIn": ("city_in", "City", "State"),
    "StateIn": ("state_in", "State", "Country"),
}


class DuckDB:
    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "duck.db"))

    @staticmethod
    def version() -> str:
        from importlib import metadata

        return metadata.version("duckdb")

    def load(self, data: Path) -> None:
        run = self._connection.execute
        for name, key in NODES.items():
            run(
                f"CREATE TABLE {name.lower()} AS SELECT (row_number() OVER () - 1)::INTEGER AS num,"
                f" * FROM read_parquet('{data / name}.parquet')"
            )
            run(f"CREATE UNIQUE INDEX {name.lower()}_key ON {name.lower()}({key})")
        for name, (table, near, far) in EDGES.items():
            run(
                f"CREATE TABLE {table} AS SELECT a.num AS src, b.num AS dst"
                f" FROM read_parquet('{data / name}.parquet') e"
                f' JOIN {near.lower()} a ON a.{NODES[near]} = e."from"'
                f' JOIN {far.lower()} b ON b.{NODES[far]} = e."to" ORDER BY src, dst'
            )

    def settle(self) -> None:
        self._connection.execute("CHECKPOINT")
        self._connection.execute("ANALYZE")

    def warm(self) -> None:
        self._connection.execute("SELECT count(*) FROM country").fetchall()

    def ask(self, question: Question) -> list[tuple[Any, ...]]:
        found = self._connection.execute(question.sql, dict(question.params) or None)
        return [tuple(row) for row in found.fetchall()]
