"""Visibility on Spark: queries, exports and tables show what the embedded engine shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.visiblegraphs import QUERIES, make, only_red, restricted

from omnigraph.engines.spark.tableframes import table_frame
from omnigraph.graph import Graph


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Graph]:
    folder = tmp_path_factory.mktemp("visibility")
    whole = make(folder / "whole", lambda team: True)
    return whole, make(folder / "visible", lambda team: team == "red")


def test_20_02_queries_on_spark(spark: Any, graphs: tuple[Graph, Graph]) -> None:
    whole, reference = graphs
    for name, body in QUERIES.items():
        text = f"query q() {{ {body} }}"
        found = restricted(whole).query(text, engine="spark").rows()
        assert found == reference.query(text).rows(), name


def test_20_02_exports_on_spark(spark: Any, graphs: tuple[Graph, Graph], tmp_path: Path) -> None:
    whole, reference = graphs
    found = restricted(whole).export(str(tmp_path / "out"), engine="spark")
    assert found.rows == reference.export(str(tmp_path / "reference")).rows
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*.jsonl")]
    assert all("salary" not in text and "bob" not in text for text in texts)


def test_20_02_tables_on_spark(spark: Any, graphs: tuple[Graph, Graph]) -> None:
    snapshot = graphs[0].snapshot()
    seen = snapshot.seen_through(only_red(snapshot.catalog))
    for table in seen.catalog.tables():
        frame = table_frame(spark, seen.location, seen, table)
        assert "salary" not in frame.columns
        expected = {"Person": 3, "Team": 2, "Knows": 2, "In": 3}[table.name]
        assert len(frame.collect()) == expected
