"""Lint rules for one query: what compiles, but was probably not meant.

What it does: each rule looks at a query's tree, and where connections matter at its IR, and adds
warnings to a report.
Guarantees: pure; rules are independent of each other.
Deliberately absent: rules that need several queries (`linter`).
"""

from __future__ import annotations

from collections import Counter

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.ir.fold import parts
from omnigraph.lang.diagnostics import Report, Span
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.variables import nodes_in, occurrences

_ANONYMOUS = "_"
_RANKINGS = frozenset({"bm25", "search", "fuzzy", "match_text", "rrf"})
_CARRIED = ""  # stands for the row of the stage before, which connects all that it hands on


def check_habits(node: ast.Query, query: irq.Query, report: Report) -> None:
    """Add the warnings of every rule to a report."""
    _hardcoded(node, report)
    _unused_params(node, report)
    if isinstance(node.body, ast.Read) and isinstance(query, irq.ReadQuery):
        _unused_variables(node, node.body, report)
        _shadowed_params(node, report)
        _unbounded(node, report)
        _ignored_direction(node, report)
        for stage, lowered in zip(node.body.stages, query.stages, strict=True):
            if stage.match is not None:
                first = stage is node.body.stages[0]
                _disconnected(lowered.pattern, stage.match.span, report, carried=not first)


def _warn(report: Report, code: str, message: str, span: Span, hint: str | None = None) -> None:
    report.add(code, message, span, severity="warning", hint=hint)


def _hardcoded(node: ast.Query, report: Report) -> None:
    if isinstance(node.body, ast.Write) and not node.params:
        message = f"write query `{node.name.text}` has no parameters"
        hint = "constants in a write are easy to overlook; declare them as parameters"
        _warn(report, "L202", message, node.name.span, hint)


def _unused_params(node: ast.Query, report: Report) -> None:
    used = {name for name, _ in occurrences(node.body)}
    for param in node.params:
        if param.name.text not in used:
            message = f"parameter `${param.name.text}` is not used"
            _warn(report, "L203", message, param.span, "remove it")


def _unused_variables(node: ast.Query, body: ast.Read, report: Report) -> None:
    params = {param.name.text for param in node.params}
    uses = Counter(name for name, _ in occurrences(body))
    for stage in body.stages:
        counts_rows = any(isinstance(n, ast.Call) and n.star for n in nodes_in(stage.select))
        for clause in nodes_in(stage.match):
            for name, hint in _introduced(clause, counts_rows):
                text = name.text
                if uses[text] == 1 and text != _ANONYMOUS and text not in params:
                    _warn(report, "L204", f"`${text}` is not used", name.span, hint)


def _introduced(clause: ast.Node, counts_rows: bool) -> list[tuple[ast.Name, str]]:
    if isinstance(clause, ast.Binding) and not counts_rows:
        return [(clause.var, "use it in the pattern or in the results, or remove it")]
    if isinstance(clause, ast.Traversal):
        ends = [(end, "write `$_` for a node of no interest") for end in (clause.src, clause.dst)]
        extras = (clause.edge_var, clause.hops_var)
        return ends + [(each, "remove it") for each in extras if each is not None]
    return []


def _shadowed_params(node: ast.Query, report: Report) -> None:
    params = {param.name.text for param in node.params}
    for clause in nodes_in(node.body):
        for name, _ in _introduced(clause, counts_rows=False):
            if name.text in params:
                message = f"variable `${name.text}` has the name of a parameter"
                hint = f"`${name.text}` alone means the parameter; rename one of them"
                _warn(report, "L209", message, name.span, hint)
                params.discard(name.text)


def _unbounded(node: ast.Query, report: Report) -> None:
    for clause in nodes_in(node.body):
        if isinstance(clause, ast.Traversal) and clause.bounds and clause.bounds[1] is None:
            message = "this walk has no upper bound and may visit the whole graph"
            _warn(report, "L206", message, clause.span, "write a greatest number of hops: `{1,5}`")


def _ignored_direction(node: ast.Query, report: Report) -> None:
    for key in nodes_in(node.body):
        if not isinstance(key, ast.OrderKey) or key.direction != "asc":
            continue
        if isinstance(key.expr, ast.Call) and key.expr.name.text in _RANKINGS:
            name = key.expr.name.text
            message = f"`asc` has no effect: `{name}` is always ordered best first"
            hint = f"remove it, or order by the number: `score({name}(…)) asc`"
            _warn(report, "L208", message, key.span, hint)


# Connections --------------------------------------------------------------------------------


class _Groups:
    """Variables that are connected to each other."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        self.parent.setdefault(name, name)
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def join(self, names: list[str]) -> None:
        for name in names[1:]:
            self.parent[self.find(name)] = self.find(names[0])


def _disconnected(pattern: irq.Pattern, span: Span, report: Report, *, carried: bool) -> None:
    own = {node.var for node in pattern.nodes}
    groups = _Groups()
    for traversal in pattern.traversals:
        ends = [_known(traversal.src, own), _known(traversal.dst, own)]
        extras = [name for name in (traversal.edge_var, traversal.hops_var) if name]
        own.update(extras)
        groups.join(ends + extras)
    for predicate in pattern.predicates:
        groups.join([_known(name, own) for name in _used(predicate)])
    apart: dict[str, str] = {}
    if carried and pattern.nodes:
        apart[groups.find(_CARRIED)] = "the rows so far"
    for node in pattern.nodes:
        apart.setdefault(groups.find(node.var), f"`${node.var}`")
    if len(apart) > 1:
        shown = " and ".join(apart.values())
        message = f"nothing connects {shown}, so every combination of them matches"
        hint = "walk an edge between them, or compare their properties"
        _warn(report, "L205", message, span, hint)
    for inner in (*pattern.negations, *pattern.optionals):
        _disconnected(inner, span, report, carried=True)


def _known(name: str, own: set[str]) -> str:
    return name if name in own else _CARRIED


def _used(predicate: ir.Expr) -> list[str]:
    names: list[str] = []
    for part in parts(predicate):
        if isinstance(part, ir.Property | ir.Entity):
            names.append(part.var)
        elif isinstance(part, ir.ValueRef):
            names.append(part.name)
    return names
