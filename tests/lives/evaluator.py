"""Answers a query from its text, over a state of plain dicts: the naive way, row by row.

Nothing here is shared with the program: neither parser nor plan nor values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.lives import scalars, words
from tests.lives.blueprint import INTERFACE, Blueprint, Edge
from tests.lives.parser import parse
from tests.lives.state import Dictionary, Ref, State
from tests.lives.syntax import Bind, Block, Cond, Expr, Query, Stage, Walk
from tests.lives.values import narrow

Env = dict[str, Any]


@dataclass
class Answer:
    """Rows in order; rows with equal keys may come in any order. `start` and `stop` cut them."""

    columns: list[str]
    rows: list[list[Any]]
    keys: list[Any]
    start: int
    stop: int | None


class Evaluator:
    def __init__(self, blueprint: Blueprint, state: State, params: dict[str, Any]) -> None:
        self.blueprint, self.state, self.params = blueprint, state, params
        self.names = Dictionary(blueprint, state.names)
        # Whether nodes of different types share an id: then ids do not decide the order.
        self.vague = False
        # Whether an integer outside of its type is an error, as in a value to be written, or null.
        self.strict = False
        # The types that the text gives to variables.
        self.types: dict[str, list[str]] = {}
        self.fresh = 0

    def answer(self, text: str) -> Answer:
        query = parse(text)
        assert isinstance(query, Query)
        for stage in query.stages:
            self._note_types(stage.clauses)
        envs: list[Env] = [{}]
        for stage in query.stages[:-1]:
            envs = self._hand_on(stage, self._finish(stage, self._match(stage, envs)))
        return self._finish(query.stages[-1], self._match(query.stages[-1], envs))

    def _note_types(self, clauses: Iterable[Any]) -> None:
        for clause in clauses:
            if isinstance(clause, Bind):
                self.types[clause.var] = self._types(clause.type)
            elif isinstance(clause, Block):
                self._note_types(clause.clauses)

    # Patterns.

    def _match(self, stage: Stage, envs: list[Env]) -> list[Env]:
        return [found for env in envs for found in self.solve(stage.clauses, env)]

    def solve(self, clauses: Iterable[Any], env: Env) -> list[Env]:
        clauses = list(clauses)
        envs = [env]
        order = [name for name in _bound_order(clauses) if name not in env]
        for bind in (c for c in clauses if isinstance(c, Bind)):
            envs = [found for e in envs for found in self._bind(bind, e)]
        for walk in (c for c in clauses if isinstance(c, Walk)):
            envs = [found for e in envs for found in self._walk(walk, e)]
        for block in (c for c in clauses if isinstance(c, Block) and c.word == "optional"):
            envs = [found for e in envs for found in self._optional(block, e)]
        for cond in (c for c in clauses if isinstance(c, Cond)):
            envs = [e for e in envs if self.value(cond.expr, e) is True]
        for block in (c for c in clauses if isinstance(c, Block) and c.word == "not"):
            envs = [e for e in envs if not self.solve(block.clauses, e)]
        return [_arranged(e, order) for e in envs]

    def _types(self, name: str) -> list[str]:
        if name == INTERFACE:
            return [node.name for node in self.blueprint.named]
        return [self.names.types[name]]

    def _bind(self, bind: Bind, env: Env) -> Iterator[Env]:
        for type_ in self._types(bind.type):
            for id_ in self.state.rows[type_]:
                ref = Ref(type_, id_)
                if env.get(bind.var, ref) != ref:
                    continue
                found = {**env, bind.var: ref}
                if all(self._holds(bind.var, p, value, found) for p, value in bind.props):
                    yield found

    def _holds(self, var: str, prop: str, wanted: Expr, env: Env) -> bool:
        held = self.value(("prop", var, prop), env)
        if isinstance(held, list):
            return self.value(wanted, env) in held
        return self._compare("=", ("prop", var, prop), wanted, env) is True

    def _optional(self, block: Block, env: Env) -> list[Env]:
        found = self.solve(block.clauses, env)
        return found or [{**dict.fromkeys(_variables(block.clauses)), **env}]

    def _walk(self, walk: Walk, env: Env) -> Iterator[Env]:
        src_name, dst_name = walk.src, walk.dst
        if dst_name == "_":
            self.fresh += 1
            dst_name = f"_{self.fresh}"
        starts = [env[src_name]] if src_name in env else self._all_nodes()
        for src in starts:
            for dst, extra in self._ends(walk, src):
                if env.get(dst_name, dst) == dst:
                    if dst_name == src_name and dst != src:
                        continue
                    yield {**env, src_name: src, dst_name: dst, **extra}

    def _all_nodes(self) -> list[Ref]:
        return [Ref(n.name, id_) for n in self.blueprint.nodes for id_ in self.state.rows[n.name]]

    def _ends(self, walk: Walk, src: Ref | None) -> Iterator[tuple[Ref, Env]]:
        if src is None:
            return
        if walk.edge_var:
            for edge, dst in self._steps(walk, src, src.type):
                yield dst, {walk.edge_var: edge}
            return
        most = 1 if walk.most is None else walk.most
        for dst, hops in self._reach(walk, src, most).items():
            yield dst, {walk.hops: hops} if walk.hops else {}

    def _reach(self, walk: Walk, src: Ref, most: int) -> dict[Ref, int]:
        """Nodes with their hops. No node is walked to twice, and the start is there already; an
        edge from a node to itself leads to that node, one hop on, and no further."""
        found: dict[Ref, int] = {}
        visited, level, hops = {src}, [src], 0
        while level and hops != most:
            hops += 1
            ahead: list[Ref] = []
            for node in level:
                for _, dst in self._steps(walk, node, src.type):
                    if dst != node and dst in visited:
                        continue
                    if dst != node:
                        visited.add(dst)
                        ahead.append(dst)
                    if hops >= walk.least:
                        found.setdefault(dst, hops)
            level = ahead
        return found

    def _ways(self, walk: Walk, edge: Edge, start: str) -> tuple[bool, bool]:
        """Whether an edge is walked as it is declared, and against that."""
        if walk.direction != "derived":
            return walk.direction == "both", True
        if edge.src == edge.dst:
            return True, False
        if walk.most is None:
            return True, True
        # In a walk of several hops the types at both ends decide, for all hops.
        ends = self.types.get(walk.dst, ())
        forward = edge.src == start or edge.dst in ends
        backward = edge.dst == start or edge.src in ends
        return forward or not backward, backward

    def _steps(self, walk: Walk, node: Ref, start: str) -> Iterator[tuple[Ref, Ref]]:
        edges = [self.names.types[_case(e, self.names)] for e in walk.edges]
        for name in edges or [e.name for e in self.blueprint.edges]:
            edge = self.blueprint.edge(name)
            forward, backward = self._ways(walk, edge, start)
            for ref, src, dst in self.state.edges(self.blueprint, name):
                if forward and src == node:
                    yield ref, dst
                if backward and dst == node and not (forward and src == dst):
                    yield ref, src

    # Expressions.

    def value(self, expr: Expr, env: Env) -> Any:
        try:
            return getattr(self, f"_of_{expr[0]}")(expr, env)
        except scalars.BeyondError:
            if self.strict:
                raise
            return None

    def _of_lit(self, expr: Expr, env: Env) -> Any:
        value = expr[2]
        beyond = type(value) is int and value > scalars.I64[1]
        return scalars.unsigned(value) if beyond else value

    def _of_param(self, expr: Expr, env: Env) -> Any:
        return self.params[expr[1]]

    def _of_var(self, expr: Expr, env: Env) -> Any:
        return env[expr[1]]

    def _of_alias(self, expr: Expr, env: Env) -> Any:
        return env[f" {expr[1]}"]

    def _of_prop(self, expr: Expr, env: Env) -> Any:
        ref = env[expr[1]] if expr[1] is not None else env[" row"]
        if ref is None:
            return None
        if expr[2] == "id":
            return ref.id
        row = self.state.row(ref)
        if expr[2] in ("from", "to") and "src" in row:
            return row["src" if expr[2] == "from" else "dst"]
        name = self.names.prop(ref.type, expr[2])
        is_u64 = self.blueprint.type(ref.type).prop(name).kind == "U64"
        return scalars.unsigned(row[name]) if is_u64 else row[name]

    def _of_bin(self, expr: Expr, env: Env) -> Any:
        _, op, left, right = expr
        if op == "and":
            return scalars.both(self.value(left, env), self.value(right, env))
        if op == "or":
            return scalars.either(self.value(left, env), self.value(right, env))
        if op in ("+", "-", "*", "/", "%"):
            return scalars.arithmetic(op, self.value(left, env), self.value(right, env))
        return self._compare(op, left, right, env)

    def _compare(self, op: str, left: Expr, right: Expr, env: Env) -> bool | None:
        a, b = self.value(left, env), self.value(right, env)
        if self._is_narrow(left, env) and right[0] == "lit" and isinstance(b, float):
            b = narrow(b)
        if self._is_narrow(right, env) and left[0] == "lit" and isinstance(a, float):
            a = narrow(a)
        return scalars.compare(op, a, b)

    def _is_narrow(self, expr: Expr, env: Env) -> bool:
        """A property of type F32: a decimal against it is read at its precision."""
        if expr[0] != "prop" or expr[2] in ("id", "from", "to"):
            return False
        ref = env[expr[1]] if expr[1] is not None else env[" row"]
        if ref is None:
            return False
        return self.blueprint.type(ref.type).prop(self.names.prop(ref.type, expr[2])).kind == "F32"

    def _of_not(self, expr: Expr, env: Env) -> bool | None:
        value = self.value(expr[1], env)
        return None if value is None else not value

    def _of_neg(self, expr: Expr, env: Env) -> Any:
        value = self.value(expr[1], env)
        if value is None:
            return None
        return scalars.fit(-int(value)) if isinstance(value, int) else -value

    def _of_null(self, expr: Expr, env: Env) -> bool:
        return (self.value(expr[1], env) is None) != expr[2]

    def _of_in(self, expr: Expr, env: Env) -> bool | None:
        value = self.value(expr[1], env)
        items = self.params[expr[2][1]] if expr[2][0] == "param" else [i[2] for i in expr[2][1]]
        if self._is_narrow(expr[1], env) and expr[2][0] == "list":
            items = [narrow(i) if isinstance(i, float) else i for i in items]
        found = scalars.member(value, items)
        return found if found is None else found != expr[3]

    def _of_call(self, expr: Expr, env: Env) -> Any:
        if expr[1] in _SEARCHES:
            args = [self.value(arg, env) for arg in expr[2]]
            return _SEARCHES[expr[1]](*args)
        return scalars.call(expr[1], [self.value(arg, env) for arg in expr[2]])

    # Results.

    def _finish(self, stage: Stage, envs: list[Env]) -> Answer:
        self.vague = self.vague or _share_ids(envs)
        envs.sort(key=self._ids)
        grouped = any(_aggregates(value) for value, _ in stage.values)
        rows = self._groups(stage, envs) if grouped else [(env, [env]) for env in envs]
        made = []
        for env, members in rows:
            row = [self._in_group(value, env, members) for value, _ in stage.values]
            named = {
                f" {alias}": v for (_, alias), v in zip(stage.values, row, strict=True) if alias
            }
            made.append((row, {**env, **named}, members))
        if stage.having is not None:
            having = stage.having
            made = [m for m in made if self._in_group(having, m[1], m[2]) is True]
        if stage.distinct:
            made = list({repr(m[0]): m for m in made}.values())
        own = grouped or stage.distinct
        places = [n for n, (value, _) in enumerate(stage.values) if not _aggregates(value)]
        keyed = [
            (self._own_key([row[n] for n in places]) if own else self._ids(env), row, env, group)
            for row, env, group in made
        ]
        keyed.sort(key=lambda item: item[0])
        full = [(self._order_keys(stage, env, group), key, row) for key, row, env, group in keyed]
        for place in reversed(range(len(stage.order))):
            desc = stage.order[place][1]
            full.sort(key=_sorter(place), reverse=desc)
        start = stage.offset or 0
        stop = None if stage.limit is None else start + stage.limit
        columns = [alias or _column(value) for value, alias in stage.values]
        return Answer(columns, [r for *_, r in full], [(o, k) for o, k, _ in full], start, stop)

    def _ids(self, env: Env) -> tuple[Any, ...]:
        """The ids of what a row binds."""
        return (
            ()
            if self.vague
            else tuple((0,) if r is None else (1, r.id) for r in _refs(env).values())
        )

    def _own_key(self, row: list[Any]) -> tuple[Any, ...]:
        """Groups and distinct rows come by their own values."""
        if self.vague:
            return ()
        return tuple((1, v.id) if isinstance(v, Ref) else sort_key(v) for v in row if _orders(v))

    def _order_keys(self, stage: Stage, env: Env, group: list[Env]) -> list[Any]:
        return [sort_key(self._in_group(expr, env, group)) for expr, _ in stage.order]

    def _groups(self, stage: Stage, envs: list[Env]) -> list[tuple[Env, list[Env]]]:
        keys = [value for value, _ in stage.values if not _aggregates(value)]
        if not keys:
            return [(envs[0] if envs else {}, envs)]
        groups: dict[Any, list[Env]] = {}
        for env in envs:
            groups.setdefault(tuple(sort_key(self.value(k, env)) for k in keys), []).append(env)
        return [(members[0], members) for members in groups.values()]

    def _in_group(self, expr: Expr, env: Env, members: list[Env]) -> Any:
        """The value of an expression that may hold aggregates."""
        if expr[0] == "agg":
            if expr[3] is None:
                return len(members)
            values = [self.value(expr[3], m) for m in members]
            return scalars.aggregate(expr[1], expr[2], values, ordered=not self.vague)
        if not _aggregates(expr):
            return self.value(expr, env)
        solved = tuple(_solved(part, lambda e: self._in_group(e, env, members)) for part in expr)
        return self.value(solved, env)

    def _hand_on(self, stage: Stage, answer: Answer) -> list[Env]:
        rows = answer.rows[answer.start : answer.stop]
        envs = []
        for row in rows:
            env: Env = {}
            for (value, alias), held in zip(stage.values, row, strict=True):
                if value[0] == "var" and (held is None or isinstance(held, Ref)):
                    env[alias or value[1]] = held
                else:
                    env[f" {alias}"] = held
            envs.append(env)
        return envs


def _solved(part: Any, solve: Callable[[Expr], Any]) -> Any:
    """A part of an expression, with its aggregates replaced by their values."""
    if isinstance(part, tuple) and part and _aggregates(part):
        value = solve(part) if isinstance(part[0], str) else None
        return ("lit", type(value).__name__, value)
    return part


def _aggregates(expr: Any) -> bool:
    if not isinstance(expr, tuple):
        return False
    return bool(expr) and (expr[0] == "agg" or any(_aggregates(part) for part in expr))


def _case(edge: str, names: Dictionary) -> str:
    """Edges are written with a small first letter; the parser made it a capital."""
    return next(name for name in names.types if name.lower() == edge.lower())


def _bound_order(clauses: list[Any]) -> list[str]:
    """Variables in the order in which a pattern binds them: nodes with a type, then those of walks,
    then edges, then those of optional blocks; each in the order of the text."""
    found = [clause.var for clause in clauses if isinstance(clause, Bind)]
    walks = [clause for clause in clauses if isinstance(clause, Walk)]
    found += [v for walk in walks for v in (walk.src, walk.dst) if v != "_"]
    found += [walk.edge_var for walk in walks if walk.edge_var]
    for block in (c for c in clauses if isinstance(c, Block) and c.word == "optional"):
        found += _variables(block.clauses)
    return list(dict.fromkeys(found))


def _variables(clauses: Iterable[Any]) -> list[str]:
    found = _bound_order(list(clauses))
    return found + [c.hops for c in clauses if isinstance(c, Walk) and c.hops]


def _arranged(env: Env, order: list[str]) -> Env:
    first = {name: env[name] for name in env if name not in order}
    return {**first, **{name: env[name] for name in order if name in env}}


def _refs(env: Env) -> dict[str, Ref | None]:
    return {
        name: value
        for name, value in env.items()
        if (value is None or isinstance(value, Ref)) and not name.startswith((" ", "_"))
    }


def _share_ids(envs: list[Env]) -> bool:
    types: dict[tuple[str, str], str] = {}
    for env in envs:
        for name, ref in _refs(env).items():
            if ref is not None and types.setdefault((name, ref.id), ref.type) != ref.type:
                return True
    return False


def sort_key(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (1, value.id, value.type) if isinstance(value, Ref) else (1, value)


def _orders(value: Any) -> bool:
    return not isinstance(value, list)


def _sorter(place: int) -> Any:
    return lambda item: item[0][place]


def _column(expr: Expr) -> str:
    if expr[0] == "prop":
        return f"{expr[1]}.{expr[2]}"
    return str(expr[1])


_SEARCHES: dict[str, Any] = {
    "search": words.finds_any,
    "bm25": words.finds_any,
    "match_text": words.finds_phrase,
}
