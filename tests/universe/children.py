"""What children of the nursery do in a universe."""

from __future__ import annotations

from tests.crash.steps import Killer, intercepted
from tests.universe.acts import carry_out
from tests.universe.model import Op

import omnigraph


def act_in_universe(uri: str, op: Op, nth: int, when: str) -> str:
    """One operation by a process of its own; it dies around its nth durable step, if any."""
    graph = omnigraph.open(uri, actor="act-child")
    if not nth:
        return carry_out(graph, op)
    with intercepted(Killer(nth, when)):
        return carry_out(graph, op)
