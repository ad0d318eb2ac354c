"""The birth of a graph: one maker wins, and a dead one leaves nothing in the way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.doorgraph import (
    ACTOR,
    HaltError,
    branch,
    catalog_of,
    head,
    log_of,
    new_graph,
    rows,
    write,
)

from omnigraph import faults
from omnigraph.commit.genesis import create_graph, graph_exists, store_schema
from omnigraph.errors import AlreadyExistsError, GraphNotFoundError, InvalidArgumentError
from omnigraph.model.catalog import Catalog
from omnigraph.model.commit import CommitKind
from omnigraph.storage.root import GraphRoot


def test_a_new_graph_has_one_commit_and_no_rows(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"))
    (first,) = log_of(root)
    assert (first.kind, first.actor, first.sequence, first.parents) == (
        CommitKind.INIT,
        ACTOR,
        1,
        (),
    )
    assert rows(root) == {}
    assert head(root).catalog == catalog_of()


def test_a_second_graph_at_the_address_is_refused(tmp_path: Path) -> None:
    new_graph(str(tmp_path / "g"))
    with pytest.raises(AlreadyExistsError):
        new_graph(str(tmp_path / "g"))


def test_of_several_makers_one_wins(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)
    won: list[GraphRoot] = []

    def make() -> None:
        barrier.wait()
        try:
            won.append(new_graph(str(tmp_path / "g")))
        except AlreadyExistsError:
            return

    threads = [threading.Thread(target=make) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(won) == 1
    assert len(log_of(won[0])) == 1


def test_a_maker_that_died_leaves_no_graph_and_no_obstacle(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    with faults.armed("init.before_manifest", faults.Raise(HaltError)), pytest.raises(HaltError):
        new_graph(uri)
    root = GraphRoot.at(uri)
    assert not graph_exists(root)
    with pytest.raises(GraphNotFoundError):
        head(root)
    new_graph(uri)
    assert graph_exists(GraphRoot.at(uri))


def test_a_catalog_needs_its_hash(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        create_graph(GraphRoot.at(str(tmp_path / "g")), Catalog(), "", ACTOR)


def test_a_schema_is_stored_once_under_its_hash(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"))
    before = list(root.objects.list("__schema"))
    store_schema(root, catalog_of())
    assert list(root.objects.list("__schema")) == before
    store_schema(root, catalog_of(5))
    assert len(list(root.objects.list("__schema"))) == len(before) + 1


# ledger: B01
@pytest.mark.slow
def test_a_hundred_types_are_no_trouble(tmp_path: Path) -> None:
    root = new_graph(str(tmp_path / "g"), types=100)
    names = [table.name for table in head(root).catalog.nodes]
    assert len(names) == 100
    write(root, {name: {"x": 1} for name in names})
    branch(root, "f")
    write(root, {name: {"x": 2} for name in names}, branch="f")
    assert set(rows(root, "f")) == set(names)
    assert all(shown == {"x": 2} for shown in rows(root, "f").values())
    assert all(shown == {"x": 1} for shown in rows(root).values())
