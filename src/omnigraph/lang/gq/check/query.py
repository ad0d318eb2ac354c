"""Check a whole query: its parameters, then its stages or statements.

Returns IR only when the query added no error to the report.
"""

from __future__ import annotations

from omnigraph.ir import expr as ir
from omnigraph.ir import query as irq
from omnigraph.lang.diagnostics import Report, offer
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check.scope import Context, Scope
from omnigraph.lang.gq.check.stages import StageChecker
from omnigraph.lang.gq.check.writes import check_statement
from omnigraph.lang.gq.size import check_size
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import SCALAR_KINDS, Kind, ValueType

RESERVED_PARAM = "__nanograph_now"
"""Old texts hand the time in under this name; it stays reserved so that none can misuse it."""

_SCALARS = {str(kind): kind for kind in SCALAR_KINDS}


def check_query(node: ast.Query, catalog: Catalog, report: Report) -> irq.Query | None:
    """The typed IR of a query, or nothing if it has a mistake. Raises `LimitExceededError` for a
    query that is too large to be checked."""
    check_size(node)
    ctx = Context(catalog, report, node)
    before = len(report.diagnostics)
    params = _check_params(ctx, node)
    query: irq.Query
    if isinstance(node.body, ast.Write):
        found = [check_statement(ctx, statement) for statement in node.body.statements]
        statements = tuple(each for each in found if each is not None)
        query = irq.WriteQuery(node.name.text, params, statements)
    else:
        query = irq.ReadQuery(node.name.text, params, _check_stages(ctx, node.body))
    return query if len(report.diagnostics) == before else None


def _check_stages(ctx: Context, node: ast.Read) -> tuple[irq.Stage, ...]:
    scope = Scope()
    stages: list[irq.Stage] = []
    for each in node.stages:
        checker = StageChecker(ctx, scope, each)
        stages.append(checker.check())
        scope = checker.next_scope()
    return tuple(stages)


def _check_params(ctx: Context, node: ast.Query) -> tuple[ir.Param, ...]:
    params: list[ir.Param] = []
    for each in node.params:
        name = each.name.text
        if name == RESERVED_PARAM:
            message = f"the parameter name `${name}` is reserved"
            ctx.error("T27", message, each.name.span, "call `now()` for the time")
        elif name in ctx.params:
            message = f"there are two parameters `${name}`"
            ctx.error("T27", message, each.name.span, "rename one of them")
        type_ = _param_type(ctx, each.type)
        if type_ is not None:
            ctx.params[name] = type_
            params.append(ir.Param(name, type_))
        else:
            ctx.params[name] = ValueType(Kind.STRING)
    return tuple(params)


def _param_type(ctx: Context, node: ast.TypeRef) -> ValueType | None:
    if node.name == "Vector":
        if node.dim and not node.is_list:
            return ValueType(Kind.VECTOR, node.nullable, dim=node.dim)
        message = "a vector has at least one dimension, and lists cannot hold vectors"
        return ctx.error("T27", message, node.span)
    kind = _SCALARS.get(node.name)
    if kind is None:
        hint = offer(node.name, [*_SCALARS, "Vector"])
        return ctx.error("T27", f"there is no parameter type `{node.name}`", node.span, hint)
    if node.is_list:
        return ValueType(Kind.LIST, node.nullable, item=kind)
    return ValueType(kind, node.nullable)
