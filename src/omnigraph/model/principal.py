"""The principal: the identity on whose behalf a verb runs.

    Principal.named("act-anna")
    Principal("act-anna", groups=frozenset({"writers"}), attributes={"region": "eu"})

A commit records the id. Groups and attributes are for the gate that admits verbs; the request id
ties log lines to the caller's request.

Guarantees: immutable, hashable, validated; equal principals have equal digests, in every process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from omnigraph.arguments import checked
from omnigraph.errors import InvalidArgumentError
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.model.texts import check_line

Attribute = str | int | float | bool | tuple[str, ...]


@checked
@dataclass(frozen=True)
class Principal:
    """Who runs a verb.

    Args:
        id: The name that commits record.
        groups: The groups that the principal belongs to.
        attributes: Further facts, by name: a text, a number, a boolean or several texts.
        request_id: The caller's request; not part of the identity.

    Raises:
        InvalidArgumentError: A text is blank or has control characters, or an attribute has
            another type.
    """

    id: str
    groups: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    request_id: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_id(self.id)
        set_field = object.__setattr__
        set_field(self, "groups", frozenset(_name(each, "group") for each in self.groups))
        attributes = {
            _name(name, "attribute"): _attribute(name, value)
            for name, value in self.attributes.items()
        }
        set_field(self, "attributes", MappingProxyType(attributes))
        if self.request_id is not None:
            check_line(self.request_id, "request id")

    @classmethod
    def named(cls, id: str) -> Principal:
        """A principal that has a name and nothing else."""
        return cls(id)

    def __hash__(self) -> int:
        return hash((self.id, self.groups))

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled, and principals travel to Spark's processes.
        return Principal, (self.id, self.groups, dict(self.attributes), self.request_id)

    @cached_property
    def digest(self) -> str:
        """A hash of the identity: id, groups and attributes, without the request id."""
        facts = [self.id, sorted(self.groups), sorted(self.attributes.items())]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _check_id(value: object) -> None:
    if not check_line(value, "actor").strip():
        raise InvalidArgumentError("An actor needs a name.", hint="Give the actor an id.")
    if value == RECOVERY_ACTOR:
        raise InvalidArgumentError(
            f"The actor {RECOVERY_ACTOR} is reserved for recovery.", hint="Use another id."
        )


def _name(value: object, what: str) -> str:
    if not check_line(value, what).strip():
        raise InvalidArgumentError(f"A {what} of a principal needs a name.")
    return str(value)


def _attribute(name: str, value: Attribute) -> Attribute:
    if isinstance(value, str):
        return check_line(value, f"attribute {name!r}")
    if isinstance(value, tuple):
        return tuple(check_line(each, f"attribute {name!r}") for each in value)
    return value
