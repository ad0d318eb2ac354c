"""What a migration plan is made of: steps, the data checks they need, and how safe they are.

Guarantees: a step carries all that is needed to apply it to a catalog; it refers to types and
properties by id, so that it means the same before and after a rename.
Deliberately absent: running anything. Checks name tables by id and columns by their physical name,
for whoever can read data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from omnigraph.model.catalog import Annotation, Constant, EdgeType, Interface, NodeType, Property
from omnigraph.model.types import ValueType


class Tier(StrEnum):
    SAFE = "safe"  # cannot fail and loses nothing
    VALIDATED = "validated"  # depends on the data: a check must pass, or values are filled in
    DESTRUCTIVE = "destructive"  # data is gone afterwards
    UNSUPPORTED = "unsupported"  # cannot be done; the plan as a whole is refused


class DropMode(StrEnum):
    SOFT = "soft"  # hidden from now on; older versions keep the data until cleanup
    HARD = "hard"  # removed at once


class StepKind(StrEnum):
    ADD_TYPE = "add_type"
    RENAME_TYPE = "rename_type"
    DROP_TYPE = "drop_type"
    CHANGE_INTERFACE = "change_interface"
    SET_INTERFACES = "set_interfaces"
    UPDATE_TYPE_METADATA = "update_type_metadata"
    ADD_PROPERTY = "add_property"
    RENAME_PROPERTY = "rename_property"
    DROP_PROPERTY = "drop_property"
    WIDEN_TYPE = "widen_type"
    EXTEND_ENUM = "extend_enum"
    SET_REQUIRED = "set_required"
    SET_OPTIONAL = "set_optional"
    SET_DEFAULT = "set_default"
    UPDATE_PROPERTY_METADATA = "update_property_metadata"
    ADD_CONSTRAINT = "add_constraint"
    CHANGE_CONSTRAINT = "change_constraint"
    DROP_CONSTRAINT = "drop_constraint"
    UNSUPPORTED_CHANGE = "unsupported_change"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint by property ids. The ends of an edge have the ids below."""

    kind: str  # key, unique, index, range, check or card
    members: tuple[int, ...] = ()
    minimum: int | float | None = None
    maximum: int | float | None = None
    pattern: str = ""


SRC_ID = -2
DST_ID = -1


@dataclass(frozen=True, slots=True)
class Default:
    value: Constant
    exists: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """One constraint in the place of another of the same kind."""

    old: Constraint
    new: Constraint


# Data checks. Each holds for the rows that are there, or the plan cannot be applied.


@dataclass(frozen=True, slots=True)
class NoRows:
    """The table is empty."""

    type_id: int
    type_name: str


@dataclass(frozen=True, slots=True)
class NoNulls:
    type_id: int
    type_name: str
    property: str
    column: str


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows agree in all columns; rows with a null are exempt.

    Without any column every two rows agree: the table holds one row at most.
    """

    type_id: int
    type_name: str
    properties: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InRange:
    type_id: int
    type_name: str
    property: str
    column: str
    minimum: int | float | None
    maximum: int | float | None


@dataclass(frozen=True, slots=True)
class Matches:
    type_id: int
    type_name: str
    property: str
    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class WithinCardinality:
    """Each node of the source type has a number of outgoing edges within the bounds."""

    type_id: int
    type_name: str
    src_type: str
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class EdgesWithinCardinality(WithinCardinality):
    """The same for nodes that have edges of the type: writes accept nodes without any."""


@dataclass(frozen=True, slots=True)
class KeyMatchesIds:
    """Each row's id is the one that its key columns give."""

    type_id: int
    type_name: str
    properties: tuple[str, ...]
    columns: tuple[str, ...]


DataCheck: TypeAlias = (
    NoRows | NoNulls | Unique | InRange | Matches | WithinCardinality | KeyMatchesIds
)
StepValue: TypeAlias = (
    Interface
    | NodeType
    | EdgeType
    | Property
    | ValueType
    | Constraint
    | Replacement
    | Default
    | str
    | tuple[Annotation, ...]
    | tuple[int, ...]
    | None
)


@dataclass(frozen=True, slots=True)
class Step:
    """One change. `entity` reads `node:Person.age`; `code` is listed in `codes.CHANGES`."""

    kind: StepKind
    tier: Tier
    code: str
    entity: str
    message: str
    type_id: int
    property_id: int | None = None
    value: StepValue = None
    check: DataCheck | None = None
    # The value that existing rows get in a new required property.
    backfill: Constant = None
    mode: DropMode | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for people and programs that read plans."""
        out: dict[str, Any] = {
            "kind": str(self.kind),
            "tier": str(self.tier),
            "code": self.code,
            "entity": self.entity,
            "message": self.message,
        }
        if self.mode is not None:
            out["mode"] = str(self.mode)
        if self.check is not None:
            out["check"] = {"kind": type(self.check).__name__, **asdict(self.check)}
        if self.backfill is not None:
            out["backfill"] = self.backfill
        return out


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Ordered steps from one catalog to another. No steps: the two are the same."""

    steps: tuple[Step, ...]
    supported: bool

    @property
    def is_empty(self) -> bool:
        return not self.steps

    @property
    def checks(self) -> tuple[DataCheck, ...]:
        return tuple(step.check for step in self.steps if step.check is not None)

    @property
    def tier(self) -> Tier:
        """The gravest tier among the steps."""
        order = list(Tier)
        return max((step.tier for step in self.steps), key=order.index, default=Tier.SAFE)

    def to_dict(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [step.to_dict() for step in self.steps]}
