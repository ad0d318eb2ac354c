"""Principals: what they may be made of, when they are equal, and who makes them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from omnigraph.errors import InvalidArgumentError
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.model.principal import Principal
from omnigraph.operations.context import principal_of


@pytest.mark.parametrize(
    "given",
    [
        {"id": ""},
        {"id": " "},
        {"id": "two\nlines"},
        {"id": "half \ud800"},
        {"id": 3},
        {"id": RECOVERY_ACTOR},
        {"id": "a", "groups": "writers"},
        {"id": "a", "groups": {""}},
        {"id": "a", "groups": {3}},
        {"id": "a", "attributes": {"": "x"}},
        {"id": "a", "attributes": {"x": None}},
        {"id": "a", "attributes": {"x": float("nan")}},
        {"id": "a", "attributes": {"x": "two\nlines"}},
        {"id": "a", "attributes": {"x": (1, 2)}},
        {"id": "a", "request_id": "two\nlines"},
    ],
)
def test_20_01_what_is_not_a_principal_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        Principal(**given)


def test_20_01_the_digest_covers_the_identity_alone() -> None:
    anna = Principal("act-anna", frozenset({"b", "a"}), {"y": ("eu",), "x": 1}, "request-1")
    same = Principal("act-anna", frozenset({"a", "b"}), {"x": 1, "y": ("eu",)}, "request-2")
    assert anna == same
    assert hash(anna) == hash(same)
    assert anna.digest == same.digest
    others = [
        Principal("act-anna"),
        Principal("act-anna", frozenset({"a"}), anna.attributes),
        Principal("act-anna", anna.groups, {"x": "1", "y": ("eu",)}),
        Principal("act-bob", anna.groups, anna.attributes),
    ]
    assert len({each.digest for each in (anna, *others)}) == 5


def test_20_01_a_principal_travels_to_other_processes() -> None:
    anna = Principal("act-anna", frozenset({"a"}), {"x": 1}, "request-1")
    found = pickle.loads(pickle.dumps(anna))
    assert (found, found.request_id, found.digest) == (anna, "request-1", anna.digest)


def test_20_01_attributes_cannot_be_changed() -> None:
    given = {"x": 1}
    anna = Principal("act-anna", attributes=given)
    given["x"] = 2
    assert anna.attributes == {"x": 1}
    with pytest.raises(TypeError):
        anna.attributes["x"] = 2  # type: ignore[index]


def test_20_01_a_caller_passes_a_principal_an_id_or_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anna = Principal("act-anna", frozenset({"a"}))
    assert principal_of(anna) is anna
    assert principal_of("act-anna") == Principal.named("act-anna")
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "act-env")
    assert principal_of(None).id == "act-env"
    monkeypatch.delenv("OMNIGRAPH_ACTOR")
    assert principal_of(None).id
