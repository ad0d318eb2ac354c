"""The optimizer: a tuple of rules, applied once each, in this order.

Each rule is a function from a plan to a plan with the same rows. Read them top to bottom.
No rule looks at anything but the plan, the catalog and the statistics, so equal inputs give equal
plans.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Operator
from omnigraph.plan.rules.choose_access import choose_access
from omnigraph.plan.rules.drop_sorts import drop_sorts
from omnigraph.plan.rules.factorize_counts import factorize_counts
from omnigraph.plan.rules.group_by_nodes import group_by_nodes
from omnigraph.plan.rules.limit_search import limit_search
from omnigraph.plan.rules.look_up_keys import look_up_keys
from omnigraph.plan.rules.materialize_late import materialize_late
from omnigraph.plan.rules.narrow_types import narrow_types
from omnigraph.plan.rules.order_joins import order_joins
from omnigraph.plan.rules.push_predicates import push_predicates
from omnigraph.plan.rules.reduce_semi_joins import reduce_semi_joins
from omnigraph.plan.rules.take_top_k import take_top_k

Rule = Callable[[Operator, Context], Operator]

RULES: tuple[Rule, ...] = (
    push_predicates,
    narrow_types,
    look_up_keys,
    drop_sorts,
    group_by_nodes,
    reduce_semi_joins,
    factorize_counts,
    order_joins,
    choose_access,
    materialize_late,
    take_top_k,
    limit_search,
)
