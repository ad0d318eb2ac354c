"""Plan the changes of one table's properties."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.pg.steps import Default, DropMode, NoNulls, NoRows, Step, StepKind, Tier
from omnigraph.model.catalog import EdgeType, Embed, NodeType, Property
from omnigraph.model.types import FLOAT_KINDS, Kind, ValueType

# Every value of the first type is a value of the second.
_WIDENINGS = frozenset(
    {
        (Kind.I32, Kind.I64),
        (Kind.U32, Kind.U64),
        (Kind.U32, Kind.I64),
        (Kind.F32, Kind.F64),
    }
)


def plan_properties(
    old: NodeType | EdgeType, new: NodeType | EdgeType, mode: DropMode
) -> Iterator[Step]:
    """Drops, then renames, then additions, then changes of type, default and annotations."""
    before = {p.id: p for p in old.properties}
    kept = {p.id for p in new.properties}
    for prop in old.properties:
        if prop.id not in kept:
            yield _drop(new, prop, mode)
    for prop in new.properties:
        if prop.id in before and before[prop.id].name != prop.name:
            yield _rename(new, before[prop.id], prop)
    for prop in new.properties:
        if prop.id not in before:
            yield _add(new, prop)
    for prop in new.properties:
        if prop.id in before:
            yield from _change(old, new, before[prop.id], prop)


def entity(table: NodeType | EdgeType, prop: Property) -> str:
    return f"{table.kind}:{table.name}.{prop.name}"


def _drop(table: NodeType | EdgeType, prop: Property, mode: DropMode) -> Step:
    code = "OG-DS-105" if prop.type.kind is Kind.VECTOR else "OG-DS-104"
    tier = Tier.DESTRUCTIVE if mode is DropMode.HARD else Tier.SAFE
    message = f"drop the property `{table.name}.{prop.name}` and its values"
    kind = StepKind.DROP_PROPERTY
    return Step(kind, tier, code, entity(table, prop), message, table.id, prop.id, mode=mode)


def _rename(table: NodeType | EdgeType, old: Property, new: Property) -> Step:
    message = f"rename `{table.name}.{old.name}` to `{new.name}`"
    return Step(
        StepKind.RENAME_PROPERTY,
        Tier.SAFE,
        "OG-BC-102",
        entity(table, new),
        message,
        table.id,
        new.id,
        new.name,
    )


def _add(table: NodeType | EdgeType, prop: Property) -> Step:
    label = f"`{table.name}.{prop.name}: {prop.type}`"
    check = backfill = None
    if prop.type.nullable:
        tier, code, message = Tier.SAFE, "OG-AD-102", f"add the optional property {label}"
    elif prop.has_default:
        tier, code, backfill = Tier.VALIDATED, "OG-MF-108", prop.default
        message = f"add the required property {label} and fill existing rows with {backfill!r}"
    else:
        tier, code, check = Tier.VALIDATED, "OG-MF-103", NoRows(table.id, table.name)
        message = (
            f"add the required property {label}; existing rows have no value for it, so the type "
            "must be empty (or give the property a `@default`, or make it optional)"
        )
    return Step(
        StepKind.ADD_PROPERTY,
        tier,
        code,
        entity(table, prop),
        message,
        table.id,
        prop.id,
        prop,
        check,
        backfill,
    )


def _change(
    old_table: NodeType | EdgeType, table: NodeType | EdgeType, old: Property, new: Property
) -> Iterator[Step]:
    yield from _change_type(table, old, new)
    if old.type.nullable != new.type.nullable:
        yield _change_nullability(table, new)
    if (old.has_default, repr(old.default)) != (new.has_default, repr(new.default)):
        what = f"default to {new.default!r}" if new.has_default else "default to nothing"
        message = f"change the {what} for new rows of `{table.name}.{new.name}`"
        value = Default(new.default, new.has_default)
        kind = StepKind.SET_DEFAULT
        yield Step(
            kind, Tier.SAFE, "OG-AD-108", entity(table, new), message, table.id, new.id, value
        )
    if _embed_by_id(old_table, old.embed) != _embed_by_id(table, new.embed):
        reason = (
            f"changing how `{table.name}.{new.name}` is embedded would mix vectors of two kinds; "
            "add a new vector property and fill it instead"
        )
        yield _unsupported(table, new, "OG-VE-101", reason)
    if repr(old.annotations) != repr(new.annotations):
        message = f"change the annotations of `{table.name}.{new.name}`"
        kind = StepKind.UPDATE_PROPERTY_METADATA
        yield Step(
            kind,
            Tier.SAFE,
            "OG-AD-107",
            entity(table, new),
            message,
            table.id,
            new.id,
            new.annotations,
        )


def _embed_by_id(table: NodeType | EdgeType, embed: Embed | None) -> tuple[int, str | None] | None:
    if embed is None:
        return None
    source = table.get(embed.source)
    return (0 if source is None else source.id, embed.model)


def _change_type(table: NodeType | EdgeType, old: Property, new: Property) -> Iterator[Step]:
    was, now = old.type.as_nullable(False), new.type.as_nullable(False)
    if was == now:
        return
    # Nullability is a step of its own, so the type changes under the old one.
    target = new.type.as_nullable(old.type.nullable)
    label = f"`{table.name}.{new.name}`"
    if was.enum and now.enum and set(was.enum) < set(now.enum):
        added = ", ".join(f"`{value}`" for value in now.enum if value not in was.enum)
        message = f"let {label} also be {added}"
        kind, code = StepKind.EXTEND_ENUM, "OG-AD-104"
    elif (was.kind, now.kind) in _WIDENINGS and not _respells_key(table, new, was):
        message = f"widen {label} from `{was}` to `{now}`"
        kind, code = StepKind.WIDEN_TYPE, "OG-AD-105"
    else:
        vectors = was.kind is Kind.VECTOR and now.kind is Kind.VECTOR
        code = "OG-VE-102" if vectors else "OG-MF-106"
        yield _unsupported(table, new, code, _why_not(table, new, was, now))
        return
    yield Step(kind, Tier.SAFE, code, entity(table, new), message, table.id, new.id, target)


def _respells_key(table: NodeType | EdgeType, prop: Property, was: ValueType) -> bool:
    # A float of another width is spelled differently, and ids are made of that spelling.
    return was.kind in FLOAT_KINDS and isinstance(table, NodeType) and prop.name in table.key


def _why_not(table: NodeType | EdgeType, prop: Property, was: ValueType, now: ValueType) -> str:
    label = f"`{table.name}.{prop.name}`"
    if was.enum and now.enum:
        lost = ", ".join(f"`{value}`" for value in was.enum if value not in now.enum)
        return f"{label} may hold {lost}, which the new enum lacks; an enum can only grow"
    if _respells_key(table, prop, was):
        return f"{label} is part of the key, and ids are made of its `{was}` spelling"
    return (
        f"{label} cannot change from `{was}` to `{now}`; a type can only become wider, within its "
        "own kind; add a new property and fill it instead"
    )


def _change_nullability(table: NodeType | EdgeType, new: Property) -> Step:
    label = f"`{table.name}.{new.name}`"
    where = entity(table, new)
    if new.type.nullable:
        kind, message = StepKind.SET_OPTIONAL, f"make {label} optional"
        return Step(kind, Tier.SAFE, "OG-AD-106", where, message, table.id, new.id, new.type)
    check = NoNulls(table.id, table.name, new.name, new.column)
    message = f"make {label} required; no existing row may lack it"
    kind = StepKind.SET_REQUIRED
    return Step(
        kind, Tier.VALIDATED, "OG-MF-104", where, message, table.id, new.id, new.type, check
    )


def _unsupported(table: NodeType | EdgeType, prop: Property, code: str, reason: str) -> Step:
    kind = StepKind.UNSUPPORTED_CHANGE
    where = entity(table, prop)
    return Step(kind, Tier.UNSUPPORTED, code, where, reason, table.id, prop.id)
