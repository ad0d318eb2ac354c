"""What a read query means, said as plainly as possible: nested loops over Python dicts.

`answer(query, catalog, data, params)` evaluates the IR of a read query over rows by type, without
plans, indexes, numbers or Arrow. It is slow and obviously right; engines are held against it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

from tests.support.textwalks import from_text

from omnigraph.ir import expr as ir
from omnigraph.ir.fold import contains, replace_parts
from omnigraph.ir.query import EDGE, Direction, OrderKey, Pattern, ReadQuery, Stage, Traversal
from omnigraph.model.catalog import Catalog, EdgeType
from omnigraph.model.types import FLOAT_KINDS, INTEGER_KINDS, Kind

NOW = datetime(2026, 11, 16, tzinfo=UTC)

Node = tuple[str, str]  # (type, id)
Row = Mapping[str, Any]
Env = dict[str, Any]


class Graph:
    """Rows by type, with ends of edges as nodes."""

    def __init__(self, catalog: Catalog, data: Mapping[str, Sequence[Row]]) -> None:
        self.catalog = catalog
        self.params: Mapping[str, Any] = {}
        self.nodes: dict[Node, Row] = {}
        self.edges: dict[Node, Row] = {}
        for table in catalog.tables():
            for number, row in enumerate(data.get(table.name, [])):
                if isinstance(table, EdgeType):
                    name = row.get("id", f"{table.name.lower()}-{number:04d}")
                    ends = {
                        "src": (table.src_type, row["from"]),
                        "dst": (table.dst_type, row["to"]),
                    }
                    self.edges[(table.name, name)] = {**row, "id": name, **ends}
                else:
                    name = str(row.get("id", row.get(table.key[0]) if table.key else None))
                    self.nodes[(table.name, name)] = {**row, "id": name}

    def of_types(self, types: tuple[str, ...]) -> list[Node]:
        return [node for node in self.nodes if node[0] in types]

    def value(self, entity: Node, name: str) -> Any:
        row = self.nodes.get(entity) or self.edges[entity]
        found = row.get(name)
        return found[1] if name in ("src", "dst") and isinstance(found, tuple) else found

    def steps(self, traversal: Traversal, node: Node) -> Iterator[tuple[Node, Node]]:
        """(edge, far node) for every edge that a traversal can walk from a node."""
        for step in traversal.steps:
            edge_type = self.catalog.edge(step.edge)
            assert edge_type is not None
            for edge, row in self.edges.items():
                if edge[0] != edge_type.name:
                    continue
                forward = step.direction in (Direction.OUT, Direction.BOTH) and row["src"] == node
                back = step.direction in (Direction.IN, Direction.BOTH) and row["dst"] == node
                ends = ([row["dst"]] if forward else []) + ([row["src"]] if back else [])
                for far in dict.fromkeys(ends):
                    if far in self.nodes and node in self.nodes and self.holds(step.where, edge):
                        yield edge, far

    def holds(self, where: tuple[ir.Expr, ...], edge: Node) -> bool:
        """Whether the filter of a step keeps an edge."""
        oracle = Oracle(self, self.params)
        return all(oracle.value(predicate, {EDGE: edge}) is True for predicate in where)

    def reached(self, traversal: Traversal, node: Node) -> dict[Node, int]:
        """Far nodes with their number of hops, as the language counts."""
        most = traversal.max_hops if traversal.max_hops is not None else len(self.nodes) + 1
        visited, frontier = {node}, [node]
        found: dict[Node, int] = {}
        for hop in range(1, most + 1):
            following = []
            for here in frontier:
                for _, far in self.steps(traversal, here):
                    if far == here:
                        if hop >= traversal.min_hops:
                            found.setdefault(far, hop)
                    elif far not in visited:
                        visited.add(far)
                        following.append(far)
                        if hop >= traversal.min_hops:
                            found.setdefault(far, hop)
            frontier = following
        return found


class TooManyRowsError(Exception):
    """A pattern has more matches than nested loops should go through."""


class Oracle:
    """One query over one graph."""

    def __init__(self, graph: Graph, params: Mapping[str, Any], most: int | None = None) -> None:
        self.graph = graph
        self.graph.params = self.params = params
        self.most = most

    # Patterns

    def match(self, pattern: Pattern, env: Env) -> list[Env]:
        found = [dict(env)]
        traversals = list(pattern.traversals)
        for var, types in self._new_vars(pattern, env):
            found = [{**e, var: node} for e in found for node in self.graph.of_types(types)]
            if self.most is not None and len(found) > self.most:
                raise TooManyRowsError
            ready = [t for t in traversals if found and {t.src, t.dst} <= found[0].keys()]
            for traversal in ready:
                traversals.remove(traversal)
                found = [wider for e in found for wider in self.walk(traversal, e)]
        for traversal in traversals:
            found = [wider for e in found for wider in self.walk(traversal, e)]
        late = self._late_names(pattern, env)
        early = [p for p in pattern.predicates if not _names(p) & late]
        found = [e for e in found if all(self.value(p, e) is True for p in early)]
        for optional in pattern.optionals:
            found = list(chain.from_iterable(self._optional(optional, e) for e in found))
        rest = [p for p in pattern.predicates if _names(p) & late]
        found = [e for e in found if all(self.value(p, e) is True for p in rest)]
        for negation in pattern.negations:
            found = [e for e in found if not self.match(negation, e)]
        return found

    def _new_vars(self, pattern: Pattern, env: Env) -> list[tuple[str, tuple[str, ...]]]:
        return [(n.var, n.types) for n in pattern.nodes if n.var not in env]

    def _late_names(self, pattern: Pattern, env: Env) -> set[str]:
        return {n for o in pattern.optionals for n in _bound_by(o)} - env.keys()

    def walk(self, traversal: Traversal, env: Env) -> list[Env]:
        src, dst = env[traversal.src], env[traversal.dst]
        if src is None or dst is None:
            return []
        if traversal.edge_var is not None:
            found = self.graph.steps(traversal, src)
            return [{**env, traversal.edge_var: edge} for edge, far in found if far == dst]
        hops = self.graph.reached(traversal, src).get(dst)
        if hops is None:
            return []
        return [env if traversal.hops_var is None else {**env, traversal.hops_var: hops}]

    def _optional(self, pattern: Pattern, env: Env) -> list[Env]:
        found = self.match(pattern, env)
        names = _bound_by(pattern)
        return found or [{**env, **{name: None for name in names if name not in env}}]

    # Stages

    def run(self, query: ReadQuery) -> list[dict[str, Any]]:
        rows: list[Env] = [{}]
        for stage in query.stages:
            rows = self.stage(stage, rows)
        last = query.stages[-1].projections
        return [{p.name: self._shown(p.expr, row[p.name]) for p in last} for row in rows]

    def _shown(self, expr: ir.Expr, value: Any) -> Any:
        if not isinstance(expr, ir.Entity) or value is None:
            return value
        row = self.graph.nodes[value]
        table = self.graph.catalog.node(value[0])
        assert table is not None
        found = {"id": value[1]} if len(expr.types) == 1 else {"__type": value[0], "id": value[1]}
        names = [p.name for t in expr.types for p in self.graph.catalog.node(t).properties]  # type: ignore[union-attr]
        return {**found, **{name: row.get(name) for name in dict.fromkeys(names)}}

    def stage(self, stage: Stage, rows: list[Env]) -> list[Env]:
        found = [wider for row in rows for wider in self.match(stage.pattern, row)]
        names = _binding_order(stage.pattern, list(rows[0]) if rows else [])
        aliases = {p.name: p.expr for p in stage.projections}
        columns = {name: _inline(expr, {}) for name, expr in aliases.items()}
        having = None if stage.having is None else _inline(stage.having, aliases)
        order = [OrderKey(_inline(k.expr, aliases), k.descending) for k in stage.order]
        found = sorted(found, key=lambda e: [_rank(self._tie(e.get(n))) for n in names])
        if any(contains(expr, ir.Aggregate) for expr in columns.values()):
            pairs = self._grouped(columns, found)
        else:
            pairs = [(self._projected(columns, e), [e]) for e in found]
        if having is not None:
            pairs = [p for p in pairs if self.value(having, _scope(p), p[1]) is True]
        if stage.distinct:
            pairs = _first_of_each(pairs)
            pairs.sort(key=lambda p: [_rank(self._tie(v)) for v in p[0].values()])
        for key in reversed(order):
            pairs.sort(
                key=lambda p, k=key: _rank(self.value(k.expr, _scope(p), p[1])),  # type: ignore[misc]
                reverse=key.descending,
            )
        start = 0 if stage.offset is None else self.value(stage.offset, {})
        stop = None if stage.limit is None else start + self.value(stage.limit, {})
        return [row for row, _ in pairs[start:stop]]

    def _projected(self, columns: Mapping[str, ir.Expr], env: Env) -> Env:
        return {name: self.value(expr, env) for name, expr in columns.items()}

    def _grouped(
        self, columns: Mapping[str, ir.Expr], rows: list[Env]
    ) -> list[tuple[Env, list[Env]]]:
        keys = {n: e for n, e in columns.items() if not contains(e, ir.Aggregate)}
        groups: dict[Any, list[Env]] = {}
        for env in rows:
            key = tuple(_frozen(self.value(expr, env)) for expr in keys.values())
            groups.setdefault(key, []).append(env)
        if not keys and not groups:
            groups[()] = []
        pairs = []
        for members in groups.values():
            first = members[0] if members else {}
            row = {n: self.value(expr, first, members) for n, expr in columns.items()}
            pairs.append((row, members or [{}]))
        pairs.sort(key=lambda p: [_rank(self._tie(p[0][name])) for name in keys])
        return [(row, members if members != [{}] else []) for row, members in pairs]

    def _tie(self, value: Any) -> Any:
        """Nodes and edges sort by id, then by type as the catalog lists them."""
        if isinstance(value, tuple) and (value in self.graph.nodes or value in self.graph.edges):
            kinds = [t.name for t in self.graph.catalog.tables()]
            return (value[1], kinds.index(value[0]))
        return value

    # Expressions

    def value(self, expr: ir.Expr, env: Env, group: list[Env] | None = None) -> Any:
        match expr:
            case ir.Literal():
                return expr.value
            case ir.Param():
                return self.params[expr.name]
            case ir.Now():
                return NOW
            case ir.ValueRef():
                return env[expr.name]
            case ir.Entity():
                return env[expr.var]
            case ir.Property():
                entity = env[expr.var]
                return None if entity is None else self.graph.value(entity, expr.name)
            case ir.Aggregate():
                return self._aggregate(expr, group or [])
            case ir.And() | ir.Or() | ir.Not():
                return self._logic(expr, env, group)
            case ir.Function():
                return _function(expr, [self.value(a, env, group) for a in expr.args])
            case _:
                return self._test(expr, env, group)

    def _logic(self, expr: ir.And | ir.Or | ir.Not, env: Env, group: Any) -> bool | None:
        if isinstance(expr, ir.Not):
            value = self.value(expr.item, env, group)
            return None if value is None else not value
        values = [self.value(item, env, group) for item in expr.items]
        decisive = isinstance(expr, ir.Or)
        if decisive in values:
            return decisive
        return None if None in values else not decisive

    def _test(self, expr: ir.Expr, env: Env, group: Any) -> Any:
        def at(part: ir.Expr) -> Any:
            return self.value(part, env, group)

        match expr:
            case ir.Compare():
                return _compare(
                    expr.op, *_met(expr.left, at(expr.left), expr.right, at(expr.right))
                )
            case ir.IsNull():
                return (at(expr.item) is None) is not expr.negated
            case ir.In():
                return _member(at(expr.options), at(expr.item), expr.item.type.kind)
            case ir.ListContains():
                return _member(at(expr.list), at(expr.item), None)
            case ir.StringTest():
                return _string_test(expr, at(expr.left), at(expr.right))
            case ir.Arithmetic():
                return _arithmetic(expr, at(expr.left), at(expr.right))
        raise AssertionError(f"no such expression: {expr}")

    def _aggregate(self, call: ir.Aggregate, rows: list[Env]) -> Any:
        if call.arg is None:
            return len(rows)
        values = [v for v in (self.value(call.arg, row) for row in rows) if v is not None]
        if call.distinct:
            values = list({_frozen(v): v for v in values}.values())
        match call.fn:
            case ir.AggregateFn.COUNT:
                return len(values)
            case ir.AggregateFn.COLLECT:
                return values
            case ir.AggregateFn.SUM:
                return _total(values) if values else None
            case ir.AggregateFn.AVG:
                return _total(values) / len(values) if values else None
            case ir.AggregateFn.MIN:
                return min(values, default=None)
            case ir.AggregateFn.MAX:
                return max(values, default=None)


def _total(values: list[Any]) -> float:
    """Integers are added up exactly and rounded once."""
    whole = all(isinstance(value, int) for value in values)
    return float(sum(values)) if whole else math.fsum(values)


def answer(
    query: ReadQuery,
    catalog: Catalog,
    data: Mapping[str, Sequence[Row]],
    params: Mapping[str, Any],
    most: int | None = None,
    text: str | None = None,
) -> list[dict[str, Any]]:
    """The rows of a query, in order. `most`: give up when a pattern has more rows on the way.
    `text`: take the edges of walks of several hops from there, not from the checker."""
    if text is not None:
        query = from_text(query, text, catalog)
    return Oracle(Graph(catalog, data), params, most).run(query)


def _names(expr: ir.Expr) -> set[str]:
    from omnigraph.ir.fold import parts

    found = set()
    for part in parts(expr):
        if isinstance(part, ir.Property | ir.Entity):
            found.add(part.var)
        elif isinstance(part, ir.ValueRef):
            found.add(part.name)
    return found


def _bound_by(pattern: Pattern) -> list[str]:
    """The names that a pattern binds, in order; those of its optionals last."""
    names = [node.var for node in pattern.nodes]
    names += [n for t in pattern.traversals for n in (t.src, t.dst)]
    names += [n for t in pattern.traversals for n in (t.edge_var, t.hops_var) if n is not None]
    names += [n for o in pattern.optionals for n in _bound_by(o)]
    return list(dict.fromkeys(names))


def _binding_order(pattern: Pattern, before: list[str]) -> list[str]:
    return list(dict.fromkeys([*before, *_bound_by(pattern)]))


def _inline(expr: ir.Expr, aliases: Mapping[str, ir.Expr]) -> ir.Expr:
    return replace_parts(
        expr, lambda part: aliases.get(part.name) if isinstance(part, ir.ValueRef) else None
    )


def _scope(pair: tuple[Env, list[Env]]) -> Env:
    row, members = pair
    return {**row, **(members[0] if members else {})}


def _first_of_each(pairs: list[tuple[Env, list[Env]]]) -> list[tuple[Env, list[Env]]]:
    found: dict[Any, tuple[Env, list[Env]]] = {}
    for row, members in pairs:
        found.setdefault(tuple(_frozen(v) for v in row.values()), (row, members))
    return list(found.values())


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return ("bool", value) if isinstance(value, bool) else value


def _rank(value: Any) -> tuple[int, Any]:
    """Null first; lists item by item."""
    if isinstance(value, list):
        value = [_rank(item) for item in value]
    return (0, 0) if value is None else (1, value)


def _f32(value: float) -> float:
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return float(near)


def _met(left: ir.Expr, a: Any, right: ir.Expr, b: Any) -> tuple[Any, Any]:
    """A decimal constant against an F32 value has that value's precision."""
    for here, there, swap in ((left, right, False), (right, left, True)):
        value = a if swap else b
        constant = isinstance(there, ir.Literal | ir.Param)
        if here.type.kind is Kind.F32 and constant and isinstance(value, float):
            return (_f32(a), b) if swap else (a, _f32(b))
    return a, b


def _compare(op: ir.CompareOp, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    tests: dict[ir.CompareOp, Callable[[Any, Any], bool]] = {
        ir.CompareOp.EQ: lambda x, y: bool(x == y),
        ir.CompareOp.NE: lambda x, y: bool(x != y),
        ir.CompareOp.LT: lambda x, y: bool(x < y),
        ir.CompareOp.LE: lambda x, y: bool(x <= y),
        ir.CompareOp.GT: lambda x, y: bool(x > y),
        ir.CompareOp.GE: lambda x, y: bool(x >= y),
    }
    return tests[op](a, b)


def _member(options: list[Any] | None, item: Any, kind: Kind | None) -> bool | None:
    if options is None or item is None:
        return None
    if kind is Kind.F32:
        options = [_f32(o) if isinstance(o, float) else o for o in options]
    return any(o is not None and o == item for o in options)


def _string_test(expr: ir.StringTest, a: str | None, b: str | None) -> bool | None:
    if a is None or b is None:
        return None
    if expr.op is ir.StringOp.MATCHES:
        return re.search(b, a) is not None
    if expr.ignore_case:
        a, b = a.lower(), b.lower()
    match expr.op:
        case ir.StringOp.CONTAINS:
            return b in a
        case ir.StringOp.STARTS_WITH:
            return a.startswith(b)
        case ir.StringOp.ENDS_WITH:
            return a.endswith(b)
        case _:
            return a == b


def _arithmetic(expr: ir.Arithmetic, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    found = _computed(expr, a, b)
    return found if isinstance(found, float) else _in_range(found, expr.type.kind)


def _in_range(value: int | None, kind: Kind) -> int | None:
    low, high = (0, 2**64) if kind is Kind.U64 else (-(2**63), 2**63)
    return value if value is not None and low <= value < high else None


def _computed(expr: ir.Arithmetic, a: Any, b: Any) -> Any:
    if expr.type.kind in FLOAT_KINDS:
        a, b = float(a), float(b)
    match expr.op:
        case ir.ArithmeticOp.ADD:
            return a + b
        case ir.ArithmeticOp.SUB:
            return a - b
        case ir.ArithmeticOp.MUL:
            return a * b
        case ir.ArithmeticOp.DIV:
            return None if b == 0 else a / b
        case ir.ArithmeticOp.MOD:
            if b == 0:
                return None
            whole = expr.type.kind in INTEGER_KINDS
            return abs(a) % abs(b) * (-1 if a < 0 else 1) if whole else math.fmod(a, b)


def _function(expr: ir.Function, args: list[Any]) -> Any:
    if expr.name == "coalesce":
        return next((a for a in args if a is not None), None)
    (value,) = args
    if value is None:
        return None
    if expr.name in ("round", "floor", "ceil", "abs"):
        return _rounded(expr, value)
    plain: dict[str, Callable[[Any], Any]] = {
        "lower": str.lower,
        "upper": str.upper,
        "trim": str.strip,
        "length": len,
        "year": lambda v: v.year,
        "month": lambda v: v.month,
        "day": lambda v: v.day,
        "hour": lambda v: v.hour,
        "minute": lambda v: v.minute,
        "second": lambda v: v.second,
        "to_string": _to_string,
    }
    return plain[expr.name](value)


def _rounded(expr: ir.Function, value: Any) -> Any:
    if isinstance(value, int):
        return _in_range(abs(value) if expr.name == "abs" else value, expr.type.kind)
    match expr.name:
        case "abs":
            return abs(value)
        case "floor":
            return float(math.floor(value))
        case "ceil":
            return float(math.ceil(value))
        case _:
            return math.copysign(math.floor(abs(value) + 0.5), value)


def _to_string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
