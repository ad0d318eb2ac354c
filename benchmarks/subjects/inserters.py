"""One row at a time into an empty table with a key: each insert is durable before the next."""

from __future__ import annotations

from importlib import import_module, metadata
from itertools import count
from pathlib import Path
from typing import Any

import omnigraph

_INSERT = "query i($n: String) { insert Person { name: $n, age: 30, email: $n } }"
_SCHEMA = "node Person { name: String @key  age: I32?  email: String? @unique }"


class Inserter:
    """OmniGraph."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self._held: Any = None
        self._prefix = "person"

    @staticmethod
    def version() -> str:
        return omnigraph.__version__

    def start(self) -> None:
        self._held = omnigraph.init(str(self.folder / "graph"), _SCHEMA)

    def insert(self) -> None:
        self._held.mutate(_INSERT, params={"n": f"{self._prefix}-{next(self._numbers)}"})

    def join(self, uri: str, branch: str, prefix: str) -> None:
        """Write to a graph that others write to."""
        self._held = omnigraph.open(uri, branch=branch, actor=prefix)
        self._prefix = prefix
        self.insert()

    def insert_many(self, amount: int) -> None:
        for _ in range(amount):
            self.insert()

    @staticmethod
    def compute(amount: int) -> None:
        """So many milliseconds, about, of a processor and nothing else."""
        for _ in range(amount):
            sum(number * number for number in range(12_000))

    def prepare(self, schema: str) -> None:
        """An empty graph, and the code that ingest needs."""
        self._held = omnigraph.init(str(self.folder / "graph"), schema)
        self._held.ingest([{"type": "Person", "data": {"name": "somebody"}}])

    def ingest(self, path: Path) -> None:
        self._held.ingest(path)


class Cypher(Inserter):
    package = ""

    @classmethod
    def version(cls) -> str:
        return metadata.version(cls.package)

    def start(self) -> None:
        package = import_module(self.package)
        self._held = package.Connection(package.Database(str(self.folder / "database")))
        self._held.execute(
            "CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT32, email STRING)"
        )
        self._insert = self._held.prepare("CREATE (:Person {name: $n, age: 30, email: $n})")

    def insert(self) -> None:
        self._held.execute(self._insert, {"n": f"person-{next(self._numbers)}"})


class Kuzu(Cypher):
    package = "kuzu"


class Ladybug(Cypher):
    package = "ladybug"


class DuckDB(Inserter):
    @staticmethod
    def version() -> str:
        return metadata.version("duckdb")

    def start(self) -> None:
        import duckdb

        self._held = duckdb.connect(str(self.folder / "duck.db"))
        self._held.execute("CREATE TABLE person(name TEXT PRIMARY KEY, age INT, email TEXT UNIQUE)")

    def insert(self) -> None:
        name = f"person-{next(self._numbers)}"
        self._held.execute("INSERT INTO person VALUES (?, 30, ?)", (name, name))
