"""What a write does to a state, and what the schema refuses, by the documented rules."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.lives import scalars, values
from tests.lives.blueprint import ENUM, INTEGERS, Blueprint, Node, Prop
from tests.lives.evaluator import Evaluator
from tests.lives.parser import parse
from tests.lives.state import Ref, Row, State
from tests.lives.syntax import Delete, Insert, Update, Write


class RefusedError(Exception):
    """The program must refuse this too, and change nothing."""


NEW = "new id "


def complete(blueprint: Blueprint, type_: str, given: Row) -> Row:
    """A whole row: what is left out has its default, or is null."""
    row = {p.name: p.default for p in blueprint.type(type_).props}
    row.update({name: value for name, value in given.items() if value is not None})
    return {name: kept(blueprint.type(type_), name, value) for name, value in row.items()}


def kept(type_: Any, name: str, value: Any) -> Any:
    """A value as the property keeps it."""
    if name in ("src", "dst") or value is None:
        return value
    prop = type_.prop(name)
    if prop.kind == "F32":
        return [values.narrow(v) for v in value] if prop.many else values.narrow(value)
    return float(value) if prop.kind == "F64" and not prop.many else value


def node_id(node: Node, row: Row) -> str | None:
    return None if node.key is None else values.identify(row[node.key])


def check(blueprint: Blueprint, state: State) -> None:
    """Raise RefusedError for the first rule of the schema that a state breaks."""
    for type_ in blueprint.types:
        rows = state.rows[type_.name]
        for id_, row in rows.items():
            for prop in type_.props:
                _check_value(f"{type_.name} {id_}", prop, row[prop.name])
        for prop in type_.props:
            held = Counter(
                r[prop.name] for r in rows.values() if prop.unique and r[prop.name] is not None
            )
            if held and held.most_common(1)[0][1] > 1:
                raise RefusedError(f"{type_.name}.{prop.name} must be unique")
    _check_edges(blueprint, state)


def _check_edges(blueprint: Blueprint, state: State) -> None:
    for edge in blueprint.edges:
        leaving: Counter[str] = Counter()
        for row in state.rows[edge.name].values():
            if row["src"] not in state.rows[edge.src] or row["dst"] not in state.rows[edge.dst]:
                raise RefusedError(f"{edge.name} has an end that is not there")
            leaving[row["src"]] += 1
        if edge.most is not None and leaving and max(leaving.values()) > edge.most:
            raise RefusedError(f"{edge.name} leaves a node too often")


def _check_value(where: str, prop: Prop, value: Any) -> None:
    if value is None:
        if not prop.optional:
            raise RefusedError(f"{where}: {prop.name} is required")
        return
    if prop.many:
        return
    bounds = prop.bounds or INTEGERS.get(prop.kind)
    if bounds and not bounds[0] <= value <= bounds[1]:
        raise RefusedError(f"{where}: {prop.name} is out of range")
    if prop.kind == "enum" and value not in ENUM:
        raise RefusedError(f"{where}: {prop.name} has no such word")


# Mutations, from their text.


class Mutation:
    def __init__(self, blueprint: Blueprint, state: State, params: dict[str, Any]) -> None:
        self.blueprint, self.state, self.params = blueprint, state.copy(), params
        self.made = 0

    def run(self, text: str) -> State:
        write = parse(text)
        assert isinstance(write, Write)
        for statement in write.statements:
            if isinstance(statement, Insert):
                self._insert(statement)
            elif isinstance(statement, Update):
                self._update(statement)
            else:
                self._delete(statement)
        check(self.blueprint, self.state)
        return self.state

    def _evaluator(self) -> Evaluator:
        return Evaluator(self.blueprint, self.state, self.params)

    def _fresh(self) -> str:
        self.made += 1
        return f"{NEW}{self.made}"

    def _values(self, type_: str, fields: Any, env: dict[str, Any]) -> Row:
        look = self._evaluator()
        look.strict = True
        found: Row = {}
        for name, expr in fields:
            try:
                value = look.value(expr, env)
            except scalars.BeyondError as error:
                raise RefusedError(f"{name} is {error}") from error
            value = int(value) if isinstance(value, scalars.Unsigned) else value
            if name in ("from", "to") and "src" not in look.names.props[type_]:
                found["src" if name == "from" else "dst"] = values.identify(value)
            else:
                found[look.names.prop(type_, name)] = value
        return found

    def _insert(self, statement: Insert) -> None:
        type_ = self._evaluator().names.types[statement.type]
        given = self._values(type_, statement.values, {})
        rows = self.state.rows[type_]
        declared = self.blueprint.type(type_)
        row = complete(self.blueprint, type_, given)
        id_ = node_id(declared, row) if isinstance(declared, Node) else None
        id_ = self._fresh() if id_ is None else id_
        if id_ not in rows or statement.policy in (None, "replace"):
            rows[id_] = row
        elif statement.policy == "error":
            raise RefusedError(f"{type_} has {id_} already")
        elif statement.policy == "update":
            env = {" row": Ref(type_, id_)}
            sets = self._values(type_, statement.sets, env) if statement.sets else given
            rows[id_] = self._changed(type_, rows[id_], sets)

    def _changed(self, type_: str, row: Row, sets: Row) -> Row:
        declared = self.blueprint.type(type_)
        return {**row, **{name: kept(declared, name, v) for name, v in sets.items()}}

    def _found(self, type_: str, where: Any) -> list[Ref]:
        look = self._evaluator()
        refs = [Ref(type_, id_) for id_ in self.state.rows[type_]]
        return [ref for ref in refs if look.value(where, {" row": ref}) is True]

    def _update(self, statement: Update) -> None:
        type_ = self._evaluator().names.types[statement.type]
        changed = {}
        for ref in self._found(type_, statement.where):
            sets = self._values(type_, statement.sets, {" row": ref})
            changed[ref.id] = self._changed(type_, self.state.row(ref), sets)
        self.state.rows[type_].update(changed)

    def _delete(self, statement: Delete) -> None:
        type_ = self._evaluator().names.types[statement.type]
        gone = {ref.id for ref in self._found(type_, statement.where)}
        self.state.rows[type_] = {i: r for i, r in self.state.rows[type_].items() if i not in gone}
        for edge in self.blueprint.edges:
            ends = [end for end, name in (("src", edge.src), ("dst", edge.dst)) if name == type_]
            if not ends:
                continue
            rows = self.state.rows[edge.name]
            self.state.rows[edge.name] = {
                i: r for i, r in rows.items() if not any(r[end] in gone for end in ends)
            }


# Ingest.


def ingest(blueprint: Blueprint, state: State, records: list[Any], mode: str) -> State:
    """Records are (type, id or None, row), with ends as ids."""
    result = state.copy()
    if mode == "overwrite":
        for type_ in {type_ for type_, _, _ in records}:
            result.rows[type_] = {}
    seen: set[Ref] = set()
    for n, (type_, given, values_) in enumerate(records):
        row = complete(blueprint, type_, values_)
        declared = blueprint.type(type_)
        id_ = (
            (node_id(declared, row) if isinstance(declared, Node) else None) or given or f"{NEW}{n}"
        )
        if mode != "merge" and Ref(type_, id_) in seen:
            raise RefusedError(f"{type_} {id_} occurs twice")
        if mode == "append" and id_ in result.rows[type_]:
            raise RefusedError(f"{type_} {id_} exists")
        seen.add(Ref(type_, id_))
        result.rows[type_][id_] = row
    check(blueprint, result)
    return result
