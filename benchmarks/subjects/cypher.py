"""Kuzu and Ladybug, its successor: embedded graph databases that speak Cypher."""

from __future__ import annotations

from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks.questions import Question

TABLES = (
    "CREATE NODE TABLE Person(handle STRING PRIMARY KEY, name STRING, gender STRING, age INT32,"
    " married BOOLEAN)",
    "CREATE NODE TABLE City(name STRING PRIMARY KEY, label STRING, population INT32)",
    "CREATE NODE TABLE State(name STRING PRIMARY KEY)",
    "CREATE NODE TABLE Country(name STRING PRIMARY KEY)",
    "CREATE NODE TABLE Interest(name STRING PRIMARY KEY)",
    "CREATE REL TABLE Follows(FROM Person TO Person)",
    "CREATE REL TABLE LivesIn(FROM Person TO City)",
    "CREATE REL TABLE HasInterest(FROM Person TO Interest)",
    "CREATE REL TABLE CityIn(FROM City TO State)",
    "CREATE REL TABLE StateIn(FROM State TO Country)",
)


class Cypher:
    """A database of either package; both have the same classes."""

    package = ""

    def __init__(self, folder: Path) -> None:
        self._package = import_module(self.package)
        self._database = self._package.Database(str(folder / "database"))
        self._connection = self._package.Connection(self._database)
        self._prepared: dict[str, Any] = {}

    @classmethod
    def version(cls) -> str:
        return metadata.version(cls.package)

    def load(self, data: Path) -> None:
        for statement in TABLES:
            self._connection.execute(statement)
            table = statement.split("(")[0].split()[-1]
            self._connection.execute(f"COPY {table} FROM '{data / table}.parquet'")

    def settle(self) -> None:
        self._connection.execute("CHECKPOINT")

    def warm(self) -> None:
        self._connection.execute("MATCH (c:Country) RETURN count(*)").get_all()

    def ask(self, question: Question) -> list[tuple[Any, ...]]:
        prepared = self._prepared.get(question.name)
        if prepared is None:
            prepared = self._connection.prepare(question.cypher)
            self._prepared[question.name] = prepared
        found = self._connection.execute(prepared, dict(question.params))
        return [tuple(row) for row in found.get_all()]


class Kuzu(Cypher):
    package = "kuzu"


class Ladybug(Cypher):
    package = "ladybug"
