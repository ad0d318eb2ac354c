"""Check and lower comparisons, string tests, membership and arithmetic.

Guarantees: `contains` is decided here, by the type on its left: membership for lists, substring
for strings; a comparison with null is refused, because it would never hold.
Deliberately absent: which values exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.ir import expr as ir
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.check import rules, searchcalls
from omnigraph.lang.gq.check.scope import show_type
from omnigraph.model.types import Kind, ValueType

if TYPE_CHECKING:
    from omnigraph.lang.gq.check.values import Values

_COMPARISONS: Final = frozenset(op.value for op in ir.CompareOp)
_ARITHMETIC: Final = frozenset(op.value for op in ir.ArithmeticOp)
STRING_TESTS: Final[dict[str, tuple[ir.StringOp, bool]]] = {
    "contains": (ir.StringOp.CONTAINS, False),
    "starts_with": (ir.StringOp.STARTS_WITH, False),
    "ends_with": (ir.StringOp.ENDS_WITH, False),
    "icontains": (ir.StringOp.CONTAINS, True),
    "istarts_with": (ir.StringOp.STARTS_WITH, True),
    "iends_with": (ir.StringOp.ENDS_WITH, True),
    "ieq": (ir.StringOp.EQUALS, True),
    "matches": (ir.StringOp.MATCHES, False),
}


def lower_binary(values: Values, node: ast.Binary) -> ir.Expr | None:
    if node.op in _COMPARISONS:
        return _compare(values, node)
    if node.op in _ARITHMETIC:
        return _arithmetic(values, node)
    return _string_test(values, node)


def _compare(values: Values, node: ast.Binary) -> ir.Expr | None:
    tested = _tested_search(values, node)
    if tested is not None:
        return tested
    left, right = values.lower(node.left), values.lower(node.right)
    if left is None or right is None:
        return None
    op = ir.CompareOp(node.op)
    if isinstance(left, ir.Entity) and isinstance(right, ir.Entity):
        return _compare_nodes(values, node, op, left, right)
    problem = _comparison_problem(left, right)
    if problem is None:
        return ir.Compare(op, left, right)
    message, hint = problem
    return values.error("T7", message, node.span, hint)


def _tested_search(values: Values, node: ast.Binary) -> ir.Expr | None:
    """`search(…) = true`, which says the same as the clause `search(…)` alone."""
    call, truth = node.left, node.right
    if not (isinstance(call, ast.Call) and call.name.text in searchcalls.TEXT_MODES):
        return None
    if not (isinstance(truth, ast.Literal) and truth.kind == "bool" and node.op in ("=", "!=")):
        return None
    found = searchcalls.text_match(values, call)
    wanted = truth.value is (node.op == "=")
    return found if found is None or wanted else ir.Not(found)


def _compare_nodes(
    values: Values, node: ast.Binary, op: ir.CompareOp, left: ir.Entity, right: ir.Entity
) -> ir.Expr | None:
    if left.type.kind is Kind.EDGE or right.type.kind is Kind.EDGE:
        return values.error("T23", "an edge cannot be compared", node.span, "compare a property")
    if op not in (ir.CompareOp.EQ, ir.CompareOp.NE):
        message = f"nodes have no order, so `{op}` means nothing"
        return values.error("T7", message, node.span, "compare their properties")
    if left.types != right.types or len(left.types) > 1:
        message = "only nodes of the same single type can be compared"
        return values.error("T7", message, node.span, "compare their properties")
    return ir.Compare(op, identity(left), identity(right))


def identity(entity: ir.Entity) -> ir.Property:
    """The id of a bound node."""
    return ir.Property(entity.var, "id", ValueType(Kind.STRING, entity.type.nullable))


def _comparison_problem(left: ir.Expr, right: ir.Expr) -> tuple[str, str | None] | None:
    one, other = left.type, right.type
    kinds = {one.kind, other.kind}
    if any(isinstance(side, ir.Literal) and side.value is None for side in (left, right)):
        return "a comparison with null never holds", "use `is null` or `is not null`"
    if Kind.BLOB in kinds | {one.item, other.item}:
        return "blobs cannot be compared", "compare another property"
    if kinds & {Kind.NODE, Kind.EDGE}:
        shown = f"{show_type(one)} and {show_type(other)}"
        return f"a comparison needs scalar operands, got {shown}", "compare a property"
    if Kind.LIST in kinds:
        return "lists cannot be compared", "use `contains` to test membership"
    if Kind.VECTOR in kinds:
        return "vectors cannot be compared", "use `nearest` to measure their distance"
    if not rules.compatible(one, other):
        return f"cannot compare {one} with {other}", _conversion_hint(one, other)
    return None


def _conversion_hint(one: ValueType, other: ValueType) -> str | None:
    kinds = {one.kind, other.kind}
    if kinds == {Kind.STRING, Kind.DATE}:
        return 'write a day as `date("2026-02-14")`'
    if kinds == {Kind.STRING, Kind.DATETIME}:
        return 'write an instant as `datetime("2026-02-14T10:00:00Z")`'
    if kinds == {Kind.DATE, Kind.DATETIME}:
        return "a day and an instant are different; compare parts, such as `year(…)`"
    if Kind.STRING in kinds:
        return "write numbers without quotes, or make a text with `to_string(…)`"
    return None


def _arithmetic(values: Values, node: ast.Binary) -> ir.Expr | None:
    left, right = values.lower(node.left), values.lower(node.right)
    if left is None or right is None:
        return None
    type_ = rules.arithmetic(node.op, left.type, right.type)
    if type_ is None:
        shown = f"{show_type(left.type)} and {show_type(right.type)}"
        texts = Kind.STRING in (left.type.kind, right.type.kind)
        hint = "return texts as columns of their own; they cannot be joined" if texts else None
        return values.error("T30", f"`{node.op}` needs numbers, got {shown}", node.span, hint)
    return ir.Arithmetic(ir.ArithmeticOp(node.op), left, right, type_)


def _string_test(values: Values, node: ast.Binary) -> ir.Expr | None:
    left, right = values.lower(node.left), values.lower(node.right)
    if left is None or right is None:
        return None
    if node.op == "contains" and left.type.kind is Kind.LIST:
        return _list_contains(values, node, left, right)
    for side, operand, where in (("left", left, node.left), ("right", right, node.right)):
        if isinstance(operand, ir.Literal) and operand.value is None:
            message = "a comparison with null never holds"
            return values.error("T7", message, where.span, "use `is null` or `is not null`")
        if operand.type.kind is not Kind.STRING:
            other = " or a list" if node.op == "contains" and side == "left" else ""
            got = show_type(operand.type)
            message = f"`{node.op}` needs a String{other} on its {side}, got {got}"
            hint = "make a text with `to_string(…)`, or use `=`"
            return values.error("T7", message, where.span, hint)
    op, ignore_case = STRING_TESTS[node.op]
    if op is ir.StringOp.MATCHES and isinstance(right, ir.Literal):
        problem = rules.regex_problem(str(right.value))
        if problem:
            message = f"this pattern cannot be used: {problem}"
            return values.error("T41", message, node.right.span)
    return ir.StringTest(op, left, right, ignore_case)


def _list_contains(
    values: Values, node: ast.Binary, left: ir.Expr, right: ir.Expr
) -> ir.Expr | None:
    item = rules.item_type(left.type)
    if right.type.kind is Kind.LIST:
        message = "`contains` tests one item, and its right side is a list"
        return values.error("T7", message, node.right.span, "test each item, joined with `and`")
    if item.kind is Kind.BLOB or not rules.compatible(item, right.type):
        message = f"{left.type} cannot contain {show_type(right.type)}"
        return values.error("T7", message, node.span)
    return ir.ListContains(left, right)


def lower_member(values: Values, node: ast.Member) -> ir.Expr | None:
    item = values.lower(node.item)
    found: ir.Expr | None
    if isinstance(node.options, ast.ListOf):
        found = _in_list(values, node, node.options, item)
    else:
        found = _in_value(values, node, item)
    return ir.Not(found) if found is not None and node.negated else found


def _in_list(
    values: Values, node: ast.Member, listed: ast.ListOf, item: ir.Expr | None
) -> ir.Expr | None:
    options = values.lower_all(listed.items)
    if item is None or options is None:
        return None
    for option, place in zip(options, listed.items, strict=True):
        problem = _comparison_problem(item, option)
        if problem is not None:
            return values.error("T7", problem[0], place.span, problem[1])
    if all(isinstance(option, ir.Literal) for option in options):
        constants = [o.value for o in options if isinstance(o, ir.Literal)]
        merged = rules.common([o.type for o in options]) if options else item.type
        kind = merged.kind if merged is not None else item.type.kind
        return ir.In(item, ir.Literal(constants, ValueType(Kind.LIST, item=kind)))
    return ir.Or(tuple(ir.Compare(ir.CompareOp.EQ, item, option) for option in options))


def _in_value(values: Values, node: ast.Member, item: ir.Expr | None) -> ir.Expr | None:
    options = values.lower(node.options)
    if item is None or options is None:
        return None
    if options.type.kind is not Kind.LIST:
        message = f"`in` needs a list, got {show_type(options.type)}"
        return values.error("T40", message, node.options.span, "write `in [ … ]`")
    wanted = rules.item_type(options.type)
    if wanted.kind is Kind.BLOB or not rules.compatible(item.type, wanted):
        message = f"{options.type} cannot contain {show_type(item.type)}"
        return values.error("T7", message, node.span)
    return ir.In(item, options)
