"""Verify, repair and statistics: planted damage is found, drift is judged and settled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.support.schemachanges import content, new_graph

import omnigraph
from omnigraph.errors import InvalidArgumentError, RecoveryRequiredError
from omnigraph.graph import Graph
from omnigraph.storage.analysis import TEXT_INDEX_OPTIONS


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(str(tmp_path / "g"))


def uri_of(graph: Graph, name: str) -> str:
    snapshot = graph.snapshot()
    table = snapshot.catalog.node(name) or snapshot.catalog.edge(name)
    assert table is not None
    return f"{graph.uri}/{snapshot.tables[table.id].path}"


def messages(graph: Graph) -> str:
    return "\n".join(f"{f.part}: {f.where}: {f.message}" for f in graph.verify().findings)


def test_a_sound_graph_is_clean(graph: Graph) -> None:
    graph.optimize()
    graph.create_branch("b").ingest([{"type": "City", "data": {"id": "b", "title": "b"}}])
    graph.create_tag("v1")
    found = graph.verify()
    assert (found.findings, found.branches, found.is_clean) == ([], 2, True)
    assert found.rows > 30
    assert omnigraph.open(graph.uri, read_only=True).verify(quick=True).is_clean


def test_nodes_without_edges_are_accepted_as_writes_accept_them(tmp_path: Path) -> None:
    """The minimum of `@card` is checked for nodes whose edges a write changes."""
    schema = """
    node A { name: String @key }
    edge To: A -> A @card(2..3)
    """
    graph = omnigraph.init(tmp_path / "c", schema)
    graph.ingest([{"type": "A", "data": {"name": name}} for name in "abc"])
    assert graph.verify().findings == []
    graph.ingest([{"edge": "To", "from": "a", "to": end} for end in "bc"])
    assert graph.verify().findings == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("missing file", "cannot be"),
        ("missing version", "cannot be opened"),
        ("missing schema", "cannot be read"),
        ("orphan edge", "that src names are not there"),
        ("repeated id", "ids repeat"),
        ("null", "required"),
        ("out of range", "must be at most 100"),
    ],
)
def test_damage_is_found(graph: Graph, damage: str, said: str) -> None:
    place = Path(uri_of(graph, "Person"))
    if damage == "missing file":
        next(place.glob("data/*.lance")).unlink()
    elif damage == "missing version":
        for manifest in place.glob("_versions/*.manifest"):
            manifest.unlink()
    elif damage == "missing schema":
        for path in Path(graph.uri).glob("__schema/*.json"):
            path.write_text("{}")
    else:
        _change_rows(graph, damage)
    # Another process would not have the files in its caches.
    from omnigraph.history.catalogs import _read
    from omnigraph.storage.table import forget_tables

    forget_tables()
    _read.cache_clear()
    fresh = omnigraph.open(graph.uri, read_only=True)
    assert said in messages(fresh)
    assert not fresh.verify().is_clean


def _change_rows(graph: Graph, damage: str) -> None:
    """Change rows behind the graph's back, and have that published."""
    dataset = lance.dataset(uri_of(graph, "Person"))
    if damage == "orphan edge":
        dataset.delete("id = 'p03'")
    elif damage == "repeated id":
        dataset.update({"id": "'p01'"}, where="id = 'p02'")
    elif damage == "null":
        dataset.update({"zip": "NULL"}, where="id = 'p02'")
    else:
        dataset.update({"level": "5000"}, where="id = 'p02'")
    done = graph.repair(confirm=True, force=True)
    assert done.commit is not None


def test_a_text_index_that_is_deaf_is_found(graph: Graph) -> None:
    """It claims files of which it never heard."""
    graph.ingest([{"type": "City", "data": {"id": "late", "title": "gothenburg"}}])
    place = uri_of(graph, "City")
    dataset = lance.dataset(place)
    files = [fragment.fragment_id for fragment in dataset.get_fragments()]
    assert len(files) == 2
    index = dataset.create_index_uncommitted(
        "title", "INVERTED", name="title_fts", fragment_ids=files[:1], **TEXT_INDEX_OPTIONS
    )
    merged: Any = dataset.merge_existing_index_segments([index])
    index = replace(merged, fragment_ids=set(files))
    operation = lance.LanceOperation.CreateIndex(new_indices=[index], removed_indices=[])
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    graph.repair(confirm=True)
    assert "the index 'title_fts' does not find 'late' by its own words" in messages(graph)


def test_an_index_that_lies_is_found(graph: Graph) -> None:
    graph.optimize()
    snapshot = graph.snapshot()
    table = snapshot.catalog.node("City")
    assert table is not None
    place = uri_of(graph, "City")
    # Columns change places under an index that does not hear of it.
    dataset = lance.dataset(place)
    index = next(i for i in dataset.describe_indices() if i.name == "id_btree")
    segment = str(index.segments[0].uuid)
    other = next(i for i in dataset.describe_indices() if i.name == "title_btree")
    theirs = str(other.segments[0].uuid)
    mine = Path(place) / "_indices" / segment
    for file in mine.iterdir():
        file.unlink()
    for file in (Path(place) / "_indices" / theirs).iterdir():
        (mine / file.name).write_bytes(file.read_bytes())
    from omnigraph.storage.table import forget_tables

    forget_tables()
    assert "the index 'id_btree' misses" in messages(omnigraph.open(graph.uri, read_only=True))


# ledger: I05
def test_drift_of_maintenance_is_healed_on_confirm(graph: Graph) -> None:
    before = content(graph)
    for n in range(3):
        graph.ingest([{"type": "City", "data": {"id": f"n{n}", "title": f"n{n}"}}])
    before = content(graph)
    dataset = lance.dataset(uri_of(graph, "City"))
    dataset.optimize.compact_files()
    lance.dataset(uri_of(graph, "City")).create_scalar_index("size", "BTREE")
    assert "head is version" in messages(graph)
    preview = graph.repair()
    ((drift, remedy),) = preview.items
    assert (str(drift.verdict), str(remedy)) == ("verified_maintenance", "adopt"), drift
    assert not preview.executed
    assert "head is version" in messages(graph)
    done = graph.repair(confirm=True)
    assert done.commit is not None
    assert graph.verify().findings == []
    assert content(graph) == before
    assert graph.repair(confirm=True).items == ()
    graph.ingest([{"type": "City", "data": {"id": "after", "title": "x"}}])


# ledger: I05 R11
def test_drift_of_rows_is_healed_only_when_forced(graph: Graph) -> None:
    before = content(graph)
    lance.dataset(uri_of(graph, "City")).delete("id = 'c1'")
    with pytest.raises(RecoveryRequiredError, match="repair"):
        graph.ingest([{"type": "City", "data": {"id": "x", "title": "x"}}])
    ((drift, remedy),) = graph.repair(confirm=True).items
    assert (str(drift.verdict), str(remedy)) == ("suspicious", "leave")
    assert content(graph) == before
    with pytest.raises(InvalidArgumentError):
        graph.repair(confirm=True, force=True, discard=True)
    assert graph.repair(confirm=True, discard=True).commit is not None
    assert content(graph) == before
    assert graph.verify().findings == []
    lance.dataset(uri_of(graph, "Spare")).delete("code = 's0'")
    assert graph.repair(confirm=True, force=True).commit is not None
    assert [row["id"] for row in content(graph)["Spare"]] == ["s1"]
    assert graph.verify().findings == []


# ledger: I05
def test_optimize_skips_what_has_drifted(graph: Graph) -> None:
    lance.dataset(uri_of(graph, "City")).delete("id = 'c1'")
    skipped = {table.type_name: table.skipped for table in graph.optimize().tables}
    assert "run repair" in str(skipped["City"])
    assert skipped["Person"] is None


def test_statistics(graph: Graph) -> None:
    empty = {each.type_name: each for each in graph.stats().types}
    assert empty["City"].missing
    graph.optimize()
    graph.ingest([{"type": "City", "data": {"id": "n", "title": "n"}}])
    found = graph.stats(disk=True)
    types = {each.type_name: each for each in found.types}
    assert types["Person"].rows == 12
    assert types["City"].rows == 4
    assert types["City"].files == 2
    assert types["City"].missing == ()
    assert {index.unindexed_rows for index in types["City"].indexes} == {1}
    assert types["Empty"].rows == 0
    city = types["City"]
    assert (city.versions or 0) >= 3
    assert (city.disk_bytes or 0) > city.bytes > 0
    assert (found.branches, found.tags, found.pending_recoveries) == (1, 0, 0)
    assert found.rows == sum(each.rows for each in found.types)
