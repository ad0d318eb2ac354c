"""The ids that a lookup by key asks for.

Both engines spell a key as the ids of its rows are spelled; nulls ask for nothing.
Not included: which predicates become lookups (`plan.rules.look_up_keys`).
"""

from __future__ import annotations

from omnigraph.engines.expressions.evaluate import Given, constant
from omnigraph.ir.expr import Expr
from omnigraph.model.keys import canonical_scalar
from omnigraph.model.types import Kind


def key_ids(key: Expr, given: Given) -> list[str]:
    """The distinct ids that a value, or a list of values, stands for."""
    value = constant(key, given)
    many = key.type.kind is Kind.LIST
    kind = key.type.item if many else key.type.kind
    wanted = value if many else [value]
    spelled = (canonical_scalar(item, kind) for item in wanted or () if kind is not None)
    return [id_ for id_ in dict.fromkeys(spelled) if id_ is not None]
