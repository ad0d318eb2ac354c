"""Random queries: patterns with walks, unions, `not` and `optional`; groups, stages, order, cuts.

Types and properties have their first names; `translation` gives them those of a branch.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.lives.blueprint import INTERFACE, Blueprint, Edge
from tests.lives.parser import lit
from tests.lives.phrases import Phrases, Scope
from tests.lives.syntax import Bind, Block, Clause, Cond, Expr, Query, Stage, Walk
from tests.lives.values import STOPS, WORDS


class Author:
    def __init__(self, random: Random, blueprint: Blueprint) -> None:
        self.random, self.blueprint = random, blueprint
        self.phrases = Phrases(random, blueprint)
        self.scope: Scope = {}
        self.hops: list[str] = []
        # Variables of several types are walked from once: another walk could leave none of them.
        self.settled: set[str] = set()
        self.count = 0

    def query(self) -> tuple[Query, dict[str, Any]]:
        clauses = self.pattern()
        if self.random.random() < 0.12:
            stages = self._two_stages(clauses)
        else:
            stages = (self.result(clauses),)
        params = self.phrases.params
        kinds = tuple((name, kind) for name, (kind, _) in params.items())
        return Query(stages, kinds), {name: value for name, (_, value) in params.items()}

    # Patterns.

    def variable(self) -> str:
        self.count += 1
        return "abcdefghij"[self.count - 1]

    def pattern(self) -> tuple[Clause, ...]:
        clauses: list[Clause] = [self._first()]
        for _ in range(self.random.choice((0, 0, 1, 1, 1, 2))):
            clauses += self.walk()
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            clauses.append(Cond(self.phrases.condition(self.scope)))
        if self.random.random() < 0.2 and (found := self.searching()):
            clauses.append(Cond(found))
        if self.random.random() < 0.18:
            clauses += self.block("not")
        if self.random.random() < 0.18:
            clauses += self.block("optional")
        return tuple(self._shuffled(clauses) if self.random.random() < 0.2 else clauses)

    def _shuffled(self, clauses: list[Clause]) -> list[Clause]:
        self.random.shuffle(mixed := list(clauses))
        return mixed

    def _first(self) -> Bind:
        var = self.variable()
        named = tuple(node.name for node in self.blueprint.named)
        if self.random.random() < 0.2 and len(named) > 1:
            self.scope[var] = named
            return Bind(var, INTERFACE)
        return self.bind(var, self.random.choice(self.blueprint.nodes).name)

    def bind(self, var: str, type_: str) -> Bind:
        self.scope[var] = (type_,)
        fits = [
            p for p in self.blueprint.node(type_).props if p.kind not in ("vector", "F32", "F64")
        ]
        if self.random.random() < 0.15:
            prop = self.random.choice(fits)
            return Bind(var, type_, ((f"{type_}.{prop.name}", self.phrases.constant_of(prop)),))
        return Bind(var, type_)

    def _start(self) -> str | None:
        """A node to walk from."""
        edges = _edge_names(self.blueprint)
        free = [v for v, t in self.scope.items() if v not in self.settled and t[0] not in edges]
        return self.random.choice(free) if free else None

    def walk(self, src: str | None = None) -> list[Clause]:
        """A walk from a variable to a new one, or to one that is there; none if no edge fits."""
        src = src or self._start()
        if src is None or (len(self.scope[src]) > 1 and src in self.settled):
            return []
        self.settled |= {src} if len(self.scope[src]) > 1 else set()
        direction = self.random.choice(("derived", "derived", "derived", "reverse", "both"))
        fits = [e for e in self.blueprint.edges if self._ends(e, self.scope[src], direction)]
        if direction == "both":
            fits = [e for e in fits if e.src == e.dst]
        if not fits:
            return []
        several = self.random.random() < 0.3
        edges = (
            self.random.sample(fits, min(len(fits), 2)) if several else [self.random.choice(fits)]
        )
        if self.random.random() < 0.15:
            return self._any_edge(src, direction, fits)
        if self.random.random() < 0.3:
            return self._long_walk(src, direction, edges)
        types = self._targets(edges, self.scope[src], direction)
        edge_var = None
        if len(edges) == 1 and direction == "derived" and self.random.random() < 0.35:
            edge_var = self.variable()
        dst, extra = self._target(types)
        walk = Walk(src, dst, tuple(e.name for e in edges), direction, edge_var=edge_var)
        if edge_var:
            self.scope[edge_var] = (edges[0].name,)
        return [walk, *extra]

    def _any_edge(self, src: str, direction: str, fits: list[Edge]) -> list[Clause]:
        edges = [e for e in self.blueprint.edges if self._ends(e, self.scope[src], direction)]
        dst, extra = self._target(self._targets(edges, self.scope[src], direction))
        return [Walk(src, dst, (), direction), *extra]

    def _long_walk(self, src: str, direction: str, edges: list[Edge]) -> list[Clause]:
        """Of several hops, within one type."""
        types = self.scope[src]
        if len(types) == 1 and direction == "derived" and self.random.random() < 0.6:
            return self._crossing_walk(src, types[0])
        edges = [e for e in edges if e.src == e.dst and (e.src,) == types]
        if not edges:
            return []
        dst, extra = self._target(types)
        names = tuple(e.name for e in edges)
        return [self._hopping(src, dst, names, direction, *self._bounds()), *extra]

    def _bounds(self) -> tuple[int, int]:
        least = self.random.choice((1, 1, 1, 2))
        return least, self.random.choice((least, least + 1, 3, 3, -1))

    def _hopping(
        self, src: str, dst: str, names: tuple[str, ...], direction: str, least: int, most: int
    ) -> Walk:
        hops = self.variable() if self.random.random() < 0.4 else None
        self.hops += [hops] if hops else []
        return Walk(
            src, dst, names, direction, least, most, hops, shortest=self.random.random() < 0.3
        )

    def _crossing_walk(self, src: str, start: str) -> list[Clause]:
        """Over any edges, to a type that is written down: both ends decide the directions."""
        edges = self.random.sample(self.blueprint.edges, self.random.randint(1, 3))
        if self.random.random() < 0.3:
            edges = list(self.blueprint.edges)
        end = self.random.choice(self.blueprint.nodes).name
        least, most = self._bounds()
        if not self._leads(edges, start, end, least, most):
            return []
        dst = self.variable()
        names = tuple(e.name for e in edges)
        if len(edges) == len(self.blueprint.edges):
            names = ()
        bind = self.bind(dst, end)
        return [self._hopping(src, dst, names, "derived", least, most), bind]

    def _leads(self, edges: list[Edge], start: str, end: str, least: int, most: int) -> bool:
        """Whether types connect within the bounds; a query that cannot find anything is refused."""
        steps: set[tuple[str, str]] = set()
        for edge in edges:
            there, back = (edge.src, edge.dst), (edge.dst, edge.src)
            chosen = {way for way in (there, back) if way[0] == start or way[1] == end}
            steps |= {there} if edge.src == edge.dst else chosen or {there}
        level = {start}
        for hop in range(1, (least + 4 if most == -1 else most) + 1):
            level = {dst for src, dst in steps if src in level}
            if hop >= least and end in level:
                return True
        return False

    def _target(self, types: tuple[str, ...]) -> tuple[str, list[Clause]]:
        nodes = [n for n, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        there = [n for n in nodes if len(self.scope[n]) == 1 and self.scope[n][0] in types]
        if there and self.random.random() < 0.12:
            return self.random.choice(there), []
        var = self.variable()
        if self.random.random() < 0.5:
            return var, [self.bind(var, self.random.choice(types))]
        self.scope[var] = types
        return var, []

    def _ends(self, edge: Edge, types: tuple[str, ...], direction: str) -> set[str]:
        """The types at which an edge ends, from some types on."""
        found: set[str] = set()
        if edge.src in types and direction != "reverse":
            found.add(edge.dst)
        backward = direction != "derived" or edge.src != edge.dst
        if edge.dst in types and backward:
            found.add(edge.src)
        return found

    def _targets(
        self, edges: list[Edge], types: tuple[str, ...], direction: str
    ) -> tuple[str, ...]:
        return tuple(sorted({t for e in edges for t in self._ends(e, types, direction)}))

    def block(self, word: str) -> list[Clause]:
        """Inner variables are seen inside of `not` only, and outside of `optional` as well."""
        kept, hops = dict(self.scope), list(self.hops)
        nodes = [v for v, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        inner = self.walk(self.random.choice(nodes))
        if not inner:
            return []
        fresh = {v: t for v, t in self.scope.items() if v not in kept}
        if fresh and self.random.random() < 0.4:
            inner.append(Cond(self.phrases.condition(fresh)))
        if word == "not" or not fresh:
            self.scope, self.hops = kept, hops
        return [Block(word, tuple(inner))]

    def searching(self) -> Expr | None:
        """A text search as a condition."""
        found = self.phrases.pick(self.scope, ("text",))
        if not found:
            return None
        return (
            "call",
            self.random.choice(("search", "match_text", "bm25")),
            (found[0], lit(self.asked())),
        )

    def asked(self) -> str:
        words = [self.random.choice(WORDS) for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.15:
            words.insert(1, self.random.choice(STOPS))
        return " ".join(words)

    # Results.

    def result(self, clauses: tuple[Clause, ...]) -> Stage:
        if self.random.random() < 0.3:
            return self._grouped(clauses)
        values: list[tuple[Expr, str | None]] = []
        for n in range(self.random.randint(1, 3)):
            expr = self._returned()
            values.append((expr, None if expr[0] in ("prop", "var") and n == 0 else f"r{n}"))
        distinct = self.random.random() < 0.15
        if distinct:
            values = [(self.phrases.plain(self.scope), f"r{n}") for n in range(len(values))]
        order = self._order([("alias", "r0")] if distinct else [])
        return self._cut(Stage(clauses, tuple(values), distinct, order=order))

    def _returned(self) -> Expr:
        chance = self.random.random()
        nodes = [v for v, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        if chance < 0.2:
            return ("var", self.random.choice(nodes))
        if chance < 0.3 and self.hops:
            return ("var", self.random.choice(self.hops))
        if chance < 0.45:
            return self.phrases.number(self.scope)
        if chance < 0.55:
            return self.phrases.condition(self.scope)
        found = self.phrases.props(self.scope)
        return self.random.choice(found)[0] if found else ("prop", self.random.choice(nodes), "id")

    def _order(self, only: list[Expr]) -> tuple[tuple[Expr, bool], ...]:
        if self.random.random() < 0.5:
            return ()
        keys = only or [self.phrases.plain(self.scope) for _ in range(self.random.randint(1, 2))]
        return tuple((key, self.random.random() < 0.4) for key in keys)

    def _cut(self, stage: Stage) -> Stage:
        offset = self.random.randint(0, 3) if self.random.random() < 0.2 else None
        limit = self.random.randint(1, 6) if self.random.random() < 0.35 else None
        return Stage(
            stage.clauses, stage.values, stage.distinct, stage.having, stage.order, offset, limit
        )

    def _aggregate(self) -> Expr:
        chance = self.random.random()
        nodes = [v for v, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        if chance < 0.25:
            return ("agg", "count", False, None)
        if chance < 0.4:
            return ("agg", "count", self.random.random() < 0.5, ("var", self.random.choice(nodes)))
        if chance < 0.55:
            numbers = ("I32", "I64", "U32", "U64", "F64")
            if found := self.phrases.pick(self.scope, numbers):
                return ("agg", self.random.choice(("sum", "avg")), False, found[0])
        value = self.phrases.plain(self.scope)
        if chance < 0.8:
            kinds = ("String", "text", "I32", "I64", "U32", "U64", "F64", "Date", "DateTime")
            if found := self.phrases.pick(self.scope, kinds):
                return ("agg", self.random.choice(("min", "max")), False, found[0])
        name = self.random.choice(("count", "collect"))
        return ("agg", name, self.random.random() < 0.4, value)

    def _grouped(self, clauses: tuple[Clause, ...]) -> Stage:
        keys = [self._group_key() for _ in range(self.random.randint(0, 2))]
        values = [(key, f"g{n}") for n, key in enumerate(keys)]
        values += [(self._aggregate(), f"n{n}") for n in range(self.random.randint(1, 2))]
        having: Expr | None = None
        if self.random.random() < 0.25:
            op = self.random.choice((">", "<=", "!="))
            having = ("bin", op, ("agg", "count", False, None), lit(self.random.randint(0, 3)))
        order: list[tuple[Expr, bool]] = []
        if keys and self.random.random() < 0.3:
            order.append((("alias", "n0"), self.random.random() < 0.5))
            if values[len(keys)][0][1] in ("sum", "avg", "collect"):
                order = []
        stage = Stage(clauses, tuple(values), False, having, tuple(order))
        return self._cut(stage) if keys else stage

    def _group_key(self) -> Expr:
        nodes = [v for v, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        if self.random.random() < 0.3:
            return ("var", self.random.choice(nodes))
        return self.phrases.plain(self.scope)

    def _two_stages(self, clauses: tuple[Clause, ...]) -> tuple[Stage, ...]:
        nodes = [v for v, held in self.scope.items() if held[0] not in _edge_names(self.blueprint)]
        kept = self.random.choice(nodes)
        value = ("agg", "count", False, None) if self.random.random() < 0.6 else None
        values: list[tuple[Expr, str | None]] = [(("var", kept), None)]
        if value:
            values.append((value, "total"))
        first = Stage(clauses, tuple(values), distinct=value is None)
        self.scope, self.hops = {kept: self.scope[kept]}, []
        more = tuple(self.walk(kept)) if self.random.random() < 0.7 else ()
        second = self.result(more)
        if value and second.values[0][0][0] != "agg" and not second.distinct:
            grouped = any(e[0] == "agg" for e, _ in second.values)
            if not grouped:
                second = Stage(
                    more, (*second.values, (("alias", "total"), "total2")), False, None,
                    second.order, second.offset, second.limit,
                )  # fmt: skip
        return first, second


def _edge_names(blueprint: Blueprint) -> set[str]:
    return {edge.name for edge in blueprint.edges}
