"""Apply migration steps to a catalog, without touching data.

Guarantees: applying the steps of a supported plan to the accepted catalog gives exactly the
desired one, hash included; steps of one plan may be applied in any order that keeps removals of
constraints before additions.
Deliberately absent: judgement. Whether the data allows a step is checked by others, before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.errors import Diagnostic, InvariantViolationError, SchemaError
from omnigraph.lang.diagnostics import failure
from omnigraph.lang.pg.byid import constraints_of, name_edge_constraints, name_node_constraints
from omnigraph.lang.pg.steps import Constraint, Default, Replacement, Step, StepKind
from omnigraph.model.catalog import Annotation, Catalog, EdgeType, Interface, NodeType, Property
from omnigraph.model.schema_ir import with_hash
from omnigraph.model.types import ValueType


def apply_steps(
    accepted: Catalog, steps: Iterable[Step], desired: Catalog | None = None
) -> Catalog:
    """The catalog after the steps. With `desired`, also proof that it is the desired one."""
    steps = tuple(steps)
    refused = [s for s in steps if s.kind is StepKind.UNSUPPORTED_CHANGE]
    if refused:
        raise failure(
            SchemaError, [Diagnostic(s.code, f"{s.entity}: {s.message}") for s in refused]
        )
    draft = _Draft(accepted)
    for step in steps:
        draft.apply(step)
    catalog = draft.finish()
    if desired is not None and catalog.hash != desired.hash:
        raise InvariantViolationError("The planned steps do not lead to the desired schema.")
    return catalog


class _Table:
    """A type under change. References are ids; names come back at the end."""

    def __init__(self, table: NodeType | EdgeType, embeds: dict[int, int]) -> None:
        self.table = table
        self.properties = {p.id: p for p in table.properties}
        self.constraints = dict.fromkeys(constraints_of(table))
        self.retired = set(table.retired_columns)
        self.embeds = embeds  # vector property → embedded property

    def drop_property(self, id_: int) -> None:
        self.retired.add(self.properties.pop(id_).column)
        self.embeds.pop(id_, None)

    def finished_properties(self) -> tuple[Property, ...]:
        out = []
        for prop in self.properties.values():
            source = self.properties.get(self.embeds.get(prop.id, 0))
            if prop.embed is not None and source is not None:
                prop = replace(prop, embed=replace(prop.embed, source=source.name))
            out.append(prop)
        return tuple(out)


class _Draft:
    def __init__(self, accepted: Catalog) -> None:
        self.interfaces = {i.id: i for i in accepted.interfaces}
        self.tables = {t.id: _Table(t, _embeds(t)) for t in accepted.tables()}
        numbers = {t.name: t.id for t in accepted.nodes}
        contracts = {i.name: i.id for i in accepted.interfaces}
        self.ends = {e.id: (numbers[e.src_type], numbers[e.dst_type]) for e in accepted.edges}
        self.implements = {n.id: tuple(contracts[i] for i in n.implements) for n in accepted.nodes}
        self.next_id = accepted.next_id

    # One method per step kind would hide that most of them are one assignment.
    def apply(self, step: Step) -> None:
        kind, value = step.kind, step.value
        if kind is StepKind.ADD_TYPE:
            self.add_type(value)
        elif kind is StepKind.DROP_TYPE:
            self.interfaces.pop(step.type_id, None)
            self.tables.pop(step.type_id, None)
        elif step.type_id in self.interfaces:
            self.change_interface(step)
        elif kind is StepKind.RENAME_TYPE:
            assert isinstance(value, str)
            table = self.tables[step.type_id]
            table.table = replace(table.table, name=value)
        elif kind is StepKind.SET_INTERFACES:
            assert isinstance(value, tuple)
            self.implements[step.type_id] = tuple(i for i in value if isinstance(i, int))
        elif kind is StepKind.UPDATE_TYPE_METADATA:
            table = self.tables[step.type_id]
            table.table = replace(table.table, annotations=_annotations(value))
        elif step.property_id is not None:
            self.change_property(self.tables[step.type_id], step, step.property_id)
        else:
            self.change_constraint(self.tables[step.type_id], step)

    def add_type(self, value: object) -> None:
        if isinstance(value, Interface):
            self.interfaces[value.id] = value
        else:
            assert isinstance(value, NodeType | EdgeType)
            self.tables[value.id] = _Table(value, {})
        self.saw(value.id, *(p.id for p in value.properties))

    def change_interface(self, step: Step) -> None:
        interface = self.interfaces[step.type_id]
        if step.kind is StepKind.RENAME_TYPE:
            assert isinstance(step.value, str)
            self.interfaces[step.type_id] = replace(interface, name=step.value)
        else:
            assert isinstance(step.value, Interface)
            self.interfaces[step.type_id] = step.value
            self.saw(*(p.id for p in step.value.properties))

    def change_property(self, table: _Table, step: Step, id_: int) -> None:
        value = step.value
        if step.kind is StepKind.ADD_PROPERTY:
            assert isinstance(value, Property)
            table.properties[id_] = value
            self.saw(id_)
            return
        if step.kind is StepKind.DROP_PROPERTY:
            table.drop_property(id_)
            return
        prop = table.properties[id_]
        if isinstance(value, str):
            prop = replace(prop, name=value)
        elif isinstance(value, ValueType):
            prop = replace(prop, type=_changed_type(step.kind, prop.type, value))
        elif isinstance(value, Default):
            prop = replace(prop, default=value.value, has_default=value.exists)
        else:
            prop = replace(prop, annotations=_annotations(value))
        table.properties[id_] = prop

    def change_constraint(self, table: _Table, step: Step) -> None:
        value = step.value
        if isinstance(value, Replacement):
            table.constraints.pop(value.old, None)
            table.constraints[value.new] = None
        else:
            assert isinstance(value, Constraint)
            if step.kind is StepKind.ADD_CONSTRAINT:
                table.constraints[value] = None
            else:
                table.constraints.pop(value, None)

    def saw(self, *ids: int) -> None:
        self.next_id = max(self.next_id, *(id_ + 1 for id_ in ids), 0)

    def finish(self) -> Catalog:
        nodes = [t for t in self.tables.values() if isinstance(t.table, NodeType)]
        edges = [t for t in self.tables.values() if isinstance(t.table, EdgeType)]
        return with_hash(
            Catalog(
                nodes=tuple(self.finish_node(t) for t in nodes),
                edges=tuple(self.finish_edge(t) for t in edges),
                interfaces=tuple(self.interfaces.values()),
                next_id=self.next_id,
            )
        )

    def finish_node(self, table: _Table) -> NodeType:
        node = table.table
        assert isinstance(node, NodeType)
        contracts = self.implements.get(node.id)
        names = node.implements
        if contracts is not None:
            names = tuple(self.interfaces[i].name for i in sorted(contracts))
        node = replace(
            node,
            properties=table.finished_properties(),
            retired_columns=tuple(sorted(table.retired)),
            implements=names,
        )
        return name_node_constraints(node, table.constraints)

    def finish_edge(self, table: _Table) -> EdgeType:
        edge = table.table
        assert isinstance(edge, EdgeType)
        src, dst = edge.src_type, edge.dst_type
        if edge.id in self.ends:
            src, dst = (self.tables[end].table.name for end in self.ends[edge.id])
        edge = replace(
            edge,
            properties=table.finished_properties(),
            retired_columns=tuple(sorted(table.retired)),
            src_type=src,
            dst_type=dst,
        )
        return name_edge_constraints(edge, table.constraints)


def _embeds(table: NodeType | EdgeType) -> dict[int, int]:
    ids = {p.name: p.id for p in table.properties}
    return {p.id: ids[p.embed.source] for p in table.properties if p.embed is not None}


def _changed_type(kind: StepKind, was: ValueType, now: ValueType) -> ValueType:
    """Whether a value may be absent and what it may be are steps of their own: in a merge the two
    may come from different sides, and neither must undo the other."""
    if kind in (StepKind.SET_REQUIRED, StepKind.SET_OPTIONAL):
        return was.as_nullable(now.nullable)
    return now.as_nullable(was.nullable)


def _annotations(value: object) -> tuple[Annotation, ...]:
    assert isinstance(value, tuple)
    return tuple(a for a in value if isinstance(a, Annotation))
