"""Check and lower function calls: aggregates and scalar functions.

Guarantees: the table of scalar functions is complete; what is not in it, is no aggregate and no
search function does not exist.
Deliberately absent: the search functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.ir import expr as ir
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import rules, searchcalls
from omnigraph.lang.gq.check.scope import show_type
from omnigraph.model.types import (
    F64,
    FLOAT_KINDS,
    I64,
    INTEGER_KINDS,
    NUMERIC_KINDS,
    ORDERABLE_KINDS,
    SCALAR_KINDS,
    STRING,
    Kind,
    ValueType,
)

if TYPE_CHECKING:
    from omnigraph.lang.gq.check.values import Values

AGGREGATES: Final = {fn.value: fn for fn in ir.AggregateFn}
_COALESCE: Final = "write a value and what to take where it is null: `coalesce($x.age, 0)`"
NOW: Final = ir.Now(ValueType(Kind.DATETIME))


class Signature(NamedTuple):
    """One scalar function: the kinds its argument may have, and what comes out."""

    kinds: frozenset[Kind]
    wanted: str
    result: Callable[[ValueType], ValueType]


def _always(result: ValueType) -> Callable[[ValueType], ValueType]:
    return lambda argument: result.as_nullable(argument.nullable)


def _widest(argument: ValueType) -> ValueType:
    if argument.kind is Kind.U64:
        return argument
    return (F64 if argument.kind in FLOAT_KINDS else I64).as_nullable(argument.nullable)


_TEXT = frozenset({Kind.STRING})
_DAYS = frozenset({Kind.DATE, Kind.DATETIME})
_TIMES = frozenset({Kind.DATETIME})

SCALARS: Final[dict[str, Signature]] = {
    **{name: Signature(_TEXT, "a String", _always(STRING)) for name in ("lower", "upper", "trim")},
    "length": Signature(_TEXT | {Kind.LIST}, "a String or a list", _always(I64)),
    **{
        name: Signature(NUMERIC_KINDS, "a number", _widest)
        for name in ("abs", "round", "floor", "ceil")
    },
    **{
        name: Signature(_DAYS, "a Date or DateTime", _always(I64))
        for name in ("year", "month", "day")
    },
    **{
        name: Signature(_TIMES, "a DateTime", _always(I64)) for name in ("hour", "minute", "second")
    },
    "to_string": Signature(SCALAR_KINDS - {Kind.BLOB}, "a scalar", _always(STRING)),
}
NAMES: Final = frozenset({*SCALARS, *AGGREGATES, *searchcalls.FUNCTIONS, "now", "coalesce"})


def lower_call(values: Values, node: ast.Call) -> ir.Expr | None:
    name = node.name.text
    if name in AGGREGATES:
        return _aggregate(values, node)
    if node.distinct or node.star:
        what = "distinct" if node.distinct else "*"
        return values.error("T32", f"`{what}` belongs in an aggregate", node.span)
    if name in searchcalls.FUNCTIONS:
        return searchcalls.lower_search(values, node)
    if name == "now":
        return _now(values, node)
    if name == "coalesce":
        return _coalesce(values, node)
    if name in SCALARS:
        return _scalar(values, node, SCALARS[name])
    if name in ("date", "datetime"):
        message = f'`{name}` takes one string, such as `{name}("2026-02-14")`'
        return values.error("T31", message, node.span, "dates in queries are constants")
    hint = suggest(name, NAMES)
    return values.error("T31", f"there is no function `{name}`", node.name.span, hint)


def _now(values: Values, node: ast.Call) -> ir.Expr | None:
    if node.args:
        return values.error("T31", "`now` takes no arguments", node.span, "write `now()`")
    return NOW


def _scalar(values: Values, node: ast.Call, signature: Signature) -> ir.Expr | None:
    name = node.name.text
    if len(node.args) != 1:
        message = f"`{name}` takes one argument"
        return values.error("T31", message, node.span, f"write `{name}($x.property)`")
    argument = values.lower(node.args[0])
    if argument is None:
        return None
    if argument.type.kind not in signature.kinds:
        message = f"`{name}` needs {signature.wanted}, got {show_type(argument.type)}"
        textual = Kind.STRING in signature.kinds and argument.type.kind in SCALAR_KINDS
        hint = "make a text with `to_string(…)`" if textual else None
        return values.error("T31", message, node.args[0].span, hint)
    return ir.Function(name, (argument,), signature.result(argument.type))


def _coalesce(values: Values, node: ast.Call) -> ir.Expr | None:
    if len(node.args) < 2:
        return values.error("T31", "`coalesce` takes two or more arguments", node.span, _COALESCE)
    args = values.lower_all(node.args)
    if args is None:
        return None
    given = [arg for arg in args if not (isinstance(arg, ir.Literal) and arg.value is None)]
    type_ = rules.common(constant_types(given)) if given else args[0].type
    if type_ is None and all(arg.type.kind in INTEGER_KINDS for arg in given):
        message = "no integer type holds all arguments of `coalesce`: U64 and negative numbers"
        hint = "use values of U64, U32, or constants that are not negative"
        return values.error("T31", message, node.span, hint)
    if type_ is None or type_.kind in (Kind.NODE, Kind.EDGE, Kind.BLOB):
        shown = ", ".join(show_type(arg.type) for arg in args)
        message = f"the arguments of `coalesce` must be values of one type, got {shown}"
        return values.error("T31", message, node.span, _COALESCE)
    return ir.Function("coalesce", tuple(args), type_)


def constant_types(exprs: list[ir.Expr]) -> list[ValueType]:
    """The types of expressions that are to share one; a constant that is not negative is unsigned
    where others are."""
    unsigned = any(each.type.kind is Kind.U64 for each in exprs)
    return [
        ValueType(Kind.U64)
        if unsigned and isinstance(each, ir.Literal) and type(each.value) is int and each.value >= 0
        else each.type
        for each in exprs
    ]


def _aggregate(values: Values, node: ast.Call) -> ir.Expr | None:
    name = node.name.text
    if values.no_aggregates is not None:
        message = f"`{name}` cannot stand here: {values.no_aggregates}"
        hint = "group in `return` or `with`, and filter with `having`"
        return values.error("T32", message, node.span, hint)
    if values.in_aggregate:
        message = "an aggregate cannot hold another one"
        return values.error("T32", message, node.span, "group in two steps, with `with`")
    if node.star:
        if name != "count":
            return values.error("T32", f"`*` can only be counted, not `{name}`", node.span)
        return ir.Aggregate(ir.AggregateFn.COUNT, None, False, I64)
    if len(node.args) != 1:
        message = f"`{name}` takes one argument"
        return values.error("T31", message, node.span, f"write `{name}($x.property)`")
    values.in_aggregate = True
    try:
        argument = values.lower(node.args[0])
    finally:
        values.in_aggregate = False
    return None if argument is None else _finish(values, node, argument)


def _finish(values: Values, node: ast.Call, argument: ir.Expr) -> ir.Expr | None:
    fn = AGGREGATES[node.name.text]
    type_ = argument.type
    if Kind.BLOB in (type_.kind, type_.item):
        return values.error("T24", "a blob cannot be aggregated", node.args[0].span)
    problem = _aggregate_problem(fn, type_)
    if problem is not None:
        return values.error("T8", problem, node.args[0].span)
    return ir.Aggregate(fn, argument, node.distinct, _aggregate_type(fn, type_))


def _aggregate_problem(fn: ir.AggregateFn, type_: ValueType) -> str | None:
    numeric = type_.kind in NUMERIC_KINDS
    if fn in (ir.AggregateFn.SUM, ir.AggregateFn.AVG) and not numeric:
        return f"`{fn}` needs numbers, got {show_type(type_)}"
    if fn in (ir.AggregateFn.MIN, ir.AggregateFn.MAX) and type_.kind not in ORDERABLE_KINDS:
        return f"`{fn}` needs values that have an order, got {show_type(type_)}"
    if fn is ir.AggregateFn.COLLECT and type_.kind not in SCALAR_KINDS:
        return f"`collect` gathers scalar values, got {show_type(type_)}"
    return None


def _aggregate_type(fn: ir.AggregateFn, type_: ValueType) -> ValueType:
    if fn is ir.AggregateFn.COUNT:
        return I64
    if fn is ir.AggregateFn.COLLECT:
        return ValueType(Kind.LIST, item=type_.kind)
    if fn in (ir.AggregateFn.SUM, ir.AggregateFn.AVG):
        return F64.as_nullable()
    return type_.as_nullable()
