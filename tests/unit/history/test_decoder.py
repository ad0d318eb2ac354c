"""Stored text that is not what it should be: one error, which names the object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.doorgraph import branch, new_graph, write

from omnigraph.commit import journal
from omnigraph.commit.branches import DELETED, was_deleted
from omnigraph.commit.schemaids import reserve_ids
from omnigraph.errors import InvariantViolationError
from omnigraph.history.decoder import decoding, read_fields, text, text_or_none, whole
from omnigraph.history.manifestrows import COMMIT, decode_state, encode_state, is_whole
from omnigraph.history.refs import branch_path, list_branches, read_branch
from omnigraph.storage.root import GraphRoot
from omnigraph.storage.segments import ManifestRow

WRONG = [b"", b"{", b"null", b"[]", b"17", b"\xff\xfe\x00", b"[" * 20_000, b"9" * 5_000, b"{}"]


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    root = new_graph(str(tmp_path / "g"))
    write(root, {"A": {"x": 1}})
    branch(root, "f")
    return root


def test_fields_are_what_they_should_be() -> None:
    assert read_fields(b'{"a": 1}') == {"a": 1}
    assert (text("x"), text_or_none(None), whole(7)) == ("x", None, 7)


@pytest.mark.parametrize("value", [None, 1, [], {}, True, "\ud800"])
def test_what_is_no_text_is_told(value: Any) -> None:
    told = pytest.raises(InvariantViolationError, match=r"^The note cannot be read")
    with told, decoding("The note", hint="Look."):
        text(value)


@pytest.mark.parametrize("value", [None, "1", 1.5, True, 2**63, [1]])
def test_what_is_no_whole_number_is_told(value: Any) -> None:
    with pytest.raises(InvariantViolationError), decoding("The note", hint="Look."):
        whole(value)


# ledger: R10
@pytest.mark.parametrize("data", WRONG)
def test_damaged_objects_are_told(root: GraphRoot, data: bytes) -> None:
    root.objects.put(branch_path("f"), data)
    for look in (lambda: read_branch(root, "f"), lambda: list_branches(root)):
        with pytest.raises(InvariantViolationError):
            look()
    root.objects.put(f"{DELETED}/x.json", data)
    with pytest.raises(InvariantViolationError):
        was_deleted(root, "x")
    with pytest.raises(InvariantViolationError):
        journal.decode(data, "x") if data != b"{}" else journal.decode(b'{"version": 1}', "x")


def test_a_record_of_another_operation_is_told(root: GraphRoot) -> None:
    root.objects.put("__schema/ids.json", b'{"next": "many"}')
    from tests.support.doorgraph import catalog_of

    with pytest.raises(InvariantViolationError, match=r"__schema/ids\.json"):
        reserve_ids(root, catalog_of(2), catalog_of(3), "act-anna")


# ledger: S05
@pytest.mark.parametrize("payload", ["", "{}", "[]", "null", "17", '"x"', "[" * 20_000])
def test_damaged_manifest_rows_are_told(root: GraphRoot, payload: str) -> None:
    from omnigraph.history.log import BranchLog

    rows = encode_state(BranchLog(root, "main").state)
    for place, row in enumerate(rows):
        damaged = ManifestRow(row.object_id, row.object_type, payload, row.sequence)
        if row.object_type == COMMIT:  # hides only itself
            state = decode_state([*rows[:place], damaged, *rows[place + 1 :]])
            assert [not is_whole(c) for c in state.recent].count(True) == 1
            continue
        with pytest.raises(InvariantViolationError):
            decode_state([*rows[:place], damaged, *rows[place + 1 :]])


def test_wrong_kinds_of_values_are_told(root: GraphRoot) -> None:
    found = json.loads(root.objects.get(branch_path("f")).data)
    for key in found:
        root.objects.put(branch_path("f"), json.dumps({**found, key: {"x": 1}}).encode())
        with pytest.raises(InvariantViolationError):
            read_branch(root, "f")
