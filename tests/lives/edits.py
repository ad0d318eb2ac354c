"""Random writes: mutations as syntax, records for ingest, and input that every door must refuse."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.lives import values
from tests.lives.blueprint import INTEGERS, Blueprint, Edge, Node
from tests.lives.parser import lit
from tests.lives.phrases import Phrases, Scope
from tests.lives.syntax import Delete, Expr, Insert, Statement, Update, Write

Record = tuple[str, str | None, dict[str, Any]]


class Edits:
    def __init__(self, random: Random, blueprint: Blueprint) -> None:
        self.random, self.blueprint = random, blueprint

    # Records.

    def records(self, count: int) -> list[Record]:
        found = [self.record(self.random.choice(self.blueprint.nodes)) for _ in range(count)]
        for _ in range(self.random.choice((0, 0, 1, 2))):
            found.append(self.record(self.random.choice(self.blueprint.edges)))
        self.random.shuffle(found)
        return found

    def whole(self) -> list[Record]:
        """A first load, with edges between nodes that are there."""
        found: dict[tuple[str, str], Record] = {}
        for node in self.blueprint.nodes:
            for _ in range(self.random.randint(3, 7)):
                record = self.record(node)
                found[(node.name, self.identity(record))] = record
        ids: dict[str, list[str]] = {}
        for name, id_ in found:
            ids.setdefault(name, []).append(id_)
        edges: list[Record] = []
        for edge in self.blueprint.edges:
            for n in range(self.random.randint(2, 8)):
                ends = {
                    "src": self.random.choice(ids[edge.src]),
                    "dst": self.random.choice(ids[edge.dst]),
                }
                edges.append((edge.name, f"e{n}", {**self._values(edge), **ends}))
        return [*found.values(), *self._within_bounds(edges)]

    def _within_bounds(self, edges: list[Record]) -> list[Record]:
        left: dict[tuple[str, str], int] = {}
        kept = []
        for record in edges:
            most = self.blueprint.edge(record[0]).most
            key = (record[0], record[2]["src"])
            left[key] = left.get(key, 0) + 1
            if most is None or left[key] <= most:
                kept.append(record)
        return kept

    def identity(self, record: Record) -> str:
        node = self.blueprint.node(record[0])
        return values.identify(record[2][node.key]) if node.key else str(record[1])

    def record(self, type_: Node | Edge) -> Record:
        given = self._values(type_)
        if isinstance(type_, Edge):
            given["src"] = self.some_id(type_.src)
            given["dst"] = self.some_id(type_.dst)
            return (type_.name, f"e{self.random.randint(0, 9)}", given)
        return (type_.name, None if type_.key else f"n{self.random.randint(0, 6)}", given)

    def _values(self, type_: Node | Edge) -> dict[str, Any]:
        found = {}
        for prop in type_.props:
            if isinstance(type_, Node) and prop.name == type_.key:
                found[prop.name] = values.key(self.random, prop.kind)
            elif prop.bounds:
                found[prop.name] = self.random.randint(0, 1000)
            elif prop.unique and prop.kind != "String":
                found[prop.name] = self.random.randint(0, 40)
            elif prop.unique:
                found[prop.name] = f"u{self.random.randint(0, 40)}"
            else:
                found[prop.name] = values.of(self.random, prop)
        return found

    def some_id(self, type_: str) -> str:
        node = self.blueprint.node(type_)
        if node.key is None:
            return f"n{self.random.randint(0, 6)}"
        return values.identify(values.key(self.random, node.prop(node.key).kind))

    # Mutations.

    def mutation(self) -> tuple[Write, dict[str, Any]]:
        phrases = Phrases(self.random, self.blueprint)
        statements: list[Statement] = []
        if self.random.random() < 0.25:
            statements.append(self._delete(phrases))
        else:
            makers = (self._insert, self._update, self._update, self._upsert)
            statements += [
                self.random.choice(makers)(phrases) for _ in range(self.random.randint(1, 2))
            ]
            if self.random.random() < 0.4:
                statements.append(self._insert_edge(phrases))
        kinds = tuple((name, kind) for name, (kind, _) in phrases.params.items())
        return Write(tuple(statements), kinds), {
            n: value for n, (_, value) in phrases.params.items()
        }

    def _fields(
        self, phrases: Phrases, type_: Node | Edge, given: dict[str, Any]
    ) -> list[tuple[str, Expr]]:
        found = []
        for name, value in given.items():
            if value is None and self.random.random() < 0.7:
                continue
            prop = type_.prop(name)
            plain = prop.many or prop.kind == "vector"
            found.append(
                (
                    f"{type_.name}.{name}",
                    lit(value) if plain else phrases.constant(prop.kind, value),
                )
            )
        return found

    def _node(self) -> Node:
        return self.random.choice(self.blueprint.nodes)

    def _insert(self, phrases: Phrases) -> Statement:
        node = self._node()
        return Insert(node.name, tuple(self._fields(phrases, node, self._values(node))))

    def _insert_edge(self, phrases: Phrases) -> Statement:
        edge = self.random.choice(self.blueprint.edges)
        fields = self._fields(phrases, edge, self._values(edge))
        ends: list[tuple[str, Expr]] = [
            ("from", lit(self.some_id(edge.src))),
            ("to", lit(self.some_id(edge.dst))),
        ]
        return Insert(edge.name, (*ends, *fields))

    def _upsert(self, phrases: Phrases) -> Statement:
        node = self._node()
        if node.key is None:
            return self._update(phrases)
        fields = tuple(self._fields(phrases, node, self._values(node)))
        return Insert(
            node.name, fields, self.random.choice(("update", "replace", "nothing", "error"))
        )

    def _where(self, phrases: Phrases, type_: Node | Edge) -> Expr:
        if isinstance(type_, Node) and type_.key and self.random.random() < 0.5:
            wanted = values.key(self.random, type_.prop(type_.key).kind)
            return ("bin", "=", ("prop", None, f"{type_.name}.{type_.key}"), lit(wanted))
        scope: Scope = {"row": (type_.name,)}
        return _bare(phrases.condition(scope, 1))

    def _update(self, phrases: Phrases) -> Statement:
        node = self._node()
        fits = [p for p in node.props if p.name != node.key]
        chosen = self.random.sample(fits, min(len(fits), self.random.randint(1, 2)))
        given = {n: v for n, v in self._values(node).items() if n in [p.name for p in chosen]}
        sets: list[tuple[str, Expr]] = []
        for prop in chosen:
            sets.append(
                (
                    f"{node.name}.{prop.name}",
                    self._new_value(phrases, node, prop.name, given[prop.name]),
                )
            )
        return Update(node.name, tuple(sets), self._where(phrases, node))

    def _new_value(self, phrases: Phrases, node: Node, name: str, value: Any) -> Expr:
        prop = node.prop(name)
        own = ("prop", None, f"{node.name}.{name}")
        counts = prop.kind in INTEGERS
        if counts and not prop.many and not prop.unique and self.random.random() < 0.4:
            if self.random.random() < 0.5:
                return ("call", "coalesce", (own, lit(value or 0)))
            return ("bin", self.random.choice(("+", "-")), own, lit(self.random.randint(0, 3)))
        if prop.many or prop.kind == "vector" or value is None:
            return lit(value)
        return phrases.constant(prop.kind, value)

    def _delete(self, phrases: Phrases) -> Statement:
        if self.random.random() < 0.4:
            edge = self.random.choice(self.blueprint.edges)
            end, name = self.random.choice((("from", edge.src), ("to", edge.dst)))
            where: Expr = ("bin", "=", ("prop", None, end), lit(self.some_id(name)))
            return Delete(edge.name, where)
        node = self._node()
        return Delete(node.name, self._where(phrases, node))


def _bare(expr: Any) -> Any:
    """Properties of the row at hand have no variable."""
    if isinstance(expr, tuple):
        if expr and expr[0] == "prop":
            return ("prop", None, expr[2])
        if expr and expr[0] == "lit":
            return expr
        return tuple(_bare(part) for part in expr)
    return expr
