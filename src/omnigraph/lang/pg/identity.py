"""Match a shape with the accepted catalog: who stays the same, who is new.

What it does: a declaration is the same as an accepted one when it has its name, or else when it
says `@rename_from` that name. Everything else is new and gets a fresh id.
Guarantees: an id is never given out twice in a graph, not even after a drop; an exact name always
wins over a rename hint; new ids are dealt by name, not by place in the text, so that the order of
declarations has no effect on them.
Deliberately absent: whether the change may be applied to the data (see `migrationplan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from omnigraph.lang.diagnostics import Report, offer
from omnigraph.lang.pg.shape import PropertyShape, SchemaShape, TypeShape
from omnigraph.model.catalog import Catalog, EdgeType, Interface, NodeType, Property

AcceptedType: TypeAlias = Interface | NodeType | EdgeType
_WHAT = {"interface": "an interface", "node": "a node type", "edge": "an edge type"}


@dataclass(eq=False, repr=False)
class Identity:
    """The id of one declared type, the ids of its properties, and what it was accepted as."""

    id: int
    accepted: AcceptedType | None
    properties: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class Identities:
    """Identities by kind and name of the type."""

    types: dict[tuple[str, str], Identity]
    next_id: int


def identify(shape: SchemaShape, accepted: Catalog | None, report: Report) -> Identities:
    """Identities for a whole shape. Findings about renames go to the report."""
    declared: list[tuple[str, TypeShape]] = [
        *(("interface", s) for s in shape.interfaces),
        *(("node", s) for s in shape.nodes),
        *(("edge", s) for s in shape.edges),
    ]
    matcher = _Matcher(accepted, declared, report)
    matched = {(kind, s.name): matcher.match_type(kind, s) for kind, s in declared}
    deal = _Dealer(1 if accepted is None else accepted.next_id)
    types: dict[tuple[str, str], Identity] = {}
    order = ("interface", "node", "edge")
    for key in sorted(matched, key=lambda k: (order.index(k[0]), k[1])):
        known = matched[key]
        types[key] = Identity(deal.next() if known is None else known.id, known)
    missing: list[tuple[int, str, Identity]] = []
    for kind, type_shape in declared:
        identity = types[kind, type_shape.name]
        for prop in type_shape.properties:
            same = matcher.match_property(kind, type_shape, prop, identity.accepted)
            if same is not None:
                identity.properties[prop.name] = same.id
            else:
                missing.append((identity.id, prop.name, identity))
    for _, name, identity in sorted(missing, key=lambda entry: entry[:2]):
        identity.properties[name] = deal.next()
    return Identities(types, deal.following)


class _Dealer:
    def __init__(self, following: int) -> None:
        self.following = following

    def next(self) -> int:
        self.following += 1
        return self.following - 1


class _Matcher:
    def __init__(
        self, accepted: Catalog | None, declared: list[tuple[str, TypeShape]], report: Report
    ) -> None:
        self.report = report
        self.declared = {(kind, _folded(kind, shape.name)) for kind, shape in declared}
        self.evolving = accepted is not None
        catalog = accepted or Catalog()
        # Edge names are matched without regard to case, here as everywhere.
        self.accepted: dict[str, Mapping[str, AcceptedType]] = {
            "interface": {t.name: t for t in catalog.interfaces},
            "node": {t.name: t for t in catalog.nodes},
            "edge": {t.name.lower(): t for t in catalog.edges},
        }
        self.claimed: set[int] = set()

    def find(self, kind: str, name: str) -> AcceptedType | None:
        return self.accepted[kind].get(_folded(kind, name))

    def match_type(self, kind: str, shape: TypeShape) -> AcceptedType | None:
        found = self.find(kind, shape.name)
        if found is None and shape.rename is not None and self.evolving:
            old = shape.rename.old
            found = self.find(kind, old)
            if found is None:
                self.unknown_type(kind, shape)
            elif (kind, _folded(kind, old)) in self.declared:
                self.contested(old, shape)
                return None
        elif shape.rename is not None:
            self.idle_hint(shape)
        if found is not None and found.id in self.claimed:
            self.contested(found.name, shape)
            return None
        if found is not None:
            self.claimed.add(found.id)
        return found

    def unknown_type(self, kind: str, shape: TypeShape) -> None:
        assert shape.rename is not None
        old = shape.rename.old
        other = next((k for k in self.accepted if k != kind and self.find(k, old)), None)
        if other is not None:
            message = f"`{old}` is {_WHAT[other]} and cannot become {_WHAT[kind]}"
            self.report.add("S502", message, shape.rename.span)
            return
        names = [t.name for t in self.accepted[kind].values()]
        message = f"the accepted schema has no {kind} `{old}`"
        self.report.add("S501", message, shape.rename.span, hint=offer(old, names))

    def match_property(
        self, kind: str, owner: TypeShape, prop: PropertyShape, accepted: AcceptedType | None
    ) -> Property | None:
        known = () if accepted is None else accepted.properties
        found = _named(known, prop.name)
        if found is None and prop.rename is not None and self.evolving:
            old = prop.rename.old
            found = _named(known, old)
            # An interface's hint is for the nodes that had the old property; others just gain it.
            if found is None and not prop.inherited:
                self.unknown_property(kind, owner, prop, known)
            elif found is not None and any(p.name == old for p in owner.properties):
                self.contested(f"{owner.name}.{old}", prop)
                return None
        elif prop.rename is not None:
            self.idle_hint(prop)
        if found is not None and found.id in self.claimed:
            self.contested(f"{owner.name}.{found.name}", prop)
            return None
        if found is not None:
            self.claimed.add(found.id)
        return found

    def unknown_property(
        self, kind: str, owner: TypeShape, prop: PropertyShape, known: Sequence[Property]
    ) -> None:
        assert prop.rename is not None
        old = prop.rename.old
        if not known:
            message = f"{kind} `{owner.name}` is new, so `{old}` cannot have been renamed in it"
            self.report.add("S502", message, prop.rename.span)
            return
        elsewhere = any(_named(t.properties, old) for t in self.everything())
        reason = "; a property cannot move between types" if elsewhere else ""
        message = f"the accepted {kind} `{owner.name}` has no property `{old}`{reason}"
        hint = offer(old, [p.name for p in known])
        code = "S502" if elsewhere else "S501"
        self.report.add(code, message, prop.rename.span, hint=hint)

    def everything(self) -> Iterable[AcceptedType]:
        for types in self.accepted.values():
            yield from types.values()

    def idle_hint(self, shape: TypeShape | PropertyShape) -> None:
        assert shape.rename is not None
        message = f"`@rename_from` has no effect: `{shape.name}` is not renamed here"
        hint = "remove it once the rename is applied everywhere"
        self.report.add("S902", message, shape.rename.span, severity="info", hint=hint)

    def contested(self, name: str, shape: TypeShape | PropertyShape) -> None:
        span = shape.rename.span if shape.rename is not None else shape.span
        message = f"`{name}` is claimed by two declarations"
        hint = "apply the rename first, and reuse the old name afterwards"
        self.report.add("S503", message, span, hint=hint)


def _folded(kind: str, name: str) -> str:
    return name.lower() if kind == "edge" else name


def _named(properties: Sequence[Property], name: str) -> Property | None:
    return next((p for p in properties if p.name == name), None)
