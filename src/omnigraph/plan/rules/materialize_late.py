"""Fetch returned properties after rows have been dropped, not before.

Until a projection runs, rows are numbers of nodes and edges; whatever a limit takes away is then
never read from storage.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.estimate import Context
from omnigraph.plan.operators import Limit, Operator, Project
from omnigraph.plan.trees import transform


def materialize_late(root: Operator, context: Context) -> Operator:
    return transform(root, _swap)


def _swap(operator: Operator) -> Operator:
    if isinstance(operator, Limit) and isinstance(operator.input, Project):
        project = operator.input
        return replace(project, input=replace(operator, input=project.input))
    return operator
