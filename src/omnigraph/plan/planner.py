"""Planning a read query: build, then every rule once; plans are cached.

`plan_query` is a pure function; `Planner` returns what it would return. A cache entry holds its
query, so that the identity it is found by cannot be reused meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.caches import Cache
from omnigraph.ir.query import ReadQuery, ResultField
from omnigraph.model.catalog import Catalog
from omnigraph.plan.estimate import Context, with_rows
from omnigraph.plan.logical import build
from omnigraph.plan.operators import Operator
from omnigraph.plan.rules import RULES, Rule
from omnigraph.plan.statistics import Statistics
from omnigraph.plan.trees import transform

_CACHED_PLANS = 1024
_PLAN_BYTES = 16 << 10  # of one plan, about


@dataclass(frozen=True, eq=False)
class Plan:
    """How to answer a query. `fields` are the columns of the result, in order."""

    query: ReadQuery
    root: Operator
    fields: tuple[ResultField, ...]
    catalog: Catalog


def plan_query(
    query: ReadQuery,
    catalog: Catalog,
    statistics: Statistics,
    rules: tuple[Rule, ...] = RULES,
) -> Plan:
    """The plan of a query. Fewer `rules` give a slower plan with the same rows."""
    context = Context(catalog, statistics)
    root = build(query, catalog)
    for rule in rules:
        root = rule(root, context)
    root = transform(root, lambda operator: with_rows(operator, context))
    last = query.stages[-1].projections
    return Plan(query, root, tuple(ResultField(c.name, c.expr.type) for c in last), catalog)


class Planner:
    """`plan_query` with memory."""

    def __init__(self, limit: int = _CACHED_PLANS) -> None:
        self._plans: Cache[tuple[int, str, Statistics], Plan] = Cache(
            entries=limit, nominal_bytes=_PLAN_BYTES
        )

    def plan(self, query: ReadQuery, catalog: Catalog, statistics: Statistics) -> Plan:
        # Compiled queries are cached themselves, so the same text arrives as the same object;
        # hashing a whole IR tree would cost more than running a point lookup.
        key = (id(query), catalog.hash, statistics)
        found = self._plans.peek(key)
        if found is not None and found.query is query:
            return found
        plan = plan_query(query, catalog, statistics)
        if catalog.hash:
            self._plans.put(key, plan)
        return plan
