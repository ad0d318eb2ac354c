"""Find out which edges a traversal walks, in which direction, and between which types.

The direction follows from the types at both ends: out if the left node is the edge's source, in
if it is the target. Where a variable may be of several types, the traversal is the union over
them, and each variable is narrowed to the types that some edge can reach.

A walk of several hops may pass through nodes of any type (`paths`), so it keeps every edge that
lies on some way from the left types to the right types, also if it touches neither.

Guarantees: narrowing only ever removes possibilities, so it ends; a variable that was bound
outside the pattern is never narrowed. Each walk is looked at again only when one of its ends was
narrowed, so that long patterns cost little more than short ones.
Deliberately absent: the order in which edges are walked.
"""

from __future__ import annotations

from collections import deque

from omnigraph.ir.query import Direction, EdgeStep
from omnigraph.lang.diagnostics import first_hint, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.paths import Option, Ways, ways
from omnigraph.lang.gq.check.scope import Context, EdgeVar, NodeVar, Scope, Unknown
from omnigraph.lang.gq.syntax.expressions import WORD_OPERATORS
from omnigraph.model.catalog import EdgeType

ANY = "_"


class Walk:
    """A traversal, its ends by name, and the ways in which it can be walked."""

    def __init__(
        self, node: ast.Traversal, src: str, dst: str, options: list[Option], assumed: bool = False
    ) -> None:
        self.node = node
        self.src = src
        self.dst = dst
        self.options = options
        self.assumed = assumed  # the direction follows from no type
        self.low, self.high = node.bounds or (1, 1)

    def ways(self, scope: Scope) -> Ways:
        """What is left of the walk between the types that both ends can have now."""
        src, dst = _types(scope, self.src), _types(scope, self.dst)
        return ways(self.options, src, dst, self.low, self.high)

    def steps(self) -> tuple[EdgeStep, ...]:
        found = {EdgeStep(option.edge.name, option.direction): None for option in self.options}
        return tuple(found)

    def edge_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(option.edge.name for option in self.options))


def resolve_edges(ctx: Context, node: ast.Traversal) -> list[EdgeType] | None:
    """The edge types that a traversal names, or nothing if one of them does not exist."""
    if [name.text for name in node.edges] == [ANY]:
        return list(ctx.catalog.edges)
    found: list[EdgeType] = []
    for name in node.edges:
        edge = ctx.catalog.edge(name.text)
        if edge is None:
            _report_unknown_edge(ctx, node, name)
        elif _fits_direction(ctx, node, edge, name):
            found.append(edge)
    return found if len(found) == len(node.edges) else None


def _report_unknown_edge(ctx: Context, node: ast.Traversal, name: ast.Name) -> None:
    known = [edge.name[:1].lower() + edge.name[1:] for edge in ctx.catalog.edges]
    as_filter = None
    if name.text in WORD_OPERATORS:
        as_filter = (
            f"to compare values, put the left side in parentheses: "
            f"`(${node.src.text}) {name.text} ${node.dst.text}`"
        )
    hint = first_hint(as_filter, offer(name.text, known))
    ctx.error("T4", f"there is no edge `{name.text}`", name.span, hint)


def _fits_direction(ctx: Context, node: ast.Traversal, edge: EdgeType, name: ast.Name) -> bool:
    if node.direction != "both" or edge.src_type == edge.dst_type:
        return True
    message = (
        f"`<{name.text}>` walks both ways, but {show_edge(edge)} leads from one type to another"
    )
    ctx.error("T22", message, name.span, f"drop the angle brackets: `{name.text}`")
    return False


def show_edge(edge: EdgeType) -> str:
    return f"`{edge.name}: {edge.src_type} -> {edge.dst_type}`"


def options_for(
    ctx: Context, scope: Scope, node: ast.Traversal, src: str, dst: str, edges: list[EdgeType]
) -> list[Option]:
    """All ways to walk the edges between the types that both ends can have now."""
    src_types = _types(scope, src)
    dst_types = _types(scope, dst)
    low, high = node.bounds or (1, 1)
    oriented = [
        option
        for edge in edges
        for option in _orientations(node.direction, edge, src_types, dst_types, several=high != 1)
    ]
    if src == dst:
        oriented = [option for option in oriented if option.src == option.dst]
    found = ways(oriented, src_types, dst_types, low, high).options
    if not found:
        _report_no_option(ctx, node, edges, src_types, dst_types)
    return found


def _types(scope: Scope, name: str) -> tuple[str, ...] | None:
    var = scope.vars.get(name)
    return var.types if isinstance(var, NodeVar) else None


def _orientations(
    mode: ast.EdgeDirection,
    edge: EdgeType,
    src_types: tuple[str, ...] | None,
    dst_types: tuple[str, ...] | None,
    *,
    several: bool,
) -> list[Option]:
    source, target = edge.src_type, edge.dst_type
    out = Option(edge, Direction.OUT, source, target)
    back = Option(edge, Direction.IN, target, source)
    if mode == "reverse":
        return [back]
    if source == target:
        return [Option(edge, Direction.BOTH, source, target)] if mode == "both" else [out]
    if mode == "both":
        return [out, back]
    # Between different types the direction follows from the ends; an edge that touches neither end
    # is walked as it was declared.
    if several:
        touching = [each for each in (out, back) if _touches(each, src_types, dst_types)]
        return touching or [out]
    return [out] if src_types is None and dst_types is None else [out, back]


def _touches(
    option: Option, src_types: tuple[str, ...] | None, dst_types: tuple[str, ...] | None
) -> bool:
    """Whether the option can be the first or the last hop of a walk between these types."""
    return option.src in (src_types or ()) or option.dst in (dst_types or ())


def _report_no_option(
    ctx: Context,
    node: ast.Traversal,
    edges: list[EdgeType],
    src_types: tuple[str, ...] | None,
    dst_types: tuple[str, ...] | None,
) -> None:
    ends = {end for edge in edges for end in (edge.src_type, edge.dst_type)}
    shown = ", ".join(show_edge(edge) for edge in edges[:4]) or "any edge"
    for name, types in ((node.src, src_types), (node.dst, dst_types)):
        if types is not None and not ends.intersection(types):
            message = f"`${name.text}` is {_spell(types)}, which is no end of {shown}"
            ctx.error("T5", message, name.span, _edge_hint(ctx, types))
            return
    if node.src.text == node.dst.text:
        message = f"no node has {shown} to itself, because its ends are of different types"
        ctx.error("T5", message, node.span, "use two variables, one for each end")
        return
    left = _spell(src_types) if src_types else "any node"
    right = _spell(dst_types) if dst_types else "any node"
    hint = _edge_hint(ctx, src_types or dst_types or ())
    ctx.error("T5", f"{shown} does not lead from {left} to {right}", node.span, hint)


def _spell(types: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in types)


def _edge_hint(ctx: Context, types: tuple[str, ...]) -> str | None:
    near = dict.fromkeys(edge.name for name in types for edge in ctx.catalog.edges_of(name))
    if not near:
        return None
    return f"edges of {_spell(types)}: " + ", ".join(
        f"`{name[:1].lower()}{name[1:]}`" for name in list(near)[:6]
    )


def narrow(ctx: Context, scope: Scope, started: list[Walk], walks: list[Walk]) -> None:
    """Remove what cannot be, after some walks were started: types without a fitting edge, edges
    without fitting types."""
    touching: dict[str, list[Walk]] = {}
    for walk in walks:
        for name in {walk.src, walk.dst}:
            touching.setdefault(name, []).append(walk)
    waiting = deque(started)
    queued = {id(walk) for walk in started}
    while waiting:
        walk = waiting.popleft()
        queued.discard(id(walk))
        found = walk.ways(scope)
        if walk.options and not found.options:
            _report_conflict(ctx, scope, walk)
        walk.options = found.options
        for name, types in ((walk.src, found.src), (walk.dst, found.dst)):
            if not _restrict(scope, name, types):
                continue
            for other in touching[name]:
                if id(other) not in queued:
                    queued.add(id(other))
                    waiting.append(other)


def _restrict(scope: Scope, name: str, types: list[str]) -> bool:
    """Bind a variable to types, or narrow it to those; says whether anything changed."""
    var = scope.vars.get(name)
    if not types or isinstance(var, Unknown | EdgeVar):
        return False
    if var is None:
        scope.vars[name] = NodeVar(tuple(dict.fromkeys(types)))
        return True
    if not isinstance(var, NodeVar) or var.fixed:
        return False
    kept = tuple(each for each in var.types if each in types)
    scope.vars[name] = var._replace(types=kept or var.types)
    return 0 < len(kept) < len(var.types)


def _report_conflict(ctx: Context, scope: Scope, walk: Walk) -> None:
    edges = [option.edge for option in walk.options]
    if walk.assumed:
        shown = ", ".join(show_edge(edge) for edge in edges[:4])
        message = f"nothing says in which direction {shown} is walked here"
        ctx.error("T5", message, walk.node.span, f"give `${walk.node.src.text}` a type")
        return
    src, dst = _types(scope, walk.src), _types(scope, walk.dst)
    _report_no_option(ctx, walk.node, edges, src, dst)
