"""How a query was answered: by which engine, with which plan, and what that did.

Creation is cheap; rendering happens on demand.
"""

from __future__ import annotations

from typing import Any

from omnigraph.plan.planner import Plan
from omnigraph.plan.plantext import Actuals, to_json, to_text


class Explanation:
    """A plan, the engine that ran it and, after a profiled run, its measurements.

    `inner` is the plan of the engine itself, such as that of Spark, if any.
    """

    def __init__(
        self,
        plan: Plan,
        engine: str,
        actuals: Actuals | None = None,
        inner: str | None = None,
    ) -> None:
        self.plan = plan
        self.engine = engine
        self.actuals = actuals
        self.inner = inner

    def to_text(self) -> str:
        text = f"engine {self.engine}\n{to_text(self.plan.root, self.actuals)}"
        return text if self.inner is None else f"{text}\n{self.inner.rstrip()}\n"

    def to_json(self) -> dict[str, Any]:
        found = {"engine": self.engine, **to_json(self.plan, self.actuals)}
        return found if self.inner is None else {**found, "inner": self.inner}
