"""OmniGraph itself, through its public API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import omnigraph
from benchmarks.generate import SCHEMA
from benchmarks.questions import Question
from omnigraph.graph import Graph


class OmniGraph:
    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "graph")
        self._graph: Graph | None = None

    @staticmethod
    def version() -> str:
        return omnigraph.__version__

    @property
    def graph(self) -> Graph:
        if self._graph is None:
            self._graph = omnigraph.open(self.uri)
        return self._graph

    def load(self, data: Path) -> None:
        graph = omnigraph.init(self.uri, SCHEMA)
        for file in sorted(data.glob("*.parquet"), key=lambda f: _edges_last(f.stem)):
            graph.ingest(pq.read_table(file), type=file.stem)
        self._graph = graph

    def settle(self) -> None:
        """Indexes and large files, as a nightly job would make them."""
        self.graph.optimize()

    def warm(self) -> None:
        """Open the graph and load the code that questions need, without touching their data."""
        text = "query q() { match { $c: Country $s stateIn $c } return { count(*) as n } }"
        self.graph.query(text).to_arrow()

    def ask(self, question: Question) -> list[tuple[Any, ...]]:
        found = self.graph.query(question.text, params=dict(question.params)).to_arrow()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _edges_last(name: str) -> tuple[bool, str]:
    return name in ("Follows", "LivesIn", "HasInterest", "CityIn", "StateIn"), name
