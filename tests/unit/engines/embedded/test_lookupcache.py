"""Lookups follow their tables: what others wrote is read once, for all columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.engines.embedded import lookupcache
from omnigraph.engines.embedded.lookupcache import BY_ID, Lookups
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.versiondiff import RowDelta, row_delta

SCHEMA = "node Person { name: String @key\n email: String? @unique }"


def test_two_lookups_are_carried_by_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    root = GraphRoot.at(graph.uri)
    readings: list[RowDelta | None] = []

    def counted(*given: object) -> RowDelta | None:
        readings.append(row_delta(*given))  # type: ignore[arg-type]
        return readings[-1]

    monkeypatch.setattr(lookupcache, "row_delta", counted)
    held = Lookups()
    for people in (["ann", "bob"], ["carl"], ["dora", "ernie"]):
        graph.ingest([{"name": n, "email": f"{n}@x"} for n in people], type="Person")
        version = next(iter(graph.snapshot().tables.values()))
        for columns, keys in ((BY_ID, people), (("email",), [f"{n}@x" for n in people])):
            found = held.at(root, version, columns)
            assert found is not None
            assert [id_ for _, id_ in found.find(keys)] == people
    assert len(readings) == 2, "one for each time that the table moved on"
