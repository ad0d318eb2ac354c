"""Turn `key = value`, `key in [values]` and the same for `id` into a lookup by id.

The id of a node is its key's canonical spelling, so for a single key of text or whole numbers the
question "which row has this key" is the question "which row has this id". Keys of other types are
compared: equal values of different types (`3` and `3.0`) do not have one spelling.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.ir.expr import Compare, CompareOp, Expr, In, Property
from omnigraph.model.catalog import ID_COLUMN, Catalog
from omnigraph.model.types import INTEGER_KINDS, Kind
from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Match, NodeVar, Operator
from omnigraph.plan.trees import names_in, transform


def look_up_keys(root: Operator, context: Context) -> Operator:
    def look_up(operator: Operator) -> Operator:
        if not isinstance(operator, Match):
            return operator
        nodes = tuple(
            node if node.var in operator.bound else _keyed(node, context.catalog)
            for node in operator.nodes
        )
        return replace(operator, nodes=nodes) if nodes != operator.nodes else operator

    return transform(root, look_up)


def _keyed(node: NodeVar, catalog: Catalog) -> NodeVar:
    for predicate in node.predicates:
        value = _key_value(predicate, node, catalog)
        if value is not None:
            others = tuple(p for p in node.predicates if p is not predicate)
            return replace(node, key=value, predicates=others)
    return node


def _key_value(predicate: Expr, node: NodeVar, catalog: Catalog) -> Expr | None:
    """The id, or the list of ids, that a predicate asks for."""
    if isinstance(predicate, Compare) and predicate.op is CompareOp.EQ:
        for here, there in (
            (predicate.left, predicate.right),
            (predicate.right, predicate.left),
        ):
            if _is_key(here, node, catalog) and _finds(here, there, there.type.kind):
                return there
    if isinstance(predicate, In) and _is_key(predicate.item, node, catalog):
        options = predicate.options
        if _finds(predicate.item, options, options.type.item):
            return options
    return None


def _finds(key: Expr, value: Expr, kind: Kind | None) -> bool:
    """Whether a value, or a list of values, of this kind is spelled as the ids of the key are."""
    if names_in(value):
        return False
    if key.type.kind in INTEGER_KINDS:
        return kind in INTEGER_KINDS
    return key.type.kind is Kind.STRING and kind is Kind.STRING


def _is_key(expr: Expr, node: NodeVar, catalog: Catalog) -> bool:
    if not isinstance(expr, Property) or expr.var != node.var:
        return False
    if expr.name == ID_COLUMN:
        return True
    tables = [catalog.node(name) for name in node.types]
    return bool(tables) and all(t is not None and t.key == (expr.name,) for t in tables)
