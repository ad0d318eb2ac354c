"""Maintenance of a graph on an object store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.schemachanges import CHANGES, content, new_graph

import omnigraph
from omnigraph.errors import GraphMovedError
from omnigraph.operations import export as exporting
from omnigraph.operations.transfer import import_graph
from omnigraph.storage.inputs import output_exists
from omnigraph.storage.root import GraphRoot


# ledger: I04 I06
@pytest.mark.slow
def test_the_whole_life_of_a_graph_on_s3(s3_root: str) -> None:
    graph = new_graph(s3_root)
    for n in range(5):
        graph.ingest([{"type": "City", "data": {"id": f"n{n}", "title": f"n{n}"}}])
    side = graph.create_branch("side")
    side.ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    graph.create_branch("gone").ingest([{"type": "City", "data": {"id": "g", "title": "g"}}])
    graph.delete_branch("gone")
    before, beside = content(graph), content(side)
    assert graph.optimize().commits
    assert graph.optimize().is_empty
    assert graph.stats(disk=True).bytes > 0
    done = graph.cleanup(keep=1, grace=timedelta(0), confirm=True)
    assert not [table.error for table in done.tables if table.error]
    assert done.versions > 0
    assert len(done.manifests) == 1
    assert graph.cleanup(keep=1, grace=timedelta(0), confirm=True).versions == 0
    graph.apply_schema(CHANGES["drop a type for good"].schema, allow_data_loss=True)
    again = omnigraph.open(s3_root)
    assert content(again) == {k: v for k, v in before.items() if k not in ("Spare", "Extra")}
    assert content(again.on("side")) == beside
    assert again.verify().findings == []
    again.ingest([{"type": "City", "data": {"id": "after", "title": "x"}}])


@pytest.mark.slow
def test_a_copy_on_s3_is_made_whole_where_it_lies(s3_root: str, tmp_path: Path) -> None:
    graph = new_graph(f"{s3_root}/first")
    side = graph.create_branch("side")
    side.ingest([{"type": "City", "data": {"id": "s", "title": "s"}}])
    want = content(side)
    there, here = GraphRoot.at(graph.uri).objects, GraphRoot.at(f"{s3_root}/second one").objects
    for name in there.list(""):
        if not name.startswith("__locks"):
            here.put(name, there.get(name).data)
    copy = omnigraph.open(f"{s3_root}/second one")
    with pytest.raises(GraphMovedError):
        content(copy.on("side"))
    assert copy.repair(confirm=True).strays > 0
    there.delete_prefix("nodes")
    assert content(copy.on("side")) == want
    assert copy.verify().findings == []
    back = copy.copy(f"{s3_root}/third").place
    assert content(omnigraph.open(back, branch="side")) == want
    copy.copy(str(tmp_path / "down"))
    assert content(omnigraph.open(str(tmp_path / "down"), branch="side")) == want


@pytest.mark.slow
def test_an_export_to_s3_is_there_whole_or_not_at_all(s3_root: str) -> None:
    graph = new_graph(f"{s3_root}/g")
    place = f"{s3_root}/out/all.jsonl"
    with (
        patch.object(exporting, "to_lines", side_effect=[b"x" * (20 << 20), KeyboardInterrupt]),
        pytest.raises(KeyboardInterrupt),
    ):
        graph.export(place)
    assert not output_exists(place)
    graph.export(place)
    import_graph(f"{s3_root}/copy", place, graph.schema())
    assert content(omnigraph.open(f"{s3_root}/copy")) == content(graph)
