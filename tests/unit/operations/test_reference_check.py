"""Issue 18.21: one check of references, at the place where rows are written to a table.

The readers of inputs recognise references too. Here they are made blind: whatever passes them must
be refused by the check alone, and what a table holds already must pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.support.blobreferences import (
    FORGED,
    PLACE,
    SCHEMA,
    SECRET,
    WAYS,
    Way,
    blinded,
    closed_graph,
    scans,
)

import omnigraph
from omnigraph.errors import ExternalBlobError, InvariantViolationError
from omnigraph.graph import Graph
from omnigraph.model.references import address_of, is_proven, stored_reference
from omnigraph.storage.tableschema import physical_schema, to_physical


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return closed_graph(tmp_path)


@pytest.fixture
def blind() -> Iterator[None]:
    with blinded():
        yield


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("value", FORGED, ids=["given", "stored", "made up", "of another"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_18_21_no_way_in_for_a_reference_that_is_not_allowed(
    graph: Graph, tmp_path: Path, way: Way, value: bytes
) -> None:
    with pytest.raises(ExternalBlobError):
        way(graph, value, tmp_path)
    assert SECRET not in scans(graph).values()


def test_18_21_a_foreign_dataset_does_not_bring_its_references(
    graph: Graph, tmp_path: Path, blind: None
) -> None:
    data = pa.table(
        [pa.array(["b"]), lance.blob_array([lance.Blob.from_uri("s3://elsewhere/x")])],
        schema=pa.schema([pa.field("key", pa.string()), lance.blob_field("scan")]),
    )
    place = str(tmp_path / "in.lance")
    lance.write_dataset(
        data, place, data_storage_version="2.2", allow_external_blob_outside_bases=True
    )
    with pytest.raises(ExternalBlobError):
        graph.load(place, type="Doc", engine="embedded")
    assert scans(graph) == {"a": f"{PLACE}/a"}


def test_18_21_blobs_in_the_form_of_lance_are_not_written_unchecked(graph: Graph) -> None:
    table = graph.snapshot().catalog.nodes[0]
    row = {"id": pa.array(["b"]), **{p.column: pa.nulls(1, pa.string()) for p in table.properties}}
    (blob,) = table.blob_properties
    row[blob.column] = lance.blob_array([lance.Blob.from_uri(SECRET)])
    with pytest.raises(InvariantViolationError):
        to_physical(table, pa.table(row))
    assert to_physical(table, physical_schema(table).empty_table()).num_rows == 0


def test_18_21_a_proof_is_for_one_address_only() -> None:
    value = stored_reference(f"{PLACE}/a", proven=True)
    assert is_proven(value)
    assert address_of(value) == f"{PLACE}/a"
    assert not any(is_proven(forged) for forged in FORGED)
    assert not is_proven(value.replace(b"/a", b"/b"))
    assert not is_proven(stored_reference(f"{PLACE}/a"))


# What is stored stays, whoever moves its row.


def _title(graph: Graph, title: str, key: str = "a") -> None:
    graph.mutate(f'query u() {{ update Doc set {{ title: "{title}" }} where key = "{key}" }}')


def _add_on_side(graph: Graph, key: str) -> None:
    opened = omnigraph.open(graph.uri, external_blobs=[PLACE]).on("f")
    opened.ingest([{"type": "Doc", "data": {"key": key, "scan": f"{PLACE}/{key}"}}])


def _kept_by_update(graph: Graph, _: Path) -> Graph:
    for number in range(40):
        _title(graph, str(number))
    return graph


def _kept_by_merge(graph: Graph, _: Path) -> Graph:
    side = graph.create_branch("f")
    _title(side, "side")
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    graph.merge("f")
    return graph


def _kept_by_merge_of_new_rows(graph: Graph, _: Path) -> Graph:
    side = graph.create_branch("f")
    _add_on_side(side, "s")
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    graph.merge("f")
    assert scans(graph)["s"] == f"{PLACE}/s"
    return graph


def _kept_by_revert(graph: Graph, _: Path) -> Graph:
    gone = graph.mutate('query d() { delete Doc where key = "a" }').commit
    assert gone is not None
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    graph.revert(gone.id)
    return graph


def _kept_by_cherry_pick(graph: Graph, _: Path) -> Graph:
    side = graph.create_branch("f")
    _title(side, "one")
    _add_on_side(side, "s")
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    graph.cherry_pick(side.snapshot().commit_id)
    assert scans(graph)["s"] == f"{PLACE}/s"
    return graph


def _kept_by_rebase(graph: Graph, _: Path) -> Graph:
    side = graph.create_branch("f")
    _title(side, "side")
    graph.ingest([{"type": "Doc", "data": {"key": "m"}}])
    side.rebase("main")
    return side


def _kept_by_new_columns(graph: Graph, _: Path) -> Graph:
    wider = SCHEMA.replace("title: String?", 'title: String?\n    kind: String @default("x")')
    graph.apply_schema(wider)
    graph.apply_schema(wider.replace("title: String?", "title: String?\n    size: I32?"))
    graph.apply_schema(wider.replace("title: String?", "title: String?\n    size: I64?"))
    return graph


def _kept_by_copy(graph: Graph, folder: Path) -> Graph:
    graph.copy(str(folder / "copy"))
    copy = omnigraph.open(str(folder / "copy"))
    _title(copy, "copied")
    return copy


def _kept_by_optimize(graph: Graph, _: Path) -> Graph:
    _kept_by_update(graph, _)
    graph.optimize()
    return graph


KEEPERS = [
    _kept_by_update, _kept_by_merge, _kept_by_merge_of_new_rows, _kept_by_revert,
    _kept_by_cherry_pick, _kept_by_rebase, _kept_by_new_columns, _kept_by_copy, _kept_by_optimize,
]  # fmt: skip


@pytest.mark.parametrize("way", KEEPERS, ids=lambda way: way.__name__.removeprefix("_kept_by_"))
def test_18_21_a_stored_reference_stays(
    graph: Graph, tmp_path: Path, way: Callable[[Graph, Path], Graph]
) -> None:
    assert scans(way(graph, tmp_path))["a"] == f"{PLACE}/a"
