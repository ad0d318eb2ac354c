"""A plan, and what running it has shown, as a text tree and as JSON.

Guarantees: the text of a plan without actuals is a function of the plan alone, so golden files can
hold it; JSON has the same tree with numbers as numbers.
Deliberately absent: measuring. An engine hands in what it measured, by operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.ir.expr import Expr
from omnigraph.plan.exprtext import (
    render,
    render_order,
    render_projection,
    render_traversal,
)
from omnigraph.plan.operators import (
    Access,
    Aggregate,
    Argument,
    Branch,
    Exists,
    Expand,
    Filter,
    Join,
    Limit,
    Match,
    NodeVar,
    Operator,
    Optional,
    Project,
    Reduce,
    Scan,
    Search,
    Sort,
    TopK,
)
from omnigraph.plan.planner import Plan
from omnigraph.plan.trees import inputs


@dataclass
class Actual:
    """What one operator did: rows out, time inside it alone, storage requests, how it chose."""

    rows: int = 0
    seconds: float = 0.0
    requests: int = 0
    bytes: int = 0
    notes: list[str] = field(default_factory=list)


# By identity of the operator: a plan may hold equal operators in two places.
Actuals = Mapping[int, Actual]


def to_text(root: Operator, actuals: Actuals | None = None) -> str:
    """The tree, root first, one operator per line."""
    return "\n".join(_lines(root, actuals, "", "")) + "\n"


def _lines(root: Operator, actuals: Actuals | None, head: str, body: str) -> Iterator[str]:
    yield f"{head}{title(root)}{_figures(root, actuals)}"
    below = inputs(root)
    for number, operator in enumerate(below):
        last = number == len(below) - 1
        yield from _lines(
            operator, actuals, body + ("└ " if last else "├ "), body + ("  " if last else "│ ")
        )


def _figures(root: Operator, actuals: Actuals | None) -> str:
    estimate = "" if root.rows < 0 else f"  ~{_count(root.rows)} rows"
    actual = None if actuals is None else actuals.get(id(root))
    if actual is None:
        return estimate
    parts = [f"{actual.rows} rows", f"{actual.seconds * 1000:.2f} ms"]
    if actual.requests:
        parts.append(f"{actual.requests} reads, {actual.bytes} bytes")
    parts += actual.notes
    return f"{estimate}  [{'; '.join(parts)}]"


def _count(rows: float) -> str:
    return f"{rows:.2g}" if rows < 1 else f"{rows:.0f}" if rows < 1e15 else f"{rows:.1e}"


def to_json(plan: Plan, actuals: Actuals | None = None) -> dict[str, Any]:
    """The whole story: fields, IR and the tree."""
    return {
        "query": plan.query.name,
        "fields": [{"name": f.name, "type": str(f.type)} for f in plan.fields],
        "ir": _plain(plan.query.stages),
        "plan": _node(plan.root, actuals),
    }


def _node(root: Operator, actuals: Actuals | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operator": type(root).__name__.lower(),
        "detail": detail(root),
        "estimated_rows": None if root.rows < 0 else root.rows,
    }
    actual = None if actuals is None else actuals.get(id(root))
    if actual is not None:
        found |= {
            "rows": actual.rows,
            "milliseconds": actual.seconds * 1000,
            "reads": actual.requests,
            "bytes": actual.bytes,
            "notes": list(actual.notes),
        }
    found["inputs"] = [_node(operator, actuals) for operator in inputs(root)]
    return found


def title(root: Operator) -> str:
    """An operator and its detail in one line."""
    return f"{type(root).__name__} {detail(root)}".rstrip()


def detail(root: Operator) -> str:
    """What an operator does, without its inputs."""
    return _reading(root) or _joining(root) or _shaping(root)


def _reading(root: Operator) -> str:
    match root:
        case Argument():
            return ", ".join(root.names)
        case Scan():
            return f"{_var(root.node)} by {root.access}"
        case Expand():
            how = " into" if root.into else ""
            far = _var(root.node) + _where(root.edge_predicates)
            by = "" if root.access is Access.ADJACENCY else f" by {root.access}"
            return f"{render_traversal(root.traversal, root.reverse)}{how}: {far}{by}"
        case Match():
            return _pattern(root)
        case Reduce():
            return _branch(root.branch)
        case _:
            return ""


def _pattern(root: Match) -> str:
    nodes = ", ".join(_var(node) for node in root.nodes)
    steps = [render_traversal(t) for t in root.traversals]
    predicates = [*root.predicates, *(p for _, found in root.edge_predicates for p in found)]
    tests = [f"where {' and '.join(render(p) for p in predicates)}"] if predicates else []
    return "; ".join([nodes, *steps, *tests, *(_branch(b) for b in root.branches)])


def _joining(root: Operator) -> str:
    match root:
        case Filter():
            return " and ".join(render(p) for p in root.predicates)
        case Join():
            on = [f"{render(a)} = {render(b)}" for a, b in root.keys]
            return f"on {' and '.join(on)}" if on else "all pairs"
        case Exists():
            return f"{'no' if root.negated else 'some'} match for {', '.join(root.shared)}"
        case Optional():
            return f"binds {', '.join(root.binds)}"
        case Search():
            kept = "" if root.keep is None else f" keep {render(root.keep)}"
            return ", ".join(render(score) for score in root.scores) + kept
        case _:
            return ""


def _shaping(root: Operator) -> str:
    match root:
        case Aggregate():
            made = [f"{render(call)} as {name}" for name, call in root.aggregates]
            by = [render_projection(key) for key in root.keys]
            return ", ".join(made) + (f" by {', '.join(by)}" if by else "")
        case Project():
            return ", ".join(render_projection(column) for column in root.columns)
        case Sort() | TopK():
            keys = [*(render_order(key) for key in root.keys), *root.ties]
            cut = _cut(root.offset, root.limit) if isinstance(root, TopK) else ""
            return f"{cut}by {', '.join(keys)}" if keys else cut.rstrip()
        case Limit():
            return _cut(root.offset, root.limit).rstrip()
        case _:
            return ""


def _cut(offset: Expr | None, limit: Expr | None) -> str:
    first = "" if limit is None else f"{render(limit)} "
    return first if offset is None else f"{first}after {render(offset)} "


def _var(node: NodeVar) -> str:
    types = "|".join(node.types) or "nothing"
    key = "" if node.key is None else f" id {render(node.key)}"
    return f"${node.var}: {types}{key}{_where(node.predicates)}"


def _where(predicates: tuple[Expr, ...]) -> str:
    return f" where {' and '.join(render(p) for p in predicates)}" if predicates else ""


def _branch(branch: Branch) -> str:
    walk = render_traversal(branch.traversal, branch.reverse)
    inner = "".join(f", {_branch(child)}" for child in branch.children)
    far = _var(branch.node) + _where(branch.edge_predicates)
    return f"{branch.how} ({walk}: {far}{inner})"


def _plain(value: Any) -> Any:
    """IR dataclasses as JSON, with the class under `node`."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        names = list(value.__dataclass_fields__)
        shown = {name: _plain(getattr(value, name)) for name in names if name != "type"}
        found = {"node": type(value).__name__, **shown}
        return found | {"type": str(value.type)} if "type" in names else found
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
